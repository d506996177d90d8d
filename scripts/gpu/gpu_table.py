#!/usr/bin/env python3
"""Puts what scripts/gpu_check.sh has measured into one file and one table."""
import argparse
import json
import pathlib
import re
import sys


# What one GPU, or one machine, cannot show: (what, GPUs from which on a step shows it).
OUT_OF_REACH = [
    ("copies between GPUs, their rates, and devices that are numbered otherwise", 2),
    ("three and more ranks of NCCL, and relays over it", 3),
    ("GPUs on several nodes", None),
    ("GPUs of several NUMA nodes, MIG, MPS", None),
    ("architectures other than this one's", None),
    ("runs of hours", None),
    ("overlap of packing, moving and unpacking", None),
]
# What results of an earlier version may lack: (what, the step that shows it).
LATER_STEPS = [
    ("events, late destinations and runs in the caller's stream", "streams"),
    ("captures of graphs beside a session", "captures"),
    ("memory of pools and managed memory over CUDA IPC", "memory"),
]


def read_steps(folder):
    """The last outcome of each step: {name: (what it proves, outcome)}, as they came first."""
    steps = {}
    path = folder / "steps.tsv"
    for line in path.read_text().splitlines() if path.exists() else []:
        name, proves, outcome = line.split("\t", 2)
        steps[name] = (proves, without_folders(outcome))
    return steps


def read_results(folder):
    """What steps have written: {step: JSON}. A step that was ended early leaves none, or half."""
    results = {}
    for path in sorted(folder.glob("*.json")):
        try:
            results[path.stem] = without_folders(json.loads(path.read_text()))
        except ValueError:
            print(f"{path} is not whole")
    return results


def without_folders(value):
    """The same without the folders of this machine in paths."""
    if isinstance(value, dict):
        return {key: without_folders(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without_folders(each) for each in value]
    return re.sub(r"(?<![\w.])/(?:[^/\s]+/)+", "", value) if isinstance(value, str) else value


def outcome_lines(steps, gpus):
    # What skips some of its tests has passed, and says how many, and why.
    passed = {name: (proves, outcome) for name, (proves, outcome) in steps.items()
              if outcome == "passed" or outcome.startswith("passed, ")}
    lines = ["| proven | step |", "|---|---|"]
    lines += [f"| {proves} | {name}{outcome.removeprefix('passed')} |"
              for name, (proves, outcome) in passed.items()]
    lines += ["", "| not proven | why |", "|---|---|"]
    lines += [f"| {proves} | {name}: {outcome} |" for name, (proves, outcome) in steps.items()
              if name not in passed]
    lines += [f"| {what} | no step shows it |" if least is None or gpus >= least else
              f"| {what} | it takes {least} GPUs |" for what, least in OUT_OF_REACH]
    lines += [f"| {what} | {step}: not run |" for what, step in LATER_STEPS if step not in steps]
    return lines


def device_rows(report):
    """Rows of gpu_bench: each case beside the plain copy that ran in turns with it."""
    for case in report.get("cases", []):
        yield case["name"], case["ratio"], case["gb_per_s"]


def rival_rows(report):
    """Of cases that other batched copies ran beside: all of them, against the plain copy."""
    for case in report.get("cases", []):
        rivals = case.get("rivals", [])
        if rivals:
            yield case["name"], case["ratio"], {each["name"]: each["ratio"] for each in rivals}


def rival_table(rows):
    names = sorted({name for _, _, rivals in rows for name in rivals})
    lines = [f"| against a plain copy | Sluice | {' | '.join(names)} |",
             "|---|---|" + "---|" * len(names)]
    for case, ratio, rivals in rows:
        cells = [f"{rivals[name]:.2f}" if name in rivals else "" for name in names]
        lines.append(f"| {case} | {ratio:.2f} | {' | '.join(cells)} |")
    return lines


def reshard_row(name, report):
    results = report.get("results", [])
    if not results:
        return None
    result = results[0]
    return name, result["time_us"]["median"], result["gb_per_s"], result["wrong"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=pathlib.Path, required=True,
                        help="folder with steps.tsv and what the steps have written")
    parser.add_argument("--failed", action="store_true",
                        help="only ends with 1 if a step has failed")
    parser.add_argument("--gpu", default="", help="name and driver, as nvidia-smi prints them")
    parser.add_argument("--gpus", type=int, default=1, help="how many there are")
    parser.add_argument("--out", type=pathlib.Path, default=".")
    args = parser.parse_args()

    steps = read_steps(args.results)
    if args.failed:
        bad = ("failed", "not ended")
        return 1 if any(outcome.startswith(bad) for _, outcome in steps.values()) else 0

    name, _, driver = args.gpu.partition(",")
    results = read_results(args.results)
    report = {"gpu": name.strip(), "gpus": args.gpus, "driver": driver.strip(),
              "steps": {step: {"proves": proves, "outcome": outcome}
                        for step, (proves, outcome) in steps.items()}, **results}

    lines = [f"On {report['gpu']}, driver {report['driver']}.", "",
             *outcome_lines(steps, args.gpus)]
    if "device" in results:
        lines += ["", "| case | against a plain copy | GB/s |", "|---|---|---|"]
        lines += [f"| {case} | {ratio:.2f} | {rate:.0f} |"
                  for case, ratio, rate in device_rows(results["device"])]
        if rivals := list(rival_rows(results["device"])):
            lines += ["", *rival_table(rivals)]
    others = ("device", "stream")
    rows = [row for step, result in results.items()
            if step not in others and (row := reshard_row(step, result))]
    if rows:
        lines += ["", "| reshard | median us | algbw GB/s | wrong |", "|---|---|---|---|"]
        lines += [f"| {row[0]} | {row[1]:.0f} | {row[2]:.1f} | {row[3]} |" for row in rows]

    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / f"{args.results.name}.json").write_text(json.dumps(report, indent=1) + "\n")
    (args.out / f"{args.results.name}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
