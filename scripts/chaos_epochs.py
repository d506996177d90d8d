#!/usr/bin/env python3
"""Random worlds whose members come and go: every survivor ends with right contents, or an error
that names the cause.

    scripts/chaos_epochs.py --runs 10 --seed 1   # 10 worlds; a failure prints what repeats it
    scripts/chaos_epochs.py --only 1234567       # one of them again; --keep leaves its folder

A world has 3 to 8 members of two roles and a store apart. For some seconds members are killed, are
stopped for less and for more than their lease, leave, and join. The store may be restarted, and
loses its keys. Then nothing happens any more. All members that are there have to come to one epoch
of all of them, and to end it with right contents.
"""
import argparse
import collections
import concurrent.futures
import pathlib
import random
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
from chaos_elastic import ElasticWorld  # noqa: E402  (beside this file)
from chaos_launch import ROOT  # noqa: E402

WIRES = ("tcp", "ucx", "auto")


def main():
    arguments = parse()
    seeds = [arguments.only] if arguments.only is not None else [
        random.Random(f"{arguments.seed}/{i}").getrandbits(48) for i in range(arguments.runs)]
    totals = collections.Counter()
    failed = []
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(max_workers=arguments.jobs) as pool:
        for seed, problems, counts in pool.map(lambda seed: run(seed, arguments), seeds):
            totals.update(counts)
            for problem in problems:
                print(f"seed {seed}: {problem}", flush=True)
            if problems:
                failed.append(seed)
                print(f"  again: scripts/chaos_epochs.py --only {seed}", flush=True)
    for name, count in sorted(totals.items()):
        print(f"{count:10d}  {name}")
    print(f"{len(seeds)} worlds in {time.monotonic() - started:.0f} s: "
          f"{len(failed)} failed" + (f", seeds {failed}" if failed else ": all right"))
    return 1 if failed else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=10, help="worlds (10)")
    parser.add_argument("--seed", type=int, default=1, help="which worlds (1)")
    parser.add_argument("--only", type=int, help="the seed of one world, to run it again")
    parser.add_argument("--jobs", type=int, default=2, help="so many at a time (2)")
    parser.add_argument("--build", default=str(ROOT / "build"), help="build folder (build)")
    parser.add_argument("--keep", action="store_true", help="keep the folders of worlds")
    return parser.parse_args()


def make(seed):
    """A world: plain data."""
    rng = random.Random(seed)
    members = rng.randint(3, 8)
    trainers = rng.randint(1, min(3, members - 1))
    lease_s = rng.choice([1, 2, 3])
    silence_s = rng.choice([5, 8])
    world = {"seed": seed, "roles": {"trainer": trainers, "server": members - trainers},
             "wires": rng.choice(WIRES), "direct": rng.random() < 0.5, "lease_s": lease_s,
             "silence_s": silence_s, "steps": rng.choice([3, 10, 30]),
             "kib": rng.choice([1, 16, 200]), "start_s": [0] * members, "events": []}
    if rng.random() < 0.5:
        world["start_s"] = [rng.random() * rng.choice([0, 1]) for _ in range(members)]
    at_s = 0.3
    for _ in range(rng.randint(2, 7)):
        at_s += rng.random() * 1.5
        what = rng.choices(["kill", "stop", "leave", "join", "restart"], [4, 3, 1, 3, 1])[0]
        # Shorter than the lease, longer than that, and longer than a session waits.
        length_s = rng.choice([0.05, 0.4, lease_s + 1, silence_s + 3])
        if what == "restart":
            length_s = rng.random() * 0.7
        world["events"].append({"at_s": at_s, "what": what, "pick": rng.random(),
                                "length_s": length_s})
    return world


def run(seed, arguments):
    folder = tempfile.mkdtemp(prefix="sluice-epochs-")
    world = ElasticWorld(make(seed), folder, pathlib.Path(arguments.build, "bin"))
    try:
        world.run()
    finally:
        world.end()
        if arguments.keep or (world.problems and arguments.only is not None):
            print(f"seed {seed}: see {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return seed, world.problems, world.counts


if __name__ == "__main__":
    sys.exit(main())
