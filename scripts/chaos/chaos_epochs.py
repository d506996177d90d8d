#!/usr/bin/env python3
"""Random worlds whose members come and go: every survivor ends with right contents, or an error
that names the cause.

    scripts/chaos/chaos_epochs.py --runs 10 --seed 1   # 10 worlds; a failure prints what repeats it
    scripts/chaos/chaos_epochs.py --only 1234567       # one of them again; --keep leaves its folder

A world has 3 to 8 members of two roles and a store apart. For some seconds members are killed, are
stopped for less and for more than their lease, leave, and join. The store may be restarted, and
loses its keys. Then nothing happens any more. All members that are there have to come to one epoch
of all of them, and to end it with right contents.

Half of the worlds have one epoch each, and follow one another: members join the next one when they
have done with it. Then all places are filled, and the store may be the first trainer's. Half of all
meet at an address of IPv6, where the host has it.
"""
import pathlib
import random
import shutil
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "nodes"))
sys.dont_write_bytecode = True
from chaos_elastic import ElasticWorld  # noqa: E402  (beside this file)
from chaos_run import make_parser, run_all  # noqa: E402
from chaos_store import hosts  # noqa: E402

WIRES = ("tcp", "ucx", "auto")


def main():
    arguments = make_parser(__doc__, "world", 10).parse_args()

    def run_one(seed):
        problems, counts = run(seed, arguments)
        return problems, counts, f"scripts/chaos/chaos_epochs.py --only {seed}"
    return run_all(arguments, "world", run_one)


def make(seed):
    """A world: plain data."""
    rng = random.Random(seed)
    members = rng.randint(3, 8)
    trainers = rng.randint(1, min(3, members - 1))
    # Far longer than a member says nothing only because the machine has other work.
    lease_s = rng.choice([6, 8, 10])
    silence_s = rng.choice([20, 25])
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
    world["host"] = rng.choice(hosts())
    world["again"] = rng.random() < 0.5
    world["served"] = world["again"] and rng.random() < 0.5
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
    return world.problems, world.counts


if __name__ == "__main__":
    sys.exit(main())
