"""Sees to it that each test of each program is part of an entry of CTest.

  every_test_runs.py BUILD

Entries name source files and patterns (which_tests.h). A test that no entry chooses would never
run, and nobody would notice.
"""
import collections
import json
import os
import subprocess
import sys


def listed(command):
    """Names of the tests that the command would run; none where it takes a GPU that is not here."""
    done = subprocess.run([*command, "--gtest_list_tests"], stdout=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode not in (0, 77):
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    names, suite = set(), ""
    for line in done.stdout.splitlines():
        line = line.split("#")[0].rstrip()
        if line.startswith("  "):
            names.add(suite + line.strip())
        elif line.endswith("."):
            suite = line
    return names


def main():
    build = sys.argv[1]
    entries = json.loads(subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"], stdout=subprocess.PIPE, text=True,
        check=True).stdout)["tests"]
    chosen = collections.defaultdict(set)
    for entry in entries:
        words = entry.get("command", [])
        which = [i for i, word in enumerate(words) if word.startswith("--which=")]
        if not which or not os.path.exists(words[which[0] - 1]):
            continue  # not built here
        program = words[which[0] - 1]
        own = [word for word in words if word.startswith(("--which=", "--gtest_filter="))]
        chosen[program] |= listed([program, *own])
    missing = []
    for program, names in sorted(chosen.items()):
        for name in sorted(listed([program]) - names):
            missing.append(f"{os.path.basename(program)}: {name}")
    count = sum(map(len, chosen.values()))
    print(f"{count} tests of {len(chosen)} programs are part of an entry")
    if missing or not count:
        sys.exit("No entry of CTest runs\n  " + "\n  ".join(missing))


if __name__ == "__main__":
    main()
