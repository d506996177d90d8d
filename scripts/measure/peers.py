"""Other ways to do the same redistribution on this machine, under Open MPI and MPICH.

Each run has Sluice over both transports, what one would write with MPI by hand, gather and
broadcast, and memcpy: under Open MPI with CMA (one copy by the kernel) and without, and under
MPICH, for which sluice-bench is built once more. Gloo is beside Sluice in
bench/python/compare_torch.py. Times depend on what else runs here. Ratios are to Sluice over
`direct` under Open MPI.

example: compare.py peers --cases '2-ranks-*' --json peers.json
"""
import fnmatch

from rounds import MPIRUN, ROOT, call, positive, results_of

BASELINE = "sluice direct, openmpi"
WAYS = "isend,isend-packed,alltoallw,gather-broadcast,memcpy-own"
CMA_OFF = ["--mca", "btl_vader_single_copy_mechanism", "none"]


def options(parser):
    parser.add_argument("--iters", type=positive, default=3,
                        help="timed iterations of a turn; their median counts [3]")
    parser.add_argument("--cases", default="*", metavar="PATTERN",
                        help="only cases whose names match it, as the shell's patterns do [*]")
    parser.set_defaults(rounds=11)


def build(args):
    call([ROOT / "scripts/build.sh", "mpich", "sluice-bench"], timeout=None)
    own, mpich = args.bin / "sluice-bench", ROOT / "build-mpich/bin/sluice-bench"
    args.launchers = {"openmpi": ("mpirun.openmpi", [], own),
                      "openmpi without CMA": ("mpirun.openmpi", CMA_OFF, own),
                      "mpich": ("mpirun.mpich", [], mpich)}


def cases(args):
    every = [{"case": f"2-ranks-contiguous-{bucket}", "ranks": 2, "kind": "contiguous",
              "rows": 4096 if bucket in ("64K", "256K", "1M") else 16384, "dtype": "f32",
              "bucket": bucket} for bucket in ("64K", "256K", "1M", "8M", "16M", "32M", "64M")]
    every += [{"case": f"{ranks}-ranks-{kind}-{rows}x4096-{dtype}", "ranks": ranks, "kind": kind,
               "rows": rows, "dtype": dtype, "bucket": "auto"}
              for ranks in (2, 8) for kind in ("columns-to-rows", "rows-to-columns")
              for rows in (4096, 16384) for dtype in ("bf16", "f32")]
    found = [one for one in every if fnmatch.fnmatch(one["case"], args.cases)]
    if not found:
        raise ValueError(f"there is no case {args.cases}; there are: "
                         f"{' '.join(one['case'] for one in every)}")
    return found


def turns(args, kind, ranks, rows, dtype, bucket, **_):
    sides = ["1:R", "1@1:R"]
    if kind != "contiguous":
        order = ("1", "0") if kind == "columns-to-rows" else ("0", "1")
        sides = [f"{ranks}:S({dim})" for dim in order]
    flags = ["--dtype", dtype, "--shape", f"{rows},4096", "--src", sides[0], "--dst", sides[1],
             "--compare-transports", "mpi,direct", "--baseline", WAYS, "--bucket-bytes", bucket,
             "-w", 1, "-n", args.iters, "--check", "all"]

    def turn(label):
        mpirun, mca, program = args.launchers[label]
        found = results_of([*MPIRUN[:2], *mca, "-np", ranks, program, "reshard", *flags],
                           variables={"MPIRUN": mpirun})
        return times(label, found["results"])

    return [lambda label=label: turn(label) for label in args.launchers]


def times(label, results):
    found = {}
    for result in results:
        ways = {f"sluice {result['case'].rpartition('/')[2]}": result["time_us"]["median"],
                **{name: way["time_us"] for name, way in result["baselines"].items() if way}}
        for way, time_us in ways.items():
            found[f"{way}, {label}"] = {"bytes": result["payload_bytes"],
                                        "time_us": float(time_us)}
    return found
