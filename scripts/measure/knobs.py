"""Automatic knobs against a grid of fixed ones, preset by preset.

For each preset one run of sluice-bench, in which automatic and every point of the grid (and each
knob of it with the other automatic) take --iters turns. `against_best` compares with the best
point, which half of the iterations choose and the other half compare, and the other way round: the
smallest of many medians of the same iterations would be too small by luck alone.
"""
import statistics

import presets
from presets import cases  # noqa: F401  that of this competitor, too
from rounds import MPIRUN, results_of, spread

BASELINE = AUTO = "bucket-auto/in-flight-auto"  # as the program calls it


def options(parser):
    presets.options(parser)
    parser.add_argument("--bucket-bytes", default="256K,1M,4M,8M,16M",
                        help="of the grid [256K,1M,4M,8M,16M]")
    parser.add_argument("--max-in-flight", default="1,2,4", help="likewise [1,2,4]")
    parser.set_defaults(rounds=1, iters=12, shape="4096,4096")


def build(args):
    if args.iters < 4 or args.iters % 2:
        raise ValueError("--iters: an even number, at least 4")


def turns(args, case):
    return [lambda: times(case, results_of([
        *MPIRUN, args.ranks, args.bin / "sluice-bench", "reshard", *presets.flags(args, case), "-w",
        1, "-n", args.iters, "--check", 0, "--compare-bucket-bytes", "auto," + args.bucket_bytes,
        "--compare-max-in-flight", "auto," + args.max_in_flight], timeout=900)["results"])]


def times(case, results):
    return {result["case"].removeprefix(case + "/"): {
        "chosen": "{bucket_bytes} B x {max_in_flight}".format(**result["chosen"]),
        "time_us": float(result["time_us"]["median"]), "each": tuple(result["iterations_us"])}
        for result in results}


def extra(_, found):
    return {"against_best": [against_best(case["case"], {
        way: [time for one in of_rounds for time in one[way]["each"]] for way in of_rounds[0]})
        for case, of_rounds in found]}


def against_best(case, times):
    """Automatic's time over the best point's, in the iterations that did not choose it."""
    automatic = times.pop(AUTO)
    halves = [range(0, len(automatic), 2), range(1, len(automatic), 2)]

    def best_of(some):
        return min(times, key=lambda way: statistics.median(times[way][i] for i in some))

    ratios = [automatic[i] / times[best][i] for chosen_by, compared in (halves, halves[::-1])
              for best in [best_of(chosen_by)] for i in compared]
    return {"case": case, "best": best_of(range(len(automatic))), "ratio": spread(ratios)}
