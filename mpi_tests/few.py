"""Chooses what a quick test tries of a long list."""
import os
import time

THOROUGH = "SLUICE_TEST_THOROUGH" in os.environ


def day():
    """Of today, or of SLUICE_TEST_SEED, which is 1000*DAY."""
    return int(os.environ.get("SLUICE_TEST_SEED") or time.time() // 86400 * 1000) // 1000


def few(cases):
    """A fifth of the cases, in their order, others each day: all of them in five days. All where
    SLUICE_TEST_THOROUGH is set."""
    cases = list(cases)
    return cases if THOROUGH else cases[day() % 5::5] or cases[:1]
