#!/usr/bin/env python3
"""Resident memory grows by no more than the staging of the budget and a constant; growth shows.

  reshard_memory_test.py MPIRUN SLUICE_BENCH
"""
import itertools
import sys

from bench_run import run_tests
from few import few
from reshard_run import Bench

BESIDE_STAGING = 8 << 20
WORLD = 4
# Columns to rows: what a target needs comes in as many pieces as there are sources and rows.
FLAGS = ["--dtype", "f32", "--src-mesh", "2", "--src-ranks", "0-1", "--src-placements", "S(0)",
         "--dst-mesh", "2", "--dst-ranks", "2-3", "--dst-placements", "S(1)", "-n", "1"]
# 32 MiB for each target: more than a rank may take.
LATE = ["--shape", "1024,1024", "--tensors", "16", "--windowed", "2"]
WHOLE = ["--shape", "2048,2048", "--tensors", "4"]
KNOBS = [(LATE, "4K", "16"), (LATE, "16K", "16"), (LATE, "256K", "1"), (WHOLE, "64K", "4"),
         (WHOLE, "1M", "1"), (WHOLE, "8M", "2")]
WIRES = {"direct": (["--transport", "direct"], {}),
         "shared memory": (["--transport", "mpi"], {"btl": "self,vader"}),
         "tcp": (["--transport", "mpi"], {"btl": "self,tcp"})}


def check_memory(result):
    memory = result["memory"]
    assert memory["method"] in ("peak", "sampled"), memory
    assert memory["allowed_bytes"] == result["limit"]["bytes"] + BESIDE_STAGING, result
    assert 0 <= memory["growth_bytes"] <= memory["allowed_bytes"], result
    assert 0 <= memory["rank"] < WORLD, memory


def every_wire_keeps_to_the_budget(bench):
    for (wire, (flags, mca)), (tensors, bucket, budget) in few(
            itertools.product(WIRES.items(), KNOBS)):
        code, output, results = bench.run(
            WORLD, FLAGS + tensors + flags + ["--bucket-bytes", bucket, "--budget-buckets",
                                              budget], mca=mca)
        assert code == 0, (wire, output)
        check_memory(results["results"][0])


def without_a_budget_it_is_the_slots_that_channels_fill(bench):
    output, results = bench.passes(
        WORLD, FLAGS + WHOLE + ["--bucket-bytes", "64K", "--budget-buckets", "0",
                                "--budget-bytes", "0", "--transport", "mpi"])
    result = results["results"][0]
    slots = result["peak_without_budget"]["buckets"] * (64 << 10)
    assert result["memory"]["allowed_bytes"] == slots + BESIDE_STAGING, result
    # Huge pages of staging, and slots that have had the largest bucket in turns, are no fault.
    output, _ = bench.passes(
        WORLD, ["--shape", "600,2", "--tensors", "40", "--src", "4:S(0)", "--dst", "4:S(1)",
                "--compare-coalesce", "on,off", "--compare-budgets", "0,2"])


def growth_is_found(bench):
    small = FLAGS + ["--shape", "512,512", "--bucket-bytes", "64K", "--budget-buckets", "2"]
    for more in ([], ["--windowed", "1"], ["--transport", "mpi"]):
        code, output, results = bench.run(WORLD, small + more + ["--grow", "32M"])
        assert code != 0, output
        result = results["results"][0]
        memory = result["memory"]
        assert memory["growth_bytes"] >= 32 << 20 > memory["allowed_bytes"], memory
        assert result["wrong"] == 0, result
        message = f"the resident memory of rank {memory['rank']} grew by "
        assert message in results["errors"][0]["message"], results["errors"]
        assert message in output and "FAILED" in output, output
        output, results = bench.passes(WORLD, small + more + ["--grow", "2M"])
        assert results["results"][0]["memory"]["growth_bytes"] >= 2 << 20, results


def every_lane_has_its_own(bench):
    output, results = bench.passes(
        WORLD, FLAGS + WHOLE + ["--compare-budgets", "1,8", "--compare-transports", "direct,mpi",
                                "--bucket-bytes", "128K", "--baseline", "isend", "--wide"])
    assert len(results["results"]) == 4, output
    for result in results["results"]:
        check_memory(result)
    header = [line for line in output.splitlines() if "(grown/may)" in line]
    assert len(header) == 1, output


def main():
    run_tests((every_wire_keeps_to_the_budget, without_a_budget_it_is_the_slots_that_channels_fill,
              growth_is_found, every_lane_has_its_own), Bench(sys.argv[1], sys.argv[2]))


if __name__ == "__main__":
    main()
