#!/usr/bin/env python3
"""What a budget holds down, and what it costs: without one and with 8 buckets.

usage: scripts/budget_table.sh [--cases LIST] [--shape 2048,2048] [--rounds 5] [--json FILE] ...
       scripts/budget_table.sh --models MODEL:SYSTEM[:SCALE[:LAYERS]],... [--rounds 5] ...

Real processes under mpirun. In each run Sluice takes turns without a budget and with each of
--budgets. Every element is verified in every iteration. Ends with 1 if one is wrong.
The cases are the 24 presets; with --models they are models in place of them. MODEL is one of
share/sluice/models, SYSTEM one of bench/systems, which says how many ranks it takes. SCALE divides
the model's dimensions, LAYERS keeps its first layers. Models take turns without joining, too: each
chunk is a bucket of its own.

The results file, by default build/results/budget-24.json, of models budget-models.json:
  version, kind ("budget-table"), date, commit, changed (the tree had changes), command, mpi, ranks,
  shape, tensors, rounds, iters, memory, budgets,
  machine: {cpu, cores, memory_bytes, kernel, system}
  cases: one for each preset or model that has a whole round
    case, tensor_bytes, payload_bytes, rounds (how many are whole)
    ranks, scale, layers, tensors: of a model
    budgets: {"0": B, "8": B}; "0" is without a budget. B:
      buckets        of all ranks, each once
      peak_buckets   most buckets at once, on the busiest rank of all rounds
      peak_bytes     most staging at once, likewise
      peak_ops       most messages and copies at once, likewise
      limit_buckets  0: none
      limit_bytes    0: none
      growth_bytes   by how much resident memory grew on the rank where it grew most, in all rounds;
                     null where the kernel does not say
      allowed_bytes  what it may grow by
      time_us        Q
      ratio          Q of time / time of the same run's "0" of "budgets"; of that itself 1
    apart: of a model: the same without joining
  summary: {"8": {peak_buckets, peak_bytes, growth_bytes: {without, with}, the most of all cases;
    ratio: {least, median, most, cases} of the cases' medians}}
Q is {min, p25, median, p75, max, rounds: [one value for each round]}; a value is the median of the
run's iterations, and ratios are of the same run.
"""
import argparse
import json
import os

import bench_rounds
from bench_rounds import ROOT, Failure, median, quartiles
import make_models  # below bench_rounds, which knows its folder

PRESETS = "build/results/budget-24.json"
MODELS = "build/results/budget-models.json"
JOINED, APART = "coalesce", "no-coalesce"  # what lanes of models are called


def parse():
    parser = argparse.ArgumentParser(prog="budget_table.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    bench_rounds.add_options(parser, PRESETS)
    parser.add_argument("--models", default="", metavar="LIST",
                        help="MODEL:SYSTEM[:SCALE[:LAYERS]], with commas between, in place of "
                             f"presets; results go to {MODELS}")
    parser.add_argument("--budgets", default="8", help="in buckets, with commas between [8]")
    parser.add_argument("--memory", default="private", choices=("private", "shared"),
                        help="that tensors are in [private]")
    args = parser.parse_args()
    try:
        args.budgets = [bench_rounds.positive(text) for text in args.budgets.split(",")]
    except (ValueError, argparse.ArgumentTypeError):
        parser.error(f"--budgets: {args.budgets} is not a list of numbers from 1 on")
    try:
        args.models = [Model(text) for text in args.models.split(",") if text]
    except (ValueError, KeyError, OSError, argparse.ArgumentTypeError) as error:
        parser.error(f"--models: {error}")
    if args.models and args.json == os.path.join(ROOT, PRESETS):
        args.json = os.path.join(ROOT, MODELS)
    return args


class Model:
    """A model on the ranks of a system."""

    def __init__(self, text):
        parts = text.split(":")
        if not 2 <= len(parts) <= 4:
            raise ValueError(f"{text} is not MODEL:SYSTEM[:SCALE[:LAYERS]]")
        self.model, self.system = parts[:2]
        self.scale = bench_rounds.positive(parts[2]) if len(parts) > 2 else 1
        self.layers = bench_rounds.positive(parts[3]) if len(parts) > 3 else 0
        self.name = f"{parts[0]}/{parts[1]}"
        with open(f"{ROOT}/bench/systems/{self.system}.json", encoding="utf-8") as file:
            sides = json.load(file)
        self.ranks = sum(sides[side]["num_gpus"] for side in ("train", "generation"))
        if self.model not in make_models.MODELS:
            raise ValueError(f"there is no model {self.model}")

    def flags(self):
        return ["--model", self.model, "--system", self.system, "--scale", str(self.scale),
                "--layers", str(self.layers)]


def by_budget(case, results):
    """{budget: the result of that lane}."""
    lanes = {}
    for result in results:
        assert result["case"].startswith(f"{case}/budget-"), result["case"]
        lanes[int(result["case"].removeprefix(f"{case}/budget-").split("/")[0])] = result
    return lanes


def by_lane(case, results):
    """{joined or not: {budget: the result of that lane}}."""
    return {joining: by_budget(case, [r for r in results if r["coalesce"] == (joining == JOINED)])
            for joining in (JOINED, APART)}


def most(values):
    values = list(values)
    return None if None in values else max(values)


def summarise_lane(mine, without):
    """One lane's results, and those of the lane that it is compared with, in the same runs."""
    times = [result["time_us"]["median"] for result in mine]
    return {
        "buckets": mine[0]["buckets"],
        "peak_buckets": most(result["peak"]["buckets"] for result in mine),
        "peak_bytes": most(result["peak"]["bytes"] for result in mine),
        "peak_ops": most(result["peak"]["ops"] for result in mine),
        "limit_buckets": mine[0]["limit"]["buckets"],
        "limit_bytes": mine[0]["limit"]["bytes"],
        "growth_bytes": most(result["memory"]["growth_bytes"] for result in mine),
        "allowed_bytes": mine[0]["memory"]["allowed_bytes"],
        "time_us": quartiles(times),
        "ratio": quartiles([t / w["time_us"]["median"] for t, w in zip(times, without)]),
    }


def summarise_budgets(runs, free, budgets):
    """`runs`: {budget: result} of each round. `free`: what they are compared with, likewise."""
    return {str(budget): summarise_lane([run[budget] for run in runs], free)
            for budget in [0, *budgets]}


def summarise_preset(case, rounds, budgets):
    runs = [whole["run"] for whole in rounds]
    first = runs[0][0]
    return {"case": case, "tensor_bytes": first["tensor_bytes"],
            "payload_bytes": first["payload_bytes"], "rounds": len(runs),
            "budgets": summarise_budgets(runs, [run[0] for run in runs], budgets)}


def summarise_model(model, rounds, budgets):
    runs = {joining: [whole["run"][joining] for whole in rounds] for joining in (JOINED, APART)}
    free = [run[0] for run in runs[JOINED]]
    return {"case": model.name, "ranks": model.ranks, "scale": model.scale, "layers": model.layers,
            "tensors": free[0]["tensors"], "tensor_bytes": free[0]["tensor_bytes"],
            "payload_bytes": free[0]["payload_bytes"], "rounds": len(rounds),
            "budgets": summarise_budgets(runs[JOINED], free, budgets),
            "apart": summarise_budgets(runs[APART], free, budgets)}


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
    for suffix, budgets in (("", case["budgets"]), (" apart", case.get("apart", {}))):
        for budget, of in budgets.items():
            ratio = of["ratio"]
            print(f"{case['case'] + suffix:<48} {budget:>7} {of['peak_buckets']:>8} "
                  f"{mib(of['peak_bytes']):>12} {of['peak_ops']:>8} "
                  f"{mib(of['growth_bytes']):>12} {of['time_us']['median'] / 1e3:>10.2f} "
                  f"{ratio['median']:>6.2f} ({ratio['p25']:.2f} .. {ratio['p75']:.2f})")


def measure_presets(args, flags):
    def run(case, _):
        return by_budget(case, bench_rounds.run_case(args, case, flags))

    rounds = bench_rounds.measure(args, bench_rounds.chosen_cases(args), ["run"], run)
    return [summarise_preset(case, of, args.budgets) for case, of in rounds.items() if of]


def measure_models(args, flags):
    models = {model.name: model for model in args.models}

    def run(case, _):
        model = models[case]
        return by_lane(case, bench_rounds.run_reshard(
            args, model.ranks, [*model.flags(), *flags, "--compare-coalesce", "on,off"]))

    rounds = bench_rounds.measure(args, list(models), ["run"], run)
    return [summarise_model(models[case], of, args.budgets) for case, of in rounds.items() if of]


def head(args, cases):
    results = bench_rounds.head(args, "budget-table")
    if args.models:
        results["ranks"] = max(case["ranks"] for case in cases)
        del results["shape"], results["tensors"]
    return results


def main():
    args = parse()
    flags = ["--memory", args.memory, "--compare-budgets", ",".join(map(str, [0, *args.budgets]))]
    cases = (measure_models if args.models else measure_presets)(args, flags)
    if not cases:
        raise Failure("no case has a whole round: give more --minutes, or fewer --cases")
    results = head(args, cases)
    results["memory"] = args.memory
    results["budgets"] = args.budgets
    results["cases"] = cases
    results["summary"] = summarise(cases, args.budgets)
    bench_rounds.write(args.json, results)
    print(f"{'case':<48} {'budget':>7} {'buckets':>8} {'staging MiB':>12} {'messages':>8} "
          f"{'grown MiB':>12} {'ms':>10} {'ratio':>6} (quartiles)")
    for case in cases:
        show(case)
    return 0


if __name__ == "__main__":
    bench_rounds.main_of(main)
