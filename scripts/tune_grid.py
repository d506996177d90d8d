#!/usr/bin/env python3
"""Compares automatic knobs with a grid of fixed ones, preset by preset.

For each preset one run of sluice-bench, in which automatic and every point of the grid (and each
knob of it with the other automatic) take turns.
The best point is chosen by half of the rounds and compared with in the other half, and the other
way round: the smallest of many medians of the same rounds would be too small by luck alone.
"""
import argparse
import fnmatch
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PRESETS = [f"etha-{number}-{source}" for source in ("no_partial", "replicate_dp", "partial_dp")
           for number in range(1, 9)]
AUTO = "/bucket-auto/in-flight-auto"  # what the lane is called
TIMEOUT_S = 900


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="*", default=["*"], help="names, or patterns [all]")
    parser.add_argument("--program", default="build/bin/sluice-bench")
    parser.add_argument("--ranks", default="16", help="of mpirun [16]")
    parser.add_argument("--shape", default="4096,4096", help="of each tensor [4096,4096]")
    parser.add_argument("--tensors", default="2", help="of each preset [2]")
    parser.add_argument("--rounds", type=int, default=12, help="timed rounds, even [12]")
    parser.add_argument("--bucket-bytes", default="256K,1M,4M,8M,16M",
                        help="of the grid, or '' for automatic alone [256K,1M,4M,8M,16M]")
    parser.add_argument("--max-in-flight", default="1,2,4", help="likewise [1,2,4]")
    parser.add_argument("--flags", default="", help="more flags of sluice-bench reshard, in a word")
    parser.add_argument("--save", help="write what was measured here, as JSON")
    return parser.parse_args()


def with_auto(points):
    return ",".join(["auto"] + [point for point in points.split(",") if point])


def run_preset(preset, options, folder):
    """The results of one run, by what its lanes are called."""
    file = os.path.join(folder, "results.json")
    command = [os.path.join(HERE, "mpirun.sh"), "--oversubscribe", "-np", options.ranks,
               options.program, "reshard", "--preset", preset, "--shape", options.shape,
               "--tensors", options.tensors, "-w", "1", "-n", str(options.rounds), "--check", "0",
               "--compare-bucket-bytes", with_auto(options.bucket_bytes),
               "--compare-max-in-flight", with_auto(options.max_in_flight), "--json", file]
    done = subprocess.run(command + options.flags.split(), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stdout[-3000:]}")
    with open(file, encoding="utf-8") as results:
        results = json.load(results)["results"]
    return {result["case"].removeprefix(preset): result for result in results}


def best_of(grid, rounds):
    """The point with the smallest median in `rounds`."""
    return min(grid, key=lambda lane: statistics.median(grid[lane][r] for r in rounds))


def against_best(results):
    """Automatic's time over the best point's in the rounds that did not choose it, ascending; and
    the best point by all rounds."""
    times = {lane: result["iterations_us"] for lane, result in results.items()}
    automatic = times[AUTO]
    grid = {lane: of_lane for lane, of_lane in times.items() if lane != AUTO}
    halves = [range(0, len(automatic), 2), range(1, len(automatic), 2)]
    ratios = []
    for chosen_by, compared_in in (halves, halves[::-1]):
        best = grid[best_of(grid, chosen_by)]
        ratios += [automatic[r] / best[r] for r in compared_in]
    return sorted(ratios), best_of(grid, range(len(automatic)))


def row_of(preset, results):
    ratios, best = against_best(results)
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    chosen = results[AUTO]["chosen"]
    point = results[best]["chosen"]
    return (f"{preset:20} {results[AUTO]['time_us']['median'] / 1e3:9.1f} "
            f"{knobs_text(chosen):>12} {results[best]['time_us']['median'] / 1e3:9.1f} "
            f"{knobs_text(point):>12} {middle:7.2f} ({low:.2f}-{high:.2f})"), middle


def knobs_text(knobs):
    return f"{knobs['bucket_bytes'] / 1024:g}K x {knobs['max_in_flight']}"


def main():
    options = parse_arguments()
    if options.rounds < 4 or options.rounds % 2 != 0:
        sys.exit("--rounds: an even number, at least 4")
    presets = [name for name in PRESETS
               if any(fnmatch.fnmatch(name, pattern) for pattern in options.presets)]
    if not presets:
        sys.exit(f"no preset is called that; there are: {', '.join(PRESETS)}")
    print(f"{'preset':20} {'auto, ms':>9} {'chosen':>12} {'best, ms':>9} {'its knobs':>12} "
          "auto / best, median (quartiles) of rounds that did not choose the best", flush=True)
    saved, medians = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for preset in presets:
            saved[preset] = run_preset(preset, options, folder)
            row, median = row_of(preset, saved[preset])
            medians.append(median)
            print(row, flush=True)
    print(f"median of presets {statistics.median(medians):.3f}, worst {max(medians):.3f}, "
          f"{sum(median <= 1.05 for median in medians)} of {len(medians)} within 1.05")
    if options.save:
        with open(options.save, "w", encoding="utf-8") as file:
            json.dump(saved, file)


if __name__ == "__main__":
    main()
