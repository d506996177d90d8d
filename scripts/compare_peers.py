#!/usr/bin/env python3
"""Runs Sluice and the programs of bench/peers in turns, and prints one table.

usage: through scripts/compare_peers.sh, which builds the programs and says what the options do.
"""
import argparse
import fnmatch
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import typing

TIMEOUT_S = 600
OPEN_MPI = ["mpirun.openmpi", "--oversubscribe", "-np"]
CMA_OFF = ["--mca", "btl_vader_single_copy_mechanism", "none"]
SIZES = {"K": 1 << 10, "M": 1 << 20}


class Case(typing.NamedTuple):
    name: str
    ranks: int
    kind: str
    rows: int
    columns: int
    dtype: str
    bucket: str = ""  # for contiguous ones

    @property
    def bytes(self):
        return self.rows * self.columns * self.element

    @property
    def element(self):
        return 2 if self.dtype == "bf16" else 4


def all_cases():
    cases = []
    for bucket in ("64K", "256K", "1M", "8M", "16M", "32M", "64M"):
        rows = 4096 if bucket in ("64K", "256K", "1M") else 16384
        cases.append(Case(f"2-ranks-contiguous-{bucket}", 2, "contiguous", rows, 4096, "f32",
                          bucket))
    for ranks, kind, rows, dtype in itertools.product(
            (2, 8), ("columns-to-rows", "rows-to-columns"), (4096, 16384), ("bf16", "f32")):
        cases.append(Case(f"{ranks}-ranks-{kind}-{rows}x4096-{dtype}", ranks, kind, rows, 4096,
                          dtype))
    return cases


class Way(typing.NamedTuple):
    """`run(case, folder)`: the times of one turn in microseconds."""
    name: str
    run: typing.Callable
    fits: typing.Callable = lambda case: True


def call(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\nended with {done.returncode}:\n"
                           f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def times_of(output):
    result = json.loads(output.splitlines()[-1])
    assert result["wrong"] == 0, result
    return result["times_us"]


def of_case(case, iters, **more):
    words = dict(kind=case.kind, rows=case.rows, columns=case.columns, element=case.element,
                 warmup=1, iters=iters, **more)
    return [f"{name}={value}" for name, value in words.items()]


def sluice_way(program, transport, iters):
    def run(case, folder):
        file = os.path.join(folder, "results.json")
        if case.kind == "contiguous":
            sides = ("1", "0", "R"), ("1", "1", "R")
        else:
            here, there = "S(1)", "S(0)"
            if case.kind == "rows-to-columns":
                here, there = there, here
            ranks = f"0-{case.ranks - 1}"
            sides = (str(case.ranks), ranks, here), (str(case.ranks), ranks, there)
        command = OPEN_MPI + [str(case.ranks), program, "reshard", "--dtype", case.dtype,
                              "--shape", f"{case.rows},{case.columns}", "--transport", transport,
                              "-w", "1", "-n", str(iters), "--check", "1", "--json", file]
        for side, (mesh, ranks, placements) in zip(("src", "dst"), sides):
            command += [f"--{side}-mesh", mesh, f"--{side}-ranks", ranks,
                        f"--{side}-placements", placements]
        if case.bucket:
            command += ["--bucket-bytes", case.bucket]
        call(command)
        with open(file, encoding="utf-8") as results:
            return [json.load(results)["results"][0]["time_us"]["median"]]
    return Way(f"sluice {transport}", run)


def mpi_way(label, mpirun, program, way, iters, fits=lambda case: True, **more):
    def run(case, _):
        settings = dict(more)
        if way == "window":
            number, unit = case.bucket[:-1], case.bucket[-1]
            settings["message"] = int(number) * SIZES[unit]
        return times_of(call(mpirun + [str(case.ranks), program] +
                             of_case(case, iters, way=way, **settings)))
    return Way(label, run, fits)


def gloo_way(program, iters):
    def run(case, folder):
        store = tempfile.mkdtemp(dir=folder)
        def command(rank):
            return [program] + of_case(case, iters, rank=rank, ranks=case.ranks, store=store)
        others = [subprocess.Popen(command(rank), stderr=subprocess.DEVNULL)
                  for rank in range(1, case.ranks)]
        try:
            return times_of(call(command(0)))
        finally:
            for other in others:
                try:
                    other.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    other.kill()
                    other.wait()
    return Way("gloo isend", run)


def memcpy_way(program, threads, label, iters):
    def run(case, _):
        return times_of(call([program] + of_case(case, iters, ranks=case.ranks, threads=threads)))
    return Way(label, run)


def offered_transports(program):
    text = call([program, "reshard", "--help"])
    about = re.search(r"--transport\b(.*?)\n\s*-", text, re.DOTALL)
    words = re.findall(r"\w+", about.group(1)) if about else []
    return [name for name in ("mpi", "direct") if name in words]


def all_ways(args, transports):
    def program(name):
        return os.path.join(args.programs, name)

    def windowed(case):
        return bool(case.bucket)
    ways = [sluice_way(args.sluice_bench, transport, args.iters) for transport in transports]
    for label, mca in (("", []), (" without CMA", CMA_OFF)):
        mpirun = OPEN_MPI[:1] + mca + OPEN_MPI[1:]
        for way in ("isend", "alltoallw"):
            ways.append(mpi_way(f"openmpi {way}{label}", mpirun, program("openmpi"), way,
                                args.iters))
        for window in (1, 4, 16):
            ways.append(mpi_way(f"openmpi window {window}{label}", mpirun, program("openmpi"),
                                "window", args.iters, windowed, window=window))
    ways.append(mpi_way("openmpi gather-broadcast", OPEN_MPI, program("openmpi"),
                        "gather-broadcast", args.iters))
    for way in ("isend", "alltoallw"):
        ways.append(mpi_way(f"mpich {way}", ["mpirun.mpich", "-np"], program("mpich"), way,
                            args.iters))
    ways.append(gloo_way(program("gloo"), args.iters))
    cores = os.cpu_count()
    ways.append(memcpy_way(program("memcpy"), 1, "memcpy one core", args.iters))
    ways.append(memcpy_way(program("memcpy"), cores, f"memcpy {cores} cores", args.iters))
    return ways


def measure(case, ways, args):
    """{way: its time in each round, in milliseconds}"""
    times = {way.name: [] for way in ways}
    for number in range(args.rounds):
        # Every other round backwards, so that nothing always runs after the same one.
        for way in ways if number % 2 == 0 else reversed(ways):
            with tempfile.TemporaryDirectory(prefix="peers-") as folder:
                times[way.name].append(statistics.median(way.run(case, folder)) / 1e3)
    return times


def rows_of(case, times):
    ours = min((name for name in times if name.startswith("sluice")),
               key=lambda name: statistics.median(times[name]))
    rows = []
    for name, rounds in times.items():
        median = statistics.median(rounds)
        ratios = [theirs / our for theirs, our in zip(rounds, times[ours])]
        rows.append({"case": case.name, "way": name, "median_ms": median, "min_ms": min(rounds),
                     "max_ms": max(rounds), "gb_per_s": case.bytes / median / 1e6,
                     "ratio_to": ours, "ratio": statistics.median(ratios),
                     "ratio_min": min(ratios), "ratio_max": max(ratios), "rounds_ms": rounds})
    return rows


def show(rows):
    for row in rows:
        print("{way:<34} {median_ms:>9.2f} {min_ms:>9.2f} .. {max_ms:<9.2f} {gb_per_s:>7.2f} "
              "{ratio:>6.2f} ({ratio_min:.2f} .. {ratio_max:.2f})".format(**row), flush=True)


def show_header(case, ours):
    print(f"\n{case.name}: {case.bytes} bytes; ratios: their time over that of {ours}\n"
          f"{'way':<34} {'median ms':>9} {'min':>9} .. {'max':<9} {'GB/s':>7} {'ratio':>6} "
          "(of each round)")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", required=True, help="the folder of the peers' programs")
    parser.add_argument("--sluice-bench", required=True)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--iters", type=int, default=3)
    parser.add_argument("--transports", default="")
    parser.add_argument("--cases", default="*")
    parser.add_argument("--ways", default="*")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json", default="")
    args = parser.parse_args()
    if args.rounds < 1 or args.iters < 1:
        parser.error("--rounds and --iters take numbers from 1 on")
    return args


def write(args, rows):
    if not args.json:
        return
    with open(args.json, "w", encoding="utf-8") as file:
        json.dump({"rounds": args.rounds, "iters": args.iters, "cores": os.cpu_count(),
                   "rows": rows}, file, indent=1)
        file.write("\n")


def main():
    args = parse()
    if os.geteuid() == 0:
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    transports = args.transports.split(",") if args.transports else offered_transports(
        args.sluice_bench)
    ways = [way for way in all_ways(args, transports)
            if way.name.startswith("sluice") or fnmatch.fnmatch(way.name, args.ways)]
    cases = [case for case in all_cases() if fnmatch.fnmatch(case.name, args.cases)]
    if args.list:
        print("\n".join([case.name for case in cases] + [""] + [way.name for way in ways]))
        return 0
    if not cases:
        print(f"There is no case {args.cases}.", file=sys.stderr)
        return 2
    rows = []
    for case in cases:
        fitting = [way for way in ways if way.fits(case)]
        case_rows = rows_of(case, measure(case, fitting, args))
        show_header(case, case_rows[0]["ratio_to"])
        show(case_rows)
        rows += case_rows
        write(args, rows)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"compare_peers.py: {error}", file=sys.stderr)
        sys.exit(1)
