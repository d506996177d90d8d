#!/usr/bin/env python3
"""Random redistributions over mpirun against the brute-force oracle.

  reshard_random_test.py MPIRUN SLUICE_BENCH WORLD SEED [GPU FLAG...]

With flags for GPUs: fewer cases, and none of what goes with host memory or one node only. Tries a
fifth of the cases, others each day, unless SLUICE_TEST_THOROUGH is set. SLUICE_TEST_SEED repeats
those of a day.
"""
import math
import sys

from few import THOROUGH, day, few
from reshard_cases import random_box_cases, random_cases
from reshard_oracle import BYTES, dtypes, expected_payload, expected_targets, is_partial
from reshard_run import Bench

CASES = 40 if THOROUGH else 8
MAX_ELEMENTS = 6000  # most of the time goes into the oracle, which visits each
GPU_CASES = 12
BOX_CASES = 25 if THOROUGH else 5
KNOBS = [
    ["--bucket-bytes", "1K", "--max-in-flight", "1", "--budget-buckets", "1"],
    ["--bucket-bytes", "4K", "--budget-buckets", "3", "--ranks-per-node", "2",
     "--memory", "private"],
    ["--bucket-bytes", "16K", "--budget-buckets", "0", "--budget-bytes", "0",
     "--transport", "mpi"],
    ["--baseline", "serial,isend,alltoallw,gather-broadcast"],
]
GPU_KNOBS = [
    ["--bucket-bytes", "1K", "--max-in-flight", "1", "--budget-buckets", "1"],
    ["--bucket-bytes", "4K", "--budget-buckets", "6"],
]


def check_limits(result):
    for what in ("buckets", "bytes"):
        limit = result["limit"][what]
        assert limit == 0 or result["peak"][what] <= limit, result


def check_payload(case, result):
    if not is_partial(case):
        assert result["payload_bytes"] == expected_payload(case), (case, result)
        return
    element = max(BYTES[dtype] for dtype in dtypes(case))
    most = sum(math.prod(target["local_shape"]) for target in result["target_ranks"]) * element
    assert 0 <= result["payload_bytes"] <= most, (case, result, most)


def check_baselines(case, result):
    baselines = result.get("baselines", {})
    src_dtype, dst_dtype = dtypes(case)
    for name, theirs in baselines.items():
        if theirs is None:
            assert name == "alltoallw" and result["baseline_reasons"][name], (case, result)
            continue
        assert name != "alltoallw" or (src_dtype == dst_dtype and not is_partial(case)), case
        assert theirs["wrong"] == 0, (case, result)
        assert theirs["time_us"] > 0 and theirs["ratio"] > 0, (case, result)
        assert theirs["ratio_p25"] <= theirs["ratio_p75"], (case, result)


def check_case(case, result, seed):
    assert result["case"] == case["id"]
    assert result["wrong"] == 0, result
    expected = expected_targets(case, seed)
    assert result["target_ranks"] == expected, (case, result["target_ranks"], expected)
    check_payload(case, result)
    check_baselines(case, result)
    if result["payload_bytes"] == 0:
        assert result["gb_per_s"] == 0, result
    check_limits(result)


def run_cases(bench, world, cases, all_knobs, gpu):
    file = bench.write("cases.json", {"cases": cases})
    hashes = None
    for i, knobs in enumerate(all_knobs):
        fill_seed = 7 * i
        args = ["--cases", file, "-n", "2", "-w", "0", "--fingerprint", "--seed",
                str(fill_seed)]
        output, results = bench.passes(world, args + knobs + gpu)
        assert "# Out of bounds values : 0 OK" in output, output
        assert results["errors"] == [], results["errors"]
        assert len(results["results"]) == len(cases)
        for case, result in zip(cases, results["results"]):
            check_case(case, result, fill_seed)
        new_hashes = [result["plan_hash"] for result in results["results"]]
        assert new_hashes != hashes, "other options are another plan"
        hashes = new_hashes


def main():
    mpirun, program, world, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    gpu = sys.argv[5:]
    if not THOROUGH:
        print(f"Cases of SLUICE_TEST_SEED={1000 * day()}.", flush=True)
        seed += 10 * day()
    bench = Bench(mpirun, program)
    cases = random_cases(1000 * seed + world, world, GPU_CASES if gpu else CASES, MAX_ELEMENTS)
    some = list if world < 16 else few
    knobs = GPU_KNOBS if gpu else some(KNOBS)
    run_cases(bench, world, cases, knobs, gpu)
    print(f"{len(knobs)} x {len(cases)} redistributions on {world} ranks are as the oracle says")
    if not gpu:
        boxes = random_box_cases(1000 * seed + world, world, BOX_CASES, MAX_ELEMENTS)
        knobs = some(KNOBS[:-1])  # baselines know no boxes
        run_cases(bench, world, boxes, knobs, gpu)
        print(f"{len(knobs)} x {BOX_CASES} with boxes are, too")


if __name__ == "__main__":
    main()
