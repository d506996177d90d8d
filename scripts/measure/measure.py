#!/usr/bin/env python3
"""Measures what docs/performance.md, other pages and the README show, and writes
build/results/*.json.

Each file begins with machine, date, commit, command and rounds. A part that this machine does not
allow (two-nodes, wires and worlds take root; disk and http take fio, curl and nginx) is left out. A
part that fails makes this end with 1. Afterwards: tools/report/report.py FILE... shows tables
and pictures.
"""
import argparse
import pathlib
import shlex
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/figures"))

import rounds  # noqa: E402  after the folder is known
from experiments import COMPARE, EXPERIMENTS  # noqa: E402
from job import Fields, Job  # noqa: E402
from rounds import ROOT, call, say  # noqa: E402

PROGRAMS = ("sluice-bench", "sluice-sim", "micro-bench")


def parse():
    minutes = sum(one.minutes for one in EXPERIMENTS)
    names = [one.name for one in EXPERIMENTS]
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=minutes, metavar="M",
                        help=f"about how long to take, in more rounds or fewer [{minutes:g}]")
    parser.add_argument("--only", default=",".join(names), metavar="NAME,...",
                        help=", ".join(names))
    parser.add_argument("--quick", action="store_true",
                        help="one round of small sizes, to see that it works")
    parser.add_argument("--bin", type=pathlib.Path, metavar="FOLDER",
                        help="where the programs are [build/bin, built first]")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/results",
                        metavar="FOLDER", help="where the files go [build/results]")
    args = parser.parse_args()
    unknown = set(args.only.split(",")) - set(names)
    if unknown or args.minutes <= 0:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(names)}"
                     if unknown else "--minutes takes a positive number")
    args.experiments = [one for one in EXPERIMENTS if one.name in args.only.split(",")]
    return args


def compared(job, experiment, minutes):
    """What compare.py has found, of all cases in one."""
    results = {}
    for case in experiment.cases:
        words = [sys.executable, *shlex.split(job.command(experiment, **case))]
        found = rounds.results_of([*words, "--bin", job.bin, "--rounds", job.rounds(experiment),
                                   *([] if job.quick else ["--minutes", f"{minutes:.2f}"])],
                                  timeout=None, cwd=ROOT)
        for name, value in found.items():
            if isinstance(value, list) and all(isinstance(row, dict) for row in value):
                results.setdefault(name, []).extend({**case, **row} for row in value)
            else:
                results.setdefault(name, value)
    return results


def measured(job, experiment):
    cases = experiment.cases
    if job.quick and len(cases) > 2:
        cases = [cases[0], cases[-1]]
    inside = "{rounds}" in experiment.command or experiment.name == "copies"
    found = rounds.take_turns(1 if inside else job.rounds(experiment), cases,
                              lambda **case: experiment.turns(job, experiment, **case))
    for case, of_rounds in found if experiment.after else ():
        for whole in of_rounds:
            experiment.after(whole, **case)
    columns = {}
    for case in [case for case in cases] + list(experiment.labels.values()):
        for name, value in case.items():
            columns.setdefault(name, {})[str(value)] = None
    command = experiment.command.format_map(Fields(
        {name: "|".join(values) for name, values in columns.items()}, str.upper))
    return {**rounds.head(command, job.rounds(experiment)), "quick": job.quick,
            "rows": rounds.rows_of(found, experiment.baseline, experiment.key)}


def main():
    args = parse()
    if args.bin is None:
        args.bin = ROOT / "build/bin"
        call([ROOT / "scripts/build.sh", "release", *PROGRAMS], timeout=None)
    share = args.minutes / sum(one.minutes for one in args.experiments)
    failed = False
    with Job(args.bin.resolve(), share, args.quick) as job:
        for one in args.experiments:
            begin = time.monotonic()
            try:
                found = (compared(job, one, one.minutes * share) if one.command.startswith(COMPARE)
                         else measured(job, one))
            except rounds.CannotRun as reason:
                say(f"measure.py: {one.name} is left out: {reason}")
                continue
            except (rounds.Failure, OSError, KeyError, ValueError,
                    subprocess.SubprocessError) as error:
                say(f"measure.py: {one.name} failed: {type(error).__name__}: {error}")
                failed = True
                continue
            rounds.write(args.out / f"{one.name}.json", found)
            say(f"measure.py: {one.name}.json took {(time.monotonic() - begin) / 60:.1f} minutes")
    return 1 if failed else 0


if __name__ == "__main__":
    rounds.main_of(main)
