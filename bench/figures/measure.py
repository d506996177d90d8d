#!/usr/bin/env python3
"""Measures what docs/performance.md shows, one file of build/results after the other.

usage: through scripts/measure.sh, which builds the programs and says what the options do.
"""
import argparse
import importlib
import pathlib
import sys
import time

import facts
import results_file
from measured.job import CannotRun, Job

# Each is a module of measured/, and takes about so many minutes on two quiet cores.
MINUTES = {"best_mpi": 13, "serial": 2.5, "budget_24": 3, "budget_models": 4.5, "sizes": 2.5,
           "squares": 4, "tiny": 0.3, "latency": 2,
           "checkpoints": 2.5, "two_nodes": 1.5, "copies": 0.3, "planning": 0.7, "waves": 4,
           "slots": 3, "hand_over": 1.5, "mmap": 1.5, "stages": 1, "generate": 1.5, "connect": 2,
           "wires": 14, "worlds": 9, "members": 15}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=sum(MINUTES.values()))
    parser.add_argument("--only", default=",".join(MINUTES))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--bin", type=pathlib.Path, default=facts.REPOSITORY / "build/bin")
    parser.add_argument("--out", type=pathlib.Path, default=facts.REPOSITORY / "build/results")
    arguments = parser.parse_args()
    arguments.names = [name.replace("-", "_") for name in arguments.only.split(",")]
    unknown = set(arguments.names) - set(MINUTES)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are "
                     f"{', '.join(MINUTES).replace('_', '-')}")
    if arguments.minutes <= 0:
        parser.error("--minutes takes a positive number")
    return arguments


def main():
    arguments = parse_arguments()
    share = arguments.minutes / sum(MINUTES[name] for name in arguments.names)
    job = Job(facts.REPOSITORY, arguments.bin.resolve(), share, arguments.quick)
    failed = []
    for name in arguments.names:
        begin = time.monotonic()
        try:
            found = importlib.import_module(f"measured.{name}").measure(job)
        except CannotRun as reason:
            print(f"measure.py: {name} is left out: {reason}", file=sys.stderr)
            continue
        except (RuntimeError, OSError, KeyError, ValueError) as error:
            print(f"measure.py: {name} failed: {type(error).__name__}: {error}", file=sys.stderr)
            failed.append(name)
            continue
        head = {**facts.head(found["command"], found["rounds"]), "quick": arguments.quick}
        path = arguments.out / (name.replace("_", "-") + ".json")
        results_file.write(path, {"head": head, **found})
        print(f"measure.py: {path.name} took {(time.monotonic() - begin) / 60:.1f} minutes",
              file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
