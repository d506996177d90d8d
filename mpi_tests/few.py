"""Chooses what a quick test tries of a long list."""
import os
import time


def few(cases):
    """A third of the cases, in their order, others each day: all of them in three days. All where
    SLUICE_TEST_THOROUGH is set. SLUICE_TEST_SEED=1000*DAY repeats a day."""
    cases = list(cases)
    if "SLUICE_TEST_THOROUGH" in os.environ:
        return cases
    day = int(os.environ.get("SLUICE_TEST_SEED") or time.time() // 86400 * 1000) // 1000
    return cases[day % 3::3] or cases[:1]
