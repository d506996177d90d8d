#!/usr/bin/env python3
"""What a budget holds down, and what it costs: the 24 presets without one and with 8 buckets.

usage: scripts/budget_table.sh [--cases LIST] [--shape 2048,2048] [--rounds 5] [--json FILE] ...

Real processes under mpirun. In each run Sluice takes turns without a budget and with each of
--budgets. Every element is verified in every iteration. Ends with 1 if one is wrong.

The results file, by default bench/results/budget-24.json:
  version, kind ("budget-table"), date, commit, changed (the tree had changes), command, mpi, ranks,
  shape, tensors, rounds, iters, memory, budgets,
  machine: {cpu, cores, memory_bytes, kernel, system}
  cases: one for each preset that has a whole round
    case, tensor_bytes, payload_bytes, rounds (how many are whole)
    budgets: {"0": B, "8": B}; "0" is without a budget. B:
      peak_buckets   most buckets at once, on the busiest rank of all rounds
      peak_bytes     most staging at once, likewise
      limit_buckets  0: none
      limit_bytes    0: none
      growth_bytes   by how much resident memory grew on the rank where it grew most, in all rounds;
                     null where the kernel does not say
      allowed_bytes  what it may grow by
      time_us        Q
      ratio          Q of time with this budget / time without one; of "0" 1
  summary: {"8": {peak_buckets, peak_bytes, growth_bytes: {without, with}, the most of all cases;
    ratio: {least, median, most, cases} of the cases' medians}}
Q is {min, p25, median, p75, max, rounds: [one value for each round]}; a value is the median of the
run's iterations, and ratios are of the same run.
"""
import argparse

import bench_rounds
from bench_rounds import Failure, median, quartiles


def parse():
    parser = argparse.ArgumentParser(prog="budget_table.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    bench_rounds.add_options(parser, "bench/results/budget-24.json")
    parser.add_argument("--budgets", default="8", help="in buckets, with commas between [8]")
    parser.add_argument("--memory", default="private", choices=("private", "shared"),
                        help="that tensors are in [private]")
    args = parser.parse_args()
    try:
        args.budgets = [bench_rounds.positive(text) for text in args.budgets.split(",")]
    except (ValueError, argparse.ArgumentTypeError):
        parser.error(f"--budgets: {args.budgets} is not a list of numbers from 1 on")
    return args


def by_budget(case, results):
    """{budget: the result of that lane}."""
    lanes = {}
    for result in results:
        assert result["id"].startswith(f"{case}/budget-"), result["id"]
        lanes[int(result["id"].rsplit("-", 1)[1])] = result
    return lanes


def most(values):
    values = list(values)
    return None if None in values else max(values)


def summarise_budget(runs, budget):
    mine = [run[budget] for run in runs]
    times = [result["time_us"]["median"] for result in mine]
    without = [run[0]["time_us"]["median"] for run in runs]
    return {
        "peak_buckets": most(result["peak"]["buckets"] for result in mine),
        "peak_bytes": most(result["peak"]["bytes"] for result in mine),
        "limit_buckets": mine[0]["limit"]["buckets"],
        "limit_bytes": mine[0]["limit"]["bytes"],
        "growth_bytes": most(result["memory"]["growth_bytes"] for result in mine),
        "allowed_bytes": mine[0]["memory"]["allowed_bytes"],
        "time_us": quartiles(times),
        "ratio": quartiles([t / w for t, w in zip(times, without)]),
    }


def summarise_case(case, rounds, budgets):
    runs = [whole["run"] for whole in rounds]
    first = runs[0][0]
    return {"case": case, "tensor_bytes": first["tensor_bytes"],
            "payload_bytes": first["payload_bytes"], "rounds": len(runs),
            "budgets": {str(budget): summarise_budget(runs, budget) for budget in [0, *budgets]}}


def summarise(cases, budgets):
    summary = {}
    for budget in map(str, budgets):
        ratios = [case["budgets"][budget]["ratio"]["median"] for case in cases]
        summary[budget] = {
            name: {"without": most(case["budgets"]["0"][name] for case in cases),
                   "with": most(case["budgets"][budget][name] for case in cases)}
            for name in ("peak_buckets", "peak_bytes", "growth_bytes")}
        summary[budget]["ratio"] = {"least": min(ratios), "median": median(ratios),
                                    "most": max(ratios), "cases": len(ratios)}
    return summary


def mib(count):
    return "N/A" if count is None else f"{count / (1 << 20):.1f}"


def show(case):
    for budget, of in case["budgets"].items():
        ratio = of["ratio"]
        print(f"{case['case']:<22} {budget:>7} {of['peak_buckets']:>8} {mib(of['peak_bytes']):>12} "
              f"{mib(of['growth_bytes']):>12} {of['time_us']['median'] / 1e3:>10.2f} "
              f"{ratio['median']:>6.2f} ({ratio['p25']:.2f} .. {ratio['p75']:.2f})")


def main():
    args = parse()
    budgets = ",".join(map(str, [0, *args.budgets]))

    def run(case, _):
        return by_budget(case, bench_rounds.run_case(
            args, case, ["--memory", args.memory, "--compare-budgets", budgets]))

    rounds = bench_rounds.measure(args, bench_rounds.chosen_cases(args), ["run"], run)
    cases = [summarise_case(case, of, args.budgets) for case, of in rounds.items() if of]
    if not cases:
        raise Failure("no case has a whole round: give more --minutes, or fewer --cases")
    results = bench_rounds.head(args, "budget-table")
    results["memory"] = args.memory
    results["budgets"] = args.budgets
    results["cases"] = cases
    results["summary"] = summarise(cases, args.budgets)
    bench_rounds.write(args.json, results)
    print(f"{'case':<22} {'budget':>7} {'buckets':>8} {'staging MiB':>12} {'grown MiB':>12} "
          f"{'ms':>10} {'ratio':>6} (quartiles)")
    for case in cases:
        show(case)
    return 0


if __name__ == "__main__":
    bench_rounds.main_of(main)
