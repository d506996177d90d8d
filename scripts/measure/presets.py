"""The 24 presets of sluice-bench reshard as cases, for competitors that run all of them."""
import fnmatch

from rounds import MPIRUN, ROOT, call, positive, results_of


def options(parser):
    parser.add_argument("--cases", default="*", metavar="LIST",
                        help="presets, as patterns of the shell, with commas between [all 24]")
    parser.add_argument("--shape", default="2048,2048", help="of each tensor [2048,2048]")
    parser.add_argument("--tensors", type=positive, default=2, help="of each case [2]")
    parser.add_argument("--ranks", type=positive, default=16, help="of mpirun [16]")
    parser.add_argument("--iters", type=positive, default=3,
                        help="timed iterations of a run; their median counts [3]")


def cases(args):
    """The presets that match, in their order."""
    listed = call([args.bin / "sluice-bench", "reshard", "--list-presets"])
    names = [line.split()[0] for line in listed.splitlines()]
    patterns = args.cases.split(",")
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise ValueError(f"there is no case {pattern}; there are: {' '.join(names)}")
    return [{"case": name} for name in names if any(fnmatch.fnmatch(name, p) for p in patterns)]


def flags(args, case):
    return ["--preset", case, "--shape", args.shape, "--tensors", args.tensors]


def reshard(args, ranks, more, mca=()):
    """The results of one mpirun. Every element of every iteration is verified."""
    return results_of([*MPIRUN[:2], *mca, "-np", ranks, args.bin / "sluice-bench", "reshard", "-n",
                       args.iters, "--check", "all", "--timeout-s", 200, *more])["results"]


def system(name):
    return ROOT / f"bench/systems/{name}.json"
