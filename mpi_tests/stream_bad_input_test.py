#!/usr/bin/env python3
"""Bad flags, bad sources, failing storage and damaged items end in a clear error, exit code 2
or 1, and a results file, soon.

  stream_bad_input_test.py MPIRUN SLUICE_BENCH
"""
import functools
import pathlib
import sys

from bench_run import run_tests
from few import few
from stream_run import Bench, check_times
from together import together

GENERATOR = ["--source", "generator", "--items", "20", "--item-bytes", "4K"]

# Arguments, and a part of the message.
ARGUMENTS = [
    ([], "--source"),
    (["--source", "tape:/dev/st0"], "tape:/dev/st0"),
    (["--source", "file:"], "file:"),
    (["--source", "file:/nowhere/at/all"], "/nowhere/at/all"),
    (["--source", "file:/nowhere/at/all", "--format", "npy"], "/nowhere/at/all"),
    (["--source", "http://127.0.0.1:1/x/"], "127.0.0.1"),
    (["--source", "http://127.0.0.1:1/x/", "--format", "raw", "--item-bytes", "1"], "index.json"),
    (["--source", "generator"], "--items"),
    (["--source", "file:/tmp", "--format", "raw"], "--item-bytes"),
    (["--source", "file:/tmp", "--format", "tar"], "--format"),
    (["--source", "file:/tmp", "--generate-ms", "1"], "--generate-ms"),
    (GENERATOR + ["--format", "npy"], "--format"),
    (GENERATOR + ["--item-bytes", "lots"], "--item-bytes"),
    (GENERATOR + ["--budget-bytes", "x"], "--budget-bytes"),
    (GENERATOR + ["--budget-bytes", "100"], "4096"),
    (GENERATOR + ["--piece-bytes", "-1"], "--piece-bytes"),
    (GENERATOR + ["--slots", "-1"], "--slots"),
    (GENERATOR + ["--latency-ms", "-1"], "--latency-ms"),
    (GENERATOR + ["--latency-ms", "nan"], "nan"),
    (GENERATOR + ["--tail-percent", "1"], "--latency-ms"),
    (GENERATOR + ["--tail-percent", "101"], "--tail-percent"),
    (GENERATOR + ["--fault", "odd:0.1"], "odd"),
    (GENERATOR + ["--order", "random"], "--order"),
    (GENERATOR + ["--hedge", "2"], "--hedge"),
    (GENERATOR + ["--exchange", "perhaps"], "--exchange"),
    (GENERATOR + ["--share", "some"], "--share"),
    (GENERATOR + ["--connections", "0"], "--connections"),
    (GENERATOR + ["--transform", "u8:f32:1"], "--transform"),
    (GENERATOR + ["--transform", "u8:i8:1:0"], "i8"),
    (GENERATOR + ["--transform", "u8:f32:inf:0"], "--transform"),
    (["--source", "generator", "--items", "2", "--item-bytes", "3", "--transform",
      "bf16:f32:1:0"], "whole"),
    (GENERATOR + ["--timeout-s", "0"], "--timeout-s"),
    (GENERATOR + ["--trace-epochs", "1"], "--trace"),
    (GENERATOR + ["--iters", "0"], "--iters"),
    (GENERATOR + ["--baseline", "nonsense"], "threads:WxQ"),
    (GENERATOR + ["--baseline", "threads:0x4"], "threads:WxQ"),
    (GENERATOR + ["--baseline", "serial,serial"], "twice"),
    (GENERATOR + ["--generate-order", "one-ahead", "--generate-ahead", "2"], "--generate-ahead"),
    (GENERATOR + ["--generate-order", "one-ahead", "--hedge", "1"], "--hedge"),
    (GENERATOR + ["--generate-order", "one-ahead", "--device-buffers", "1"], "--device-buffers"),
    (GENERATOR + ["--generate-order", "one-ahead", "--slots", "1"], "two batches"),
    (GENERATOR + ["--generate-order", "later"], "--generate-order"),
    (GENERATOR + ["--baseline", "loop", "--transform", "u8:f32:1:0"], "--transform"),
    (["--source", "file:/tmp", "--baseline", "loop"], "loop"),
    (["--source", "file:/tmp", "--generate-order", "free"], "--generate-order"),
    (GENERATOR + ["--generate-order", "after-update", "--baseline", "serial"], "--baseline"),
    (GENERATOR + ["--cursor", "here"], "cursor"),
    (GENERATOR + ["--unknown"], "--unknown"),
    (GENERATOR + ["--corrupt", "1", "--check", "none"], "--corrupt"),
]


# Found only by those that reads and deliveries go through: a failure, not bad usage.
LATE = ("127.0.0.1", "4096", "cursor", "two batches")


def refused_at_once(bench, args, expected):
    results = bench.refused(0, args, expected, code=1 if expected in LATE else 2)
    assert all(result["items"] == 0 for result in results["results"]), (args, results)


def bad_flags(bench):
    together(functools.partial(refused_at_once, bench, *row) for row in few(ARGUMENTS))
    for args, expected in few(ARGUMENTS[::8]):
        bench.refused(3, args, expected, code=1 if expected in LATE else 2)


def other_ranks_are_named(bench):
    for more in (["--batch", "2"], ["--nonsense"], ["--order", "completed"], ["--seed", "1"],
                 ["--baseline", "serial"]):
        bench.refused(3, GENERATOR, "2", by_rank={2: GENERATOR + more}, code=2)


def unwritable_results(bench):
    bench.cannot_write_results(2, GENERATOR)


def damaged(bench, source, world, more):
    code, output, results = bench.run(
        world, source + ["--corrupt", "4", "--baseline", "serial,threads:2x2"] + more)
    assert code != 0 and "FAILED" in output, output
    check_times(results)
    assert len(results["results"]) == 3, results
    for result in results["results"]:
        assert result["wrong"] == 4 * max(1, world), result


def damage_is_counted(bench):
    source = ["--source", "buffered:" + bench.shards("u8", "raw", 30, 5000)]
    together(few(functools.partial(damaged, bench, source, world, more)
                 for more in ([], ["--check", "sample"], ["--transform", "u8:f16:0.1:0"],
                              ["--order", "completed"], ["--share", "deal"])
                 for world in (0, 2)))
    code, output, results = bench.run(0, source + ["--fill-seed", "1"])
    assert code != 0 and results["results"][0]["wrong"] > 0.9 * 30 * 5000, output


def fails(bench, world, args, expected):
    results = bench.refused(world, args, expected, code=1)
    check_times(results)
    # Sluice's own run comes first, and ends all.
    assert [result["case"] for result in results["results"]] == ["sluice"], results


def storage_that_fails(bench):
    # Only what hangs may have waited for too long.
    together(few(functools.partial(
        fails, bench, world, GENERATOR + ["--fault", fault, "--request-timeout-s", seconds,
                                          "--attempts", "2", "--baseline", "serial"], text)
                 for fault, seconds, text in (
                     ("permanent:0.3", "100", "stays"), ("short:0.3", "100", "ends before"),
                     ("transient:1x9", "100", "passes"),
                     ("hang:1", "0.05", "nearly nothing came"))
                 for world in (0, 3)))


def objects_that_are_gone(bench):
    jobs = []
    for scheme in ("file", "buffered", "mmap"):
        directory = bench.shards(f"gone-{scheme}", "raw", 30, 5000, "--items-per-object", "10")
        (pathlib.Path(directory) / "shard-000001.bin").unlink()
        for more in ([], ["--exchange", "0"]):
            for world in (0, 3):
                jobs.append(functools.partial(
                    fails, bench, world, ["--source", f"{scheme}:{directory}"] + more,
                    "shard-000001.bin"))
    together(few(jobs))


def a_wait_without_end(bench):
    args = GENERATOR + ["--fault", "hang:1", "--timeout-s", "0.5"]
    bench.refused(0, args, "waited", code=1)


def main():
    run_tests((bad_flags, other_ranks_are_named, unwritable_results, damage_is_counted,
              storage_that_fails, objects_that_are_gone, a_wait_without_end), Bench(sys.argv[1],
              sys.argv[2]))


if __name__ == "__main__":
    main()
