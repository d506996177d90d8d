#!/usr/bin/env python3
"""Random redistributions over mpirun against the brute-force oracle.

  reshard_random_test.py MPIRUN SLUICE_BENCH WORLD SEED
"""
import sys

from reshard_cases import random_cases
from reshard_oracle import expected_payload, expected_targets
from reshard_run import Bench

CASES = 40
KNOBS = [
    ["--bucket-bytes", "1K", "--max-in-flight", "1", "--budget-buckets", "1"],
    ["--bucket-bytes", "4K", "--budget-buckets", "3", "--ranks-per-node", "2"],
    ["--bucket-bytes", "64K", "--budget-buckets", "0", "--budget-bytes", "0"],
    [],
]


def check_limits(result):
    for what in ("buckets", "bytes"):
        limit = result["limit"][what]
        assert limit == 0 or result["peak"][what] <= limit, result


def check_case(case, result, seed):
    assert result["id"] == case["id"]
    assert result["wrong"] == 0, result
    expected = expected_targets(case, seed)
    assert result["target_ranks"] == expected, (case, result["target_ranks"], expected)
    assert result["payload_bytes"] == expected_payload(case), (case, result)
    if result["payload_bytes"] == 0:
        assert result["alg_bw"] == 0, result
    check_limits(result)


def main():
    mpirun, program, world, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    bench = Bench(mpirun, program)
    cases = random_cases(1000 * seed + world, world, CASES)
    file = bench.write("cases.json", {"cases": cases})
    hashes = None
    for i, knobs in enumerate(KNOBS):
        fill_seed = 7 * i
        args = ["--cases", file, "-n", "2", "-w", "0", "--fingerprint", "--seed", str(fill_seed)]
        code, output, results = bench.run(world, args + knobs)
        assert code == 0, output
        assert "# Out of bounds values : 0 OK" in output, output
        assert results["errors"] == [], results["errors"]
        assert len(results["results"]) == len(cases)
        for case, result in zip(cases, results["results"]):
            check_case(case, result, fill_seed)
        new_hashes = [result["plan_hash"] for result in results["results"]]
        assert new_hashes != hashes, "other options are another plan"
        hashes = new_hashes
    print(f"{len(KNOBS)} x {CASES} redistributions on {world} ranks are as the oracle says")


if __name__ == "__main__":
    main()
