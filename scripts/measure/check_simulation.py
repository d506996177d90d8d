#!/usr/bin/env python3
"""Compares sluice-sim with SimGrid's SMPI and, at 16 ranks, with a real mpirun.

usage: check_simulation.py [--ranks 16,64,256] [--budgets 0,8,2] [--cases NAME,...] [--json FILE]

The same cases run in sluice-sim, as the real sluice-bench over SMPI (scripts/smpi.sh), and as the
real sluice-bench under mpirun (peaks only: its times are this machine's). Prints a table; exits 1
if a peak differs or a time is further off than --band. 256 ranks take an hour. Rows of --json FILE
that are not measured again are kept, so that a check can be done in parts.
"""
import argparse
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/figures"))

import rounds  # noqa: E402  after the folder is known
from rounds import MPIRUN, ROOT, listed, results_of  # noqa: E402

MPIRUN_RANKS = 16


# How often a waiting rank looks for messages: times are not told more finely, and each look at each
# message takes time to simulate.
def poll_us(n):
    return 0.5 if n <= 64 else 2.0


def mesh(side, dims, first, last, placements):
    return [f"--{side}-mesh", dims, f"--{side}-ranks", f"{first}-{last}",
            f"--{side}-placements", placements]


def cases(n):
    """Names and flags. Buckets are 1 MiB or less: SMPI fills all memory, if only once folded."""
    half = n // 2
    pair = 2**18 if n <= 64 else 2**16
    side = 512 if n <= 64 else 256
    to_columns = mesh("src", str(n), 0, n - 1, "S(0)") + mesh("dst", str(n), 0, n - 1, "S(1)")
    return [
        ("all-to-all", ["--shape", f"{n},{pair * n}"] + to_columns),
        ("packed", ["--shape", f"{side * n},{side * n}"] + to_columns),
        ("replicate", ["--shape", f"{512 * n},512"] + mesh("src", str(n), 0, n - 1, "S(0)")
         + mesh("dst", str(n), 0, n - 1, "R")),
        ("fsdp to tp8", ["--shape", f"{512 * n},8192"] + mesh("src", str(half), 0, half - 1, "S(0)")
         + mesh("dst", f"{half // 8},8", half, n - 1, "R,S(1)")),
        ("reduce", ["--shape", f"{256 * n},4096"]
         + mesh("src", f"4,{n // 4}", 0, n - 1, "P(sum),S(0)")
         + mesh("dst", str(n), 0, n - 1, "S(1)")),
    ]


def peak_is_certain(name, budget):
    """False where a real peak depends on how fast this machine copies: messages that end while
    others are still being packed are never held together with them."""
    return budget != 0 or name not in ("packed", "reduce")


def simulate(flags, budgets):
    """Results of sluice-sim by budget."""
    results = results_of([ROOT / "build/bin/sluice-sim", "peak", *flags, "--budget-buckets",
                          ",".join(map(str, budgets)), "--copy-latency-us", "0", "--copy-rate",
                          "1e6", "--copies-block"], timeout=None)["results"]
    return {r["budget"]: {"buckets": r["peak"]["max"], "ops": r["peak"]["ops_max"],
                          "us": r["time_us"]["median"]} for r in results}


def bench(command, flags, budget):
    """One result of sluice-bench reshard, over whatever MPI `command` starts it with."""
    result = results_of([*command, *flags, "--budget-buckets", budget], timeout=None)["results"][0]
    return {"buckets": result["peak"]["buckets"], "ops": result["peak"]["ops"],
            "us": result["time_us"]["median"], "moved": result["buckets"]}


def compare(n, options, done):
    """Adds a row to `done`, in place of an older one, as soon as it is measured."""
    budgets = options.budgets
    smpi = [ROOT / "scripts/smpi.sh", "-n", n, "--poll-us", poll_us(n)]
    mpirun = [*MPIRUN, n, ROOT / "build/bin/sluice-bench", "reshard", "--ranks-per-node", "8",
              "--transport", "mpi",  # as over SMPI: a fold is several receives at once
              "--budget-bytes", "0", "--iters", "2", "--timeout-s", "300"]
    for name, flags in cases(n):
        if options.cases and name not in options.cases:
            continue
        flags = flags + ["--max-in-flight", "2", "--bucket-bytes", "8M"]
        simulated = simulate(flags, budgets)
        for budget in budgets:
            row = {"case": name, "ranks": n, "budget": budget, "sim": simulated[budget],
                   "smpi": bench(smpi, flags, budget)}
            if n == MPIRUN_RANKS and peak_is_certain(name, budget):
                row["mpirun"] = bench(mpirun, flags, budget)
            done[(name, n, budget)] = row
            write(options.json, done)
            print(line(row), flush=True)


def read(path):
    """Rows that were measured earlier, by case, ranks and budget."""
    if not path or not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    return {(row["case"], row["ranks"], row["budget"]): row for row in rows}


def write(path, done):
    if not path:
        return
    names = [name for name, _ in cases(16)]
    order = sorted(done, key=lambda k: (k[1], names.index(k[0]), k[2] != 0, -k[2]))
    rounds.write(path, {"model": "ports", "rows": [done[key] for key in order]})


def time_ratio(row):
    return row["sim"]["us"] / row["smpi"]["us"]


def peaks_agree(row):
    others = [row[kind] for kind in ("smpi", "mpirun") if kind in row]
    return all(other[key] == row["sim"][key] for other in others for key in ("buckets", "ops"))


def line(row):
    peaks = [f"{row[kind]['buckets']}/{row[kind]['ops']}" if kind in row else "-"
             for kind in ("sim", "smpi", "mpirun")]
    return (f"{row['case']:12} {row['ranks']:5} {row['budget'] or 'none':>6} "
            f"{peaks[0]:>11} {peaks[1]:>11} {peaks[2]:>11} {row['sim']['us']:12.1f} "
            f"{row['smpi']['us']:12.1f} {time_ratio(row):7.3f}"
            + ("" if peaks_agree(row) else "   PEAKS DIFFER"))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=listed(int), default=[16, 64, 256], help="multiples of 16")
    parser.add_argument("--budgets", type=listed(int), default=[0, 8, 2], help="0: none")
    names = [name for name, _ in cases(16)]
    parser.add_argument("--cases", type=listed(str), help="of " + ", ".join(names))
    parser.add_argument("--band", type=float, default=0.1, help="most that times may differ by")
    parser.add_argument("--json", help="write the results here")
    options = parser.parse_args()
    if any(n < 16 or n % 16 for n in options.ranks):
        parser.error("--ranks takes multiples of 16")
    if set(options.cases or []) - set(names):
        parser.error("--cases takes some of " + ", ".join(names))
    rounds.call([ROOT / "scripts/build.sh", "release", "sluice-sim", "sluice-bench"], timeout=None)
    print(f"{'case':12} {'ranks':>5} {'budget':>6} {'sim':>11} {'smpi':>11} {'mpirun':>11} "
          f"{'sim us':>12} {'smpi us':>12} {'ratio':>7}   peaks: buckets/operations")
    done = read(options.json)
    for n in options.ranks:
        compare(n, options, done)
    rows = list(done.values())
    far = [row for row in rows if abs(time_ratio(row) - 1) > options.band]
    wrong = [row for row in rows if not peaks_agree(row)]
    print(f"# {len(rows)} cases: peaks differ in {len(wrong)}; times differ by more than "
          f"{options.band:.0%} in {len(far)}")
    return 1 if wrong or far else 0


if __name__ == "__main__":
    rounds.main_of(main)
