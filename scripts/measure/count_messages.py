#!/usr/bin/env python3
"""Counts the messages of each stage of a session, on simulated ranks (scripts/smpi.sh --messages).

usage: count_messages.py [--ranks 16,64,512] [--code NAME] [--program FILE] [--json FILE]

--program is a sluice-smpi-messages that is built already, as of another commit. --code says what
its rows are called ("now"). Rows of --json FILE that are not counted again are kept. 512 ranks take
minutes.
"""
import argparse
import json
import os
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))


def count(ranks, program):
    command = [os.path.join(ROOT, "scripts/smpi.sh"), "-n", str(ranks), "--messages", *program]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nfailed with {done.returncode}")
    return json.loads(done.stdout)["stages"]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="16,64,512")
    parser.add_argument("--code", default="now")
    parser.add_argument("--program")
    parser.add_argument("--json")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    program = [os.path.abspath(arguments.program)] if arguments.program else []
    for ranks in map(int, arguments.ranks.split(",")):
        row = {"code": arguments.code, "ranks": ranks, "stages": count(ranks, program)}
        for stage in row["stages"]:
            print(f"{arguments.code} {ranks:4} {stage['stage']:14} {stage['control_max']:6} "
                  f"{stage['us']:9.0f} us", flush=True)
        if arguments.json:
            keep(arguments.json, row)


def keep(path, row):
    """Adds the row, in the place of an older one."""
    found = {"command": "scripts/smpi.sh -n RANKS --messages", "rows": []}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    rows = [other for other in found["rows"]
            if (other["code"], other["ranks"]) != (row["code"], row["ranks"])]
    found["rows"] = sorted(rows + [row], key=lambda each: (each["code"], each["ranks"]))
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
