#!/usr/bin/env python3
"""Puts what scripts/gpu_check.sh has measured into one file and one table."""
import argparse
import json
import pathlib
import re


def read_steps(path):
    lines = path.read_text().splitlines()
    return dict(line.split("\t", 1) for line in lines)


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
    return name, result["time_us"]["median"], result["alg_bw"], result["wrong"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", required=True, help="name and driver, as nvidia-smi prints them")
    parser.add_argument("--steps", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()

    name, _, driver = args.gpu.partition(",")
    report = {"gpu": name.strip(), "driver": driver.strip(), "steps": read_steps(args.steps)}
    for path in sorted(args.results.glob("*.json")):
        report[path.stem] = json.loads(path.read_text())

    lines = [f"On {report['gpu']}, driver {report['driver']}.", "", "| step | outcome |",
             "|---|---|"]
    lines += [f"| {step} | {outcome} |" for step, outcome in report["steps"].items()]
    if "device" in report:
        lines += ["", "| case | against a plain copy | GB/s |", "|---|---|---|"]
        lines += [f"| {case} | {ratio:.2f} | {rate:.0f} |"
                  for case, ratio, rate in device_rows(report["device"])]
        if rivals := list(rival_rows(report["device"])):
            lines += ["", *rival_table(rivals)]
    others = ("device", "stream")
    names = [path.stem for path in sorted(args.results.glob("*.json")) if path.stem not in others]
    rows = [row for name in names if (row := reshard_row(name, report[name]))]
    if rows:
        lines += ["", "| reshard | median us | algbw GB/s | wrong |", "|---|---|---|---|"]
        lines += [f"| {row[0]} | {row[1]:.0f} | {row[2]:.1f} | {row[3]} |" for row in rows]

    args.out.mkdir(parents=True, exist_ok=True)
    stem = "gpu-" + re.sub(r"[^A-Za-z0-9]+", "-", report["gpu"]).strip("-").lower()
    (args.out / f"{stem}.json").write_text(json.dumps(report, indent=1) + "\n")
    (args.out / f"{stem}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
