#!/usr/bin/env python3
"""Prints what crossed the link of scripts/two_nodes.sh, beside the time, and writes it as JSON."""
import argparse
import json
import os
import sys

INCLUDES = ("All bytes since before mpirun started: payload of all runs, those to warm up too, "
            "starting and ending the job, headers (Ethernet, IP, TCP; one for up to 64 KiB, as the "
            "kernel segments later) and acknowledgements.")


def one_result(bench):
    """The only result of `sluice-bench reshard`, and how often it ran; else None."""
    results = bench["results"]
    if len(results) != 1 or results[0].get("baselines"):
        return None, 0
    return results[0], bench["config"]["warmup"] + bench["config"]["iters"]


def report(args):
    out = {"rate": args.rate, "ranks_per_node": args.ranks, "command": args.command,
           "exit_code": args.exit_code, "seconds": args.seconds,
           "a_to_b_bytes": args.a_to_b, "b_to_a_bytes": args.b_to_a, "includes": INCLUDES}
    if not args.results or not os.path.exists(args.results):
        return out
    with open(args.results, encoding="utf-8") as file:
        bench = json.load(file)
    result, runs = one_result(bench)
    if result:
        out["runs"] = runs
        out["a_to_b_bytes_per_run"] = args.a_to_b / runs
        out["b_to_a_bytes_per_run"] = args.b_to_a / runs
        out["median_ms"] = result["time_us"]["median"] / 1e3
        out["payload_bytes"] = result["payload_bytes"]
    out["results"] = bench
    return out


def show(out):
    print(f"# Two nodes of {out['ranks_per_node']} ranks, link of {out['rate']} each way; mpirun "
          f"took {out['seconds']:.2f} s")
    print(f"# Link, node-a to node-b : {out['a_to_b_bytes']} bytes; back: {out['b_to_a_bytes']}")
    if "runs" in out:
        print("# Each of {runs} runs : {a_to_b_bytes_per_run:.0f} bytes; back: "
              "{b_to_a_bytes_per_run:.0f}; median {median_ms:.1f} ms; delivered to other ranks: "
              "{payload_bytes} bytes".format(**out))
    print("# " + out["includes"].replace(": ", ":\n#   ").replace("TCP; ", "TCP;\n#   "))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", required=True)
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
