#!/usr/bin/env python3
"""Prints what crossed the link of scripts/two_nodes.sh, beside the time, and writes it as JSON."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

INCLUDES = ("All bytes since before mpirun started: payload of all runs, those to warm up too, "
            "starting and ending the job, headers (Ethernet, IP, TCP; one for up to 64 KiB, as the "
            "kernel segments later) and acknowledgements.")


def planned_bytes(args, bench):
    """Bytes from node-a to node-b, and back, of a run of each plan, by the plan's name.

    None where that is not to be had: of another program, of several cases, of plans for other nodes
    or budgets, or where others than plans have sent.
    """
    config = bench["config"]
    if config["ranks_per_node"] or config["compare_budgets"] or config["baselines"]:
        return None
    command = without_json(args.command)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "plans.json")
        done = subprocess.run(command + ["--plan-only", "--ranks-per-node", str(args.ranks),
                                         "--json", file], stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            return None
        with open(file, encoding="utf-8") as results:
            plans = json.load(results)["results"]
    bytes_of = {}
    for plan in plans:
        across = [0, 0]
        for route in plan["routes"]:
            src, dst = route["src"] // args.ranks, route["dst"] // args.ranks
            if src != dst:
                across[src] += route["bytes"]
        bytes_of[plan["plan"]] = across
    return bytes_of if len(bytes_of) == len(plans) else None


def without_json(command):
    kept = list(command)
    for flag in ("-J", "--json"):
        if flag in kept:
            at = kept.index(flag)
            del kept[at:at + 2]
    return kept


def quantile(values, share):
    return sorted(values)[int(share * (len(values) - 1) + 0.5)]


def compare(first, other):
    """The rounds' ratios of times."""
    ratios = [theirs / ours for theirs, ours in zip(other["iterations_us"], first["iterations_us"])]
    return {"median": statistics.median(ratios), "p25": quantile(ratios, 0.25),
            "p75": quantile(ratios, 0.75)}


def run_facts(result, first, planned):
    facts = {"case": result["case"], "plan": result["plan"],
             "median_ms": result["time_us"]["median"] / 1e3,
             "payload_bytes": result["payload_bytes"]}
    if planned:
        facts["planned_a_to_b_bytes"], facts["planned_b_to_a_bytes"] = planned[result["plan"]]
    if result is not first:
        facts["time_over_first"] = compare(first, result)
    return facts


def add_results(args, bench, out):
    results, config = bench["results"], bench["config"]
    out["results"] = bench
    if not results or any(result.get("baselines") for result in results):
        return
    out["runs"] = config["warmup"] + config["iters"]  # of each result
    planned = planned_bytes(args, bench)
    out["compared"] = [run_facts(result, results[0], planned) for result in results]
    if planned:
        for way in ("a_to_b_bytes", "b_to_a_bytes"):
            out["planned_" + way] = out["runs"] * sum(
                facts["planned_" + way] for facts in out["compared"])


def report(args):
    out = {"rate": args.rate, "fabric": args.fabric, "ranks_per_node": args.ranks,
           "command": args.command,
           "exit_code": args.exit_code, "seconds": args.seconds,
           "a_to_b_bytes": args.a_to_b, "b_to_a_bytes": args.b_to_a, "includes": INCLUDES}
    if args.results and os.path.exists(args.results):
        with open(args.results, encoding="utf-8") as file:
            add_results(args, json.load(file), out)
    return out


def result_line(facts):
    line = f"# {facts['case']} : median {facts['median_ms']:.1f} ms"
    if "time_over_first" in facts:
        line += ", {median:.2f} [{p25:.2f} .. {p75:.2f}] times the first".format(
            **facts["time_over_first"])
    line += f"; delivered to other ranks: {facts['payload_bytes']} bytes"
    if "planned_a_to_b_bytes" in facts:
        line += "; to cross: {planned_a_to_b_bytes}, back: {planned_b_to_a_bytes}".format(**facts)
    return line


def show(out):
    print(f"# Two nodes of {out['ranks_per_node']} ranks, link of {out['rate']} each way; the "
          f"job took {out['seconds']:.2f} s")
    for facts in out.get("compared", []):
        print(result_line(facts))
    print(f"# Link, node-a to node-b : {out['a_to_b_bytes']} bytes; back: {out['b_to_a_bytes']}")
    if "planned_a_to_b_bytes" in out:
        print("# Planned, {runs} runs of each : {planned_a_to_b_bytes} bytes; back: "
              "{planned_b_to_a_bytes}".format(**out))
    print("# Link: " + out["includes"].replace(": ", ":\n#   ").replace("TCP; ", "TCP;\n#   "))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", required=True)
    parser.add_argument("--fabric", required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--exit-code", type=int, required=True)
    parser.add_argument("--a-to-b", type=int, required=True)
    parser.add_argument("--b-to-a", type=int, required=True)
    parser.add_argument("--results", default="", help="what sluice-bench reshard has written")
    parser.add_argument("--json", default="", help="where to write")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    out = report(args)
    show(out)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(out, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
