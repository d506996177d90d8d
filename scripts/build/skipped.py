#!/usr/bin/env python3
"""Lists what tests left undone, and why, from the results files of ctest.

  skipped.py RESULTS...        as `ctest --output-junit` writes them

With CI=true it fails if something was left undone that scripts/build/may_skip.txt does not allow.
"""
import os
import pathlib
import re
import sys
import xml.etree.ElementTree

ALLOWED = pathlib.Path(__file__).with_name("may_skip.txt")
CASE = re.compile(r"\[ RUN +\] (\S+)\n(.*?)^\[  SKIPPED \] \1 ", re.MULTILINE | re.DOTALL)
# mpirun gives its ranks a terminal, for which GoogleTest has colours. CTest writes what begins one
# in its own way.
COLOUR = re.compile(r"(?:\[NON-XML-CHAR-0x1B\]|\x1b)\[[0-9;]*[mK]")
REASON = re.compile(r"^\S+:\d+: Skipped\n(.*?)(?=^\S+:\d+: |\Z)", re.MULTILINE | re.DOTALL)


def undone(results):
    """(test, [its cases], reason) of everything in a results file that was left undone."""
    for test in xml.etree.ElementTree.parse(results).getroot().iter("testcase"):
        if test.get("status") not in ("notrun", "disabled"):
            continue
        output = COLOUR.sub("", test.findtext("system-out") or "")
        by_reason = {}
        for case, text in CASE.findall(output):
            reasons = dict.fromkeys(" ".join(reason.split()) for reason in REASON.findall(text))
            by_reason.setdefault("; ".join(filter(None, reasons)), []).append(case)
        for reason, cases in by_reason.items():
            yield test.get("name"), cases, reason or "no reason given"
        if not by_reason:  # no program of GoogleTest's: the last words count
            lines = [line.strip() for line in output.splitlines() if line.strip()]
            yield test.get("name"), [], lines[-1] if lines else "no reason given"


def allowed_patterns():
    lines = ALLOWED.read_text(encoding="utf-8").splitlines()
    return [re.compile(line) for line in lines if line and not line.startswith("#")]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    patterns = allowed_patterns()
    found, refused = [], []
    for results in sys.argv[1:]:
        for test, cases, reason in undone(results):
            line = f"{test}: {reason}"
            where = f"{results}: {line}" + "".join(f"\n    {case}" for case in cases)
            found.append(where)
            if not any(pattern.fullmatch(line) for pattern in patterns):
                refused.append(where)
    print("\n".join(["Skipped:"] + found) if found else "No test was skipped.", flush=True)
    if refused and os.environ.get("CI") == "true":
        print("\n".join([f"scripts/build/{ALLOWED.name} does not allow that:"] + refused))
        sys.exit("failed: tests were skipped")


if __name__ == "__main__":
    main()
