"""What chaos.py and chaos_epochs.py share: their options, and running all of their jobs."""
import argparse
import collections
import concurrent.futures
import os
import random
import time

from chaos_launch import ROOT


def make_parser(doc, what, runs):
    """The options of a program of that docstring, whose jobs are called `what`."""
    parser = argparse.ArgumentParser(description=doc.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=runs, help=f"{what}s ({runs})")
    parser.add_argument("--seed", type=int, default=1, help=f"which {what}s (1)")
    parser.add_argument("--only", type=int, help=f"the seed of one {what}, to run it again")
    at_once = 2 * os.cpu_count()  # they wait most of their time
    parser.add_argument("--jobs", type=int, default=at_once,
                        help=f"so many at a time ({at_once})")
    parser.add_argument("--build", default=str(ROOT / "build"), help="build folder (build)")
    parser.add_argument("--keep", action="store_true", help=f"keep the folders of {what}s")
    return parser


def run_all(arguments, what, run):
    """Runs all seeds and prints what came of them; the exit code. `run` takes a seed, and gives its
    problems, its counts, and the command that repeats it."""
    seeds = [arguments.only] if arguments.only is not None else [
        random.Random(f"{arguments.seed}/{i}").getrandbits(48) for i in range(arguments.runs)]
    totals = collections.Counter()
    failed = []
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(max_workers=arguments.jobs) as pool:
        for seed, (problems, counts, again) in zip(seeds, pool.map(run, seeds)):
            totals.update(counts)
            for problem in problems:
                print(f"seed {seed}: {problem}", flush=True)
            if problems:
                failed.append(seed)
                print(f"  again: {again}", flush=True)
    for name, count in sorted(totals.items()):
        print(f"{count:10d}  {name}")
    print(f"{len(seeds)} {what}s in {time.monotonic() - started:.0f} s: "
          f"{len(failed)} failed" + (f", seeds {failed}" if failed else ": all right"))
    return 1 if failed else 0
