"""Goals in a file of results: what was to be reached, what was measured, and whether it was."""


def at_least(words, setting, least, found):
    """`setting`: where the goal is to be reached. `found`: a spread, of which the median counts."""
    return {"goal": f"{words}, {setting}", "words": words, "setting": setting, "least": least,
            "measured": {key: found[key] for key in ("n", "median", "q1", "q3")},
            "reached": found["median"] >= least}
