"""Other ways to do the same redistribution on this machine: Open MPI, MPICH and Gloo by hand
(bench/peers), gather and broadcast, and plain memcpy.

All cases take about two hours; times depend on what else runs here. Ratios are to Sluice over the
first transport.

example: compare.py peers --cases '2-ranks-*' --json peers.json
"""
import fnmatch
import json
import os
import re
import subprocess
import tempfile

from rounds import ROOT, Failure, call, positive, results_of

BASELINE = "sluice"
PACKAGES = ("mpich", "libmpich-dev", "libgloo-dev")
CMA_OFF = ["--mca", "btl_vader_single_copy_mechanism", "none"]
SIZES = {"K": 1 << 10, "M": 1 << 20}
# The compiler wrappers of both MPIs have names of their own, so both can be installed.
PEERS = {"openmpi": ["mpicxx.openmpi", "mpi_peer.cc"], "mpich": ["mpicxx.mpich", "mpi_peer.cc"],
         "gloo": [os.environ.get("CXX", "c++"), "gloo_peer.cc", "-lgloo", "-pthread"],
         "memcpy": [os.environ.get("CXX", "c++"), "memcpy_peer.cc", "-pthread"]}


def options(parser):
    parser.add_argument("--iters", type=positive, default=3,
                        help="timed iterations of a turn, after one to warm up [3]")
    parser.add_argument("--transports", default="", metavar="LIST",
                        help="of Sluice [those of mpi and direct that sluice-bench offers]")
    parser.add_argument("--cases", default="*", metavar="PATTERN",
                        help="only cases whose names match it, as the shell's patterns do [*]")
    parser.add_argument("--ways", default="*", metavar="PATTERN",
                        help="only ways whose names match it; Sluice is always there [*]")
    parser.set_defaults(rounds=11)


def build(args):
    sources = ROOT / "bench/peers"
    args.programs = ROOT / "build/peers"
    args.programs.mkdir(parents=True, exist_ok=True)
    for name, (compiler, source, *libraries) in PEERS.items():
        call([compiler, "-std=c++20", "-O3", "-w", f"-I{ROOT / 'bench'}", "-o",
              args.programs / name, sources / source, sources / "redistribution.cc",
              sources / "rounds.cc", *libraries])
    if not args.transports:
        about = re.search(r"--transport\b(.*?)\n\s*-",
                          call([args.bin / "sluice-bench", "reshard", "--help"]), re.DOTALL)
        offered = re.findall(r"\w+", about[1]) if about else []
        args.transports = ",".join(name for name in ("mpi", "direct") if name in offered)
    if os.geteuid() == 0:
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def cases(args):
    def case(name, ranks, kind, rows, dtype, bucket=""):
        return {"case": name, "ranks": ranks, "kind": kind, "rows": rows, "columns": 4096,
                "dtype": dtype, "bucket": bucket}

    every = [case(f"2-ranks-contiguous-{bucket}", 2, "contiguous",
                  4096 if bucket in ("64K", "256K", "1M") else 16384, "f32", bucket)
             for bucket in ("64K", "256K", "1M", "8M", "16M", "32M", "64M")]
    every += [case(f"{ranks}-ranks-{kind}-{rows}x4096-{dtype}", ranks, kind, rows, dtype)
              for ranks in (2, 8) for kind in ("columns-to-rows", "rows-to-columns")
              for rows in (4096, 16384) for dtype in ("bf16", "f32")]
    found = [one for one in every if fnmatch.fnmatch(one["case"], args.cases)]
    if not found:
        raise ValueError(f"there is no case {args.cases}; there are: "
                         f"{' '.join(one['case'] for one in every)}")
    return found


def turns(args, **case):
    element = 2 if case["dtype"] == "bf16" else 4

    def timed(name, run):
        time_us = float(run())
        size = case["rows"] * case["columns"] * element
        return {name: {"bytes": size, "time_us": time_us, "gb_per_s": size / time_us / 1e3}}

    def peer(program, **more):
        """The command of a program of bench/peers."""
        words = {"kind": case["kind"], "rows": case["rows"], "columns": case["columns"],
                 "element": element, "warmup": 1, "iters": args.iters, **more}
        return [args.programs / program, *(f"{key}={value}" for key, value in words.items())]

    runs = {f"sluice{' ' * (n > 0)}{transport * (n > 0)}":
            lambda transport=transport: sluice(args, case, transport)
            for n, transport in enumerate(args.transports.split(","))}
    for label, mca in (("", []), (" without CMA", CMA_OFF)):
        open_mpi = ["mpirun.openmpi", *mca, "--oversubscribe", "-np", case["ranks"]]
        more = {f"openmpi {way}{label}": {"way": way} for way in ("isend", "alltoallw")}
        if case["bucket"]:
            message = int(case["bucket"][:-1]) * SIZES[case["bucket"][-1]]
            more.update({f"openmpi window {window}{label}": {
                "way": "window", "window": window, "message": message} for window in (1, 4, 16)})
        if not mca:
            more["openmpi gather-broadcast"] = {"way": "gather-broadcast"}
        for name, words in more.items():
            runs[name] = lambda mpirun=open_mpi, words=words: median_of(
                call([*mpirun, *peer("openmpi", **words)]))
    for way in ("isend", "alltoallw"):
        runs[f"mpich {way}"] = lambda way=way: median_of(
            call(["mpirun.mpich", "-np", case["ranks"], *peer("mpich", way=way)]))
    runs["gloo isend"] = lambda: gloo(case["ranks"], peer)
    for cores in (1, os.cpu_count()):
        runs[f"memcpy, {cores} cores"] = lambda cores=cores: median_of(
            call(peer("memcpy", ranks=case["ranks"], threads=cores)))
    return [lambda name=name, run=run: timed(name, run) for name, run in runs.items()
            if name.startswith("sluice") or fnmatch.fnmatch(name, args.ways)]


def sluice(args, case, transport):
    if case["kind"] == "contiguous":
        sides = ["1:R", "1@1:R"]
    else:
        placements = ["S(1)", "S(0)"][::1 if case["kind"] == "columns-to-rows" else -1]
        sides = [f"{case['ranks']}:{one}" for one in placements]
    found = results_of(
        ["mpirun.openmpi", "--oversubscribe", "-np", case["ranks"], args.bin / "sluice-bench",
         "reshard", "--dtype", case["dtype"], "--shape", f"{case['rows']},{case['columns']}",
         "--transport", transport, "-w", 1, "-n", args.iters, "--check", 1, "--src", sides[0],
         "--dst", sides[1], *(["--bucket-bytes", case["bucket"]] if case["bucket"] else [])])
    return found["results"][0]["time_us"]["median"]


def median_of(output):
    found = json.loads(output.splitlines()[-1])
    if found["wrong"]:
        raise Failure(f"wrong elements: {found}")
    return sorted(found["times_us"])[len(found["times_us"]) // 2]


def gloo(ranks, peer):
    with tempfile.TemporaryDirectory(prefix="peers-") as store:
        commands = [peer("gloo", rank=rank, ranks=ranks, store=store) for rank in range(ranks)]
        others = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for command in commands[1:]]
        try:
            return median_of(call(commands[0]))
        finally:
            for other in others:
                try:
                    other.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    other.kill()
                    other.wait()
