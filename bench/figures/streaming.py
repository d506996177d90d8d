#!/usr/bin/env python3
"""Measures the goals of streaming, part by part, and writes one JSON of all runs.

  bench/figures/streaming.py --bin build/bin --dir WORKDIR --out build/results/streaming.json

A part that is measured again replaces its results, the others stay. Python's standard library,
nginx, curl and fio. scripts/report.py shows the results.
"""
import argparse
import importlib
import pathlib
import sys
import time

import facts
import results_file
from runs import Bench
from setup import Setup
from shards import Shards

# Each is a module of parts/, and takes about so many minutes on two cores.
MINUTES = {"grid": 14, "tails": 3, "pacing": 3, "disk": 2.5, "http": 2, "read_once": 0.5,
           "memory": 0.5, "crowd": 1.5, "first_item": 3, "loaders": 1.5}
REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=REPOSITORY / "build/bin",
                        help="where sluice-bench is")
    parser.add_argument("--dir", type=pathlib.Path, required=True,
                        help="for shards, about 2 GiB; they stay for the next time")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the JSON")
    parser.add_argument("--only", default=",".join(MINUTES), help="parts, with commas between")
    parser.add_argument("--rounds", type=int, help="of each part, instead of its own number")
    parser.add_argument("--quick", action="store_true",
                        help="one short round of few settings, to try it out")
    arguments = parser.parse_args()
    unknown = set(arguments.only.split(",")) - set(MINUTES)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(MINUTES)}")
    return arguments


def main():
    arguments = parse_arguments()
    arguments.dir.mkdir(parents=True, exist_ok=True)
    bin_folder = arguments.bin.resolve()
    bench = Bench(bin_folder / "sluice-bench", REPOSITORY / "scripts/mpirun.sh")
    setup = Setup(bench, Shards(bench, arguments.dir), bin_folder, arguments.rounds,
                  arguments.quick)
    names = arguments.only.split(",")
    if not arguments.quick:
        print(f"about {sum(MINUTES[name] for name in names):.0f} minutes", file=sys.stderr)
    machine = facts.machine(bench)
    for name in names:
        begin = time.monotonic()
        part = importlib.import_module(f"parts.{name}").measure(setup)
        minutes = (time.monotonic() - begin) / 60
        head = facts.head(f"bench/figures/streaming.py --only {name}", arguments.rounds)
        results_file.merge(arguments.out, name, {
            "quick": arguments.quick, "machine": machine, "date": head["date"],
            "commit": head["commit"], "command": head["command"], "minutes": minutes, **part})


if __name__ == "__main__":
    main()
