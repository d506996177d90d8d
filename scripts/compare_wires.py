#!/usr/bin/env python3
"""The table of compare_wires.sh: the rate of each wire, and its ratio to Open MPI's in the rounds.

  compare_wires.py --rounds N --wires tcp,ucx [--json FILE] FOLDER

FOLDER holds the results of `sluice-bench reshard` as WIRE-ROUND.json, with WIRE mpi, tcp or ucx.
"""
import argparse
import json
import pathlib
import statistics


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--wires", required=True)
    parser.add_argument("--json", default="")
    parser.add_argument("folder", type=pathlib.Path)
    return parser.parse_args()


def size_name(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def quartiles(values):
    """Lower quartile, median, upper quartile."""
    if len(values) == 1:
        return values * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def medians(results):
    """Median microseconds of each size."""
    return {each["payload_bytes"]: each["time_us"]["median"] for each in results["results"]}


def row(size, runs, wires):
    """One line: the rates, and for each wire its ratio with quartiles."""
    mpi = [medians(run)[size] for run in runs["mpi"]]
    cells = [f"{size_name(size):>8}", f"{size / statistics.median(mpi) / 1e3:8.2f}"]
    for wire in wires:
        ours = [medians(run)[size] for run in runs[wire]]
        low, middle, high = quartiles([a / b for a, b in zip(mpi, ours)])
        ratio = f"{middle:.2f} [{low:.2f} .. {high:.2f}]"
        cells.append(f"{size / statistics.median(ours) / 1e3:8.2f}  {ratio:<21}")
    return "  ".join(cells).rstrip()


def main():
    options = arguments()
    wires = options.wires.split(",")
    runs = {wire: [json.loads((options.folder / f"{wire}-{n}.json").read_text())
                   for n in range(options.rounds)] for wire in ["mpi", *wires]}
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(runs, indent=1) + "\n")
    for wire in ["mpi", *wires]:
        carried = ", ".join(f"{each['wire']} {each['library']}".strip()
                            for each in runs[wire][0].get("wires", []))
        print(f"# {wire}: {carried}")
    print("# rates in 10^9 bytes per second; ratio: time of mpi / ours, median [quartiles] of "
          f"{options.rounds} rounds")
    columns = "".join(f"  {wire:>8}  {'ratio':<21}" for wire in wires)
    print(f"{'# size':<8}  {'mpi':>8}{columns}".rstrip())
    for size in sorted(medians(runs["mpi"][0])):
        print(row(size, runs, wires))


if __name__ == "__main__":
    main()
