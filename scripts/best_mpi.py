#!/usr/bin/env python3
"""Sluice against the best of what MPI can do, in each of the 24 presets.

usage: scripts/best_mpi.sh [--cases LIST] [--shape 2048,2048] [--rounds 5] [--json FILE] ...

Every baseline of sluice-bench reshard runs in turns with Sluice, under Open MPI with CMA (one copy
by the kernel) and without it, with tensors in private memory (your own) and in shared memory (that
Sluice allocated). So a case has four settings, each an mpirun, and a round has all of them. Of all
ways in all settings, the one with the least median over the rounds is the best. Every element is
verified in every iteration. Ends with 1 if one is wrong, with 77 without Open MPI.

The results file, by default build/results/best-mpi.json:
  version, kind ("best-mpi"), date, commit, changed (the tree had changes), command, mpi, ranks,
  shape, tensors, rounds, iters, machine: {cpu, cores, memory_bytes, kernel, system}
  cases: one for each preset that has a whole round
    case           its name
    tensor_bytes   of all its tensors, each element once
    payload_bytes  delivered to other ranks
    rounds         how many are whole
    ours           {private: Q, shared: Q}: microseconds
    ways           {way: {private: {cma: Q, no_cma: Q}, shared: {...}}}: microseconds; of a way that
                   cannot carry out the case, null
    reasons        {way: why it cannot}
    bounds         {bound: {private: Q, shared: Q}, memcpy-own: {...}}: microseconds
    best           {way, memory, cma (true or false), time_us: Q}: the best of all four settings
    ratio          {private: Q, shared: Q}: time of the best / ours in that memory
    best_same      {private: {way, cma, time_us: Q, ratio: Q}, shared: {...}}: the best with tensors
                   in the same memory as ours, and its time / ours
    of_bound       {private: Q, shared: Q}: time of the bound / ours, of the same runs; 1 is as fast
                   as it can be
  summary: {ratio: {private: S, shared: S}, best_same: {...}, of_bound: {...}}; S is {least, median,
    most, cases} of the cases' medians
Q is {min, p25, median, p75, max, rounds: [one value for each round]}. A value is the median of the
run's iterations. "ours" is the mean of the round's two runs in that memory, as Sluice copies
directly, whatever MPI does. Bounds send no messages and are run with CMA only. Ratios are of values
of the same round.
"""
import argparse
import sys

import bench_rounds
from bench_rounds import Failure, median, quartiles

MEMORIES = ("private", "shared")
SINGLE_COPIES = ("cma", "no_cma")
WAYS = ("serial", "isend", "isend-packed", "alltoallw", "gather-broadcast")
BOUNDS = ("bound", "memcpy-own")


def parse():
    parser = argparse.ArgumentParser(prog="best_mpi.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    bench_rounds.add_options(parser, "build/results/best-mpi.json")
    parser.add_argument("--ways", default=",".join(WAYS),
                        help="baselines, with commas between [" + ",".join(WAYS) + "]")
    args = parser.parse_args()
    args.ways = args.ways.split(",")
    for way in args.ways:
        if way not in WAYS:
            parser.error(f"--ways: there is no {way}; there are: {' '.join(WAYS)}")
    return args


def single_copy_flags(version):
    """{setting: Open MPI's flags}, or None if this is not Open MPI."""
    if "Open MPI" not in version and "OpenRTE" not in version:
        return None
    number = next((word for word in version.split() if word[0].isdigit()), "4")
    if int(number.split(".")[0]) < 5:
        name = "btl_vader_single_copy_mechanism"
        return {"cma": ["--mca", name, "cma"], "no_cma": ["--mca", name, "none"]}
    return {"cma": ["--mca", "smsc", "cma"], "no_cma": ["--mca", "smsc", "^cma,knem,xpmem"]}


def times_of_run(result):
    """What one run says: {name of a way, or ours: microseconds, or None}."""
    times = {name: theirs and theirs["time_us"] for name, theirs in result["baselines"].items()}
    times["ours"] = result["time_us"]["median"]
    return times


def our_times(rounds, memory):
    """One value for each round, whatever MPI was told."""
    return [sum(r[memory, copy]["times"]["ours"] for copy in SINGLE_COPIES) / len(SINGLE_COPIES)
            for r in rounds]


def in_setting(rounds, setting, name):
    return [r[setting]["times"][name] for r in rounds]


def times_of(rounds, way):
    """{(memory, cma or no_cma): one time for each round} of a way; None if it cannot."""
    times = {setting: in_setting(rounds, setting, way) for setting in rounds[0]}
    return None if any(None in values for values in times.values()) else times


def best_of(times, settings):
    """The way and the setting with the least median."""
    return min(((way, setting) for way in times for setting in settings),
               key=lambda at: median(times[at[0]][at[1]]))


def ratios(theirs, ours):
    return quartiles([t / o for t, o in zip(theirs, ours)])


def summarise_case(case, rounds, ways):
    first = next(iter(rounds[0].values()))["result"]
    ours = {memory: our_times(rounds, memory) for memory in MEMORIES}
    bounds = {name: {memory: in_setting(rounds, (memory, "cma"), name) for memory in MEMORIES}
              for name in BOUNDS}
    all_times = {way: times_of(rounds, way) for way in ways}
    times = {way: values for way, values in all_times.items() if values}
    summary = {
        "case": case, "tensor_bytes": first["tensor_bytes"],
        "payload_bytes": first["payload_bytes"], "rounds": len(rounds),
        "ours": {memory: quartiles(ours[memory]) for memory in MEMORIES},
        "ways": {way: values and {memory: {copy: quartiles(values[memory, copy])
                                           for copy in SINGLE_COPIES} for memory in MEMORIES}
                 for way, values in all_times.items()},
        "reasons": first.get("baseline_reasons", {}),
        "bounds": {name: {memory: quartiles(of[memory]) for memory in MEMORIES}
                   for name, of in bounds.items()},
        "of_bound": {memory: ratios(bounds["bound"][memory],
                                    in_setting(rounds, (memory, "cma"), "ours"))
                     for memory in MEMORIES},
    }
    if not times:
        raise Failure(f"{case}: none of the ways can carry it out")
    way, (memory, copy) = best_of(times, list(rounds[0]))
    best = times[way][memory, copy]
    summary["best"] = {"way": way, "memory": memory, "cma": copy == "cma",
                       "time_us": quartiles(best)}
    summary["ratio"] = {memory: ratios(best, ours[memory]) for memory in MEMORIES}
    summary["best_same"] = {}
    for memory in MEMORIES:
        way, setting = best_of(times, [(memory, copy) for copy in SINGLE_COPIES])
        own = in_setting(rounds, setting, "ours")  # of the same runs
        summary["best_same"][memory] = {
            "way": way, "cma": setting[1] == "cma", "time_us": quartiles(times[way][setting]),
            "ratio": ratios(times[way][setting], own)}
    return summary


def summarise(cases):
    def over(values):
        values = list(values)
        return {"least": min(values), "median": median(values), "most": max(values),
                "cases": len(values)}
    return {
        "ratio": {m: over(c["ratio"][m]["median"] for c in cases) for m in MEMORIES},
        "best_same": {m: over(c["best_same"][m]["ratio"]["median"] for c in cases)
                      for m in MEMORIES},
        "of_bound": {m: over(c["of_bound"][m]["median"] for c in cases) for m in MEMORIES},
    }


def show(case):
    best = case["best"]
    parts = [f"{case['case']:<22} {case['ours'][m]['median'] / 1e3:9.2f} ms "
             f"{case['ratio'][m]['median']:5.2f} ({case['ratio'][m]['p25']:.2f} .. "
             f"{case['ratio'][m]['p75']:.2f})  bound {case['of_bound'][m]['median']:.2f}"
             if m == "private" else
             f"{case['ours'][m]['median'] / 1e3:9.2f} ms {case['ratio'][m]['median']:5.2f}"
             f"  bound {case['of_bound'][m]['median']:.2f}" for m in MEMORIES]
    print("  |  ".join(parts), f"  {best['way']} {best['memory']} "
          f"{'with' if best['cma'] else 'without'} CMA", flush=True)


def main():
    args = parse()
    flags = single_copy_flags(bench_rounds.mpi_version())
    if flags is None:
        print("best_mpi.sh: this takes Open MPI", file=sys.stderr)
        return bench_rounds.CANNOT_RUN_HERE

    def run(case, setting):
        memory, copy = setting
        baselines = [*args.ways, *(BOUNDS if copy == "cma" else ())]
        [result] = bench_rounds.run_case(
            args, case, ["--memory", memory, "--transport", "direct", "--baseline",
                         ",".join(baselines)], flags[copy])
        return {"result": result, "times": times_of_run(result)}

    settings = [(memory, copy) for memory in MEMORIES for copy in SINGLE_COPIES]
    rounds = bench_rounds.measure(args, bench_rounds.chosen_cases(args), settings, run)
    cases = [summarise_case(case, of, args.ways) for case, of in rounds.items() if of]
    if not cases:
        raise Failure("no case has a whole round: give more --minutes, or fewer --cases")
    results = bench_rounds.head(args, "best-mpi")
    results["cases"] = cases
    results["summary"] = summarise(cases)
    bench_rounds.write(args.json, results)
    print("case                   ours in your own memory, ratio of the best other way (quartiles)"
          "  |  ours in memory that Sluice allocated, ratio;  the best other way")
    for case in cases:
        show(case)
    return 0


if __name__ == "__main__":
    bench_rounds.main_of(main)
