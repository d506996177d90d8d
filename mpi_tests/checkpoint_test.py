#!/usr/bin/env python3
"""sluice-bench checkpoint, alone and under mpirun: what it reports, and how it ends.

  checkpoint_test.py MPIRUN SLUICE_BENCH
"""
import os
import sys

from bench_run import BenchRun

SMALL = ["--shape", "64,32", "--tensors", "3"]


def made(bench, name, world, *more):
    """Arguments that write a checkpoint of their own, and load it."""
    return ["--path", bench.path(name), "--make", "--layout", f"{max(1, world)}:S(0)", *SMALL,
            *more]


def good(bench):
    for world in (0, 3):
        os.mkdir(bench.path(f"good-{world}"))
        code, output, results = bench.run(world, made(bench, f"good-{world}", world, "-n", "2"))
        assert code == 0, output
        assert results["errors"] == [], results
        assert "# error" not in output, output
        assert results["config"]["world"] == max(1, world), results
        assert results["config"]["hosts"] == 1, results
        assert [result["mode"] for result in results["results"]] == ["save", "load"], results
        for result in results["results"]:
            assert result["wrong"] == 0 and result["tensors"] == 3, result
            assert result["bytes"] == 3 * 64 * 32 * 4, result


def refused(bench, world, args, expected, by_rank=None):
    """An error that all ranks have: an orderly end, and a results file with just that error."""
    code, output, results = bench.run(world, args, timeout_s=60, by_rank=by_rank)
    assert code == 2, (args, code, output)
    assert expected in output, (args, output)
    assert "MPI_FINALIZE" not in output, (args, output)
    assert len(results["errors"]) == 1 and expected in results["errors"][0], (args, results)


def bad_input(bench):
    os.mkdir(bench.path("empty"))
    for args, expected in (
            (["--path", bench.path("empty"), "--layout", "2:S(0)"], "empty"),
            (["--path", bench.path("nowhere"), "--layout", "2:S(0)", *SMALL], "nowhere"),
            (["--path", bench.path("empty"), "--layout", "2:Q", *SMALL], "Q"),
            (["--path", bench.path("empty"), "--budget-bytes", "lots"], "--budget-bytes"),
            (["--path", "http://127.0.0.1:1/x", "--make", "--layout", "2:S(0)", *SMALL],
             "no directory"),
            (["--layout", "2:S(0)"], "--path")):
        refused(bench, 2, args, expected)


def other_ranks_are_named(bench):
    os.mkdir(bench.path("other"))
    args = made(bench, "other", 3)
    for more, expected in ((["--seed", "7"], "different seed: rank 0 has 0, rank 2 has 7"),
                           (["--dtype", "bf16"], "different dtype"),
                           (["--nonsense"], "rank 2: ")):
        refused(bench, 3, args, expected, by_rank={2: args + more})
    assert os.listdir(bench.path("other")) == []


# Rank 2 waits for a file that never comes, so that the others lose it.
def a_silent_rank_ends_the_job(bench):
    os.mkdir(bench.path("silent"))
    os.mkfifo(bench.path("pipe"))
    args = made(bench, "silent", 3, "--timeout-s", "1")
    stuck = ["--path", bench.path("silent"), "--model", bench.path("pipe"), "--system", "none"]
    code, output, results = bench.run(3, args, timeout_s=60, by_rank={2: stuck})
    assert code == 1, (code, output)
    assert "sluice-bench checkpoint: rank 0: " in output, output
    # The job ends when rank 0 has written this down.
    assert len(results["errors"]) == 1, results
    assert "no word from rank 2" in results["errors"][0], results
    assert "# error: no word from rank 2" in output, output


def unwritable_results(bench):
    os.mkdir(bench.path("unwritten"))
    code, output, _ = bench.run(2, made(bench, "unwritten", 2),
                                results_file="/nowhere/results.json")
    assert code == 2 and "/nowhere/results.json" in output, output
    assert os.listdir(bench.path("unwritten")) == []


def main():
    bench = BenchRun(sys.argv[1], sys.argv[2], "checkpoint")
    for test in (good, bad_input, other_ranks_are_named, a_silent_rank_ends_the_job,
                 unwritable_results):
        test(bench)
        print(f"ok {test.__name__}", flush=True)


if __name__ == "__main__":
    main()
