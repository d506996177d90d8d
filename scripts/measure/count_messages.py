#!/usr/bin/env python3
"""Counts the messages of each stage of a session, on simulated ranks (scripts/smpi.sh --messages).

usage: count_messages.py [--ranks 16,64,512] [--code NAME] [--program FILE] [--json FILE]

--program is a sluice-smpi-messages that is built already, as of another commit. --code says what
its rows are called ("now"). Rows of --json FILE that are not counted again are kept. 512 ranks take
minutes.
"""
import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/figures"))

import rounds  # noqa: E402  after the folder is known


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=rounds.listed(int), default=[16, 64, 512])
    parser.add_argument("--code", default="now")
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    program = [arguments.program.resolve()] if arguments.program else []
    rows = {}
    if arguments.json and arguments.json.exists():
        found = json.loads(arguments.json.read_text(encoding="utf-8"))["rows"]
        rows = {(row["code"], row["ranks"]): row for row in found}
    for ranks in arguments.ranks:
        stages = json.loads(rounds.call([rounds.ROOT / "scripts/smpi.sh", "-n", ranks, "--messages",
                                         *program], timeout=None))["stages"]
        rows[arguments.code, ranks] = {"code": arguments.code, "ranks": ranks, "stages": stages}
        for stage in stages:
            print(f"{arguments.code} {ranks:4} {stage['stage']:14} {stage['control_max']:6} "
                  f"{stage['us']:9.0f} us", flush=True)
        if arguments.json:
            rounds.write(arguments.json, {"command": "scripts/smpi.sh -n RANKS --messages",
                                          "rows": [rows[key] for key in sorted(rows)]})


if __name__ == "__main__":
    rounds.main_of(main)
