#!/usr/bin/env python3
"""Compares Sluice with another way, in turns, and prints tables.

usage: compare.py COMPETITOR [OPTION...]        compare.py COMPETITOR --help has its options

Every element is verified in every turn: ends with 1 if one is wrong, with 77 where this machine
lacks what it takes. Packages that are missing are installed. A file of results has at its head the
machine, date, commit and command. A row is of a case and a way: spreads of its times, and `ratio`,
of the rounds' times over those of the way that is the baseline. tools/report/report.py shows and
draws such files.
"""
import argparse
import contextlib
import importlib
import os
import pathlib
import shlex
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/figures"))

import rounds  # noqa: E402  after the folder is known
import table  # noqa: E402
from rounds import ROOT, call, positive  # noqa: E402

COMPETITORS = ("best_mpi", "budgets", "checkpoints", "knobs", "loaders", "peers", "transforms",
               "wires")


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="competitor", required=True, metavar="COMPETITOR")
    for name in COMPETITORS:
        module = importlib.import_module(name)
        name = name.replace("_", "-")
        one = commands.add_parser(name, description=module.__doc__,
                                  help=module.__doc__.split("\n", maxsplit=1)[0],
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
        one.add_argument("--rounds", type=positive, default=5, help="[%(default)s]")
        one.add_argument("--minutes", type=float, default=0, metavar="M",
                         help="begin no turn after so many minutes; a round that this cuts off "
                              "does not count for the cases that it has not finished [no limit]")
        one.add_argument("--bin", type=pathlib.Path, metavar="FOLDER",
                         help="where the programs are [build/bin, built first]")
        one.add_argument("--json", default=ROOT / f"build/results/{name}.json", metavar="FILE",
                         help=f"the results [build/results/{name}.json]")
        module.options(one)
        one.set_defaults(module=module, error=one.error)
    return parser.parse_args()


def command():
    """As it was typed, but for where this machine has things."""
    words = sys.argv[1:]
    for flag in ("--bin", "--folder", "--json", "--venv"):
        while flag in words:
            del words[words.index(flag):words.index(flag) + 2]
    return shlex.join(["scripts/measure/compare.py", *words])


def main():
    args = parse()
    module = args.module
    if packages := getattr(module, "PACKAGES", ()):
        call([ROOT / "scripts/packages.sh", *packages])
    if args.bin is None:
        args.bin = ROOT / "build/bin"
        call([ROOT / "scripts/build.sh", "release",
              *getattr(module, "PROGRAMS", ("sluice-bench",))], timeout=None)
    args.bin = args.bin.resolve()
    with contextlib.ExitStack() as args.stack:
        try:
            module.build(args)
            cases = module.cases(args)
        except ValueError as error:
            args.error(str(error))
        found = rounds.take_turns(args.rounds, cases, lambda **case: module.turns(args, **case),
                                  args.minutes)
    results = {**rounds.head(command(), min(len(of_rounds) for _, of_rounds in found)),
               "mpi": (call([*rounds.MPIRUN[:1], "--version"]).splitlines() or [""])[0]
               if getattr(module, "MPI", True) else None,
               "rows": rounds.rows_of(found, module.BASELINE)}
    results.update(module.extra(args, found) if hasattr(module, "extra") else {})
    rounds.write(args.json, results)
    print(table.tables(results))
    return 0


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    rounds.main_of(main)
