#!/usr/bin/env python3
"""Streams of generated shards, alone and by several ranks, next to plain loaders.

  stream_test.py MPIRUN SLUICE_BENCH
"""
import csv
import itertools
import json
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

from bench_run import job_limit, run_tests
from few import few
from stream_run import Bench, check_memory

ITEMS = 40
ITEM_BYTES = 20000
WORLD = 3
BASELINES = ["--baseline", "serial,threads:2x3"]
DRAW_TRACE = str(pathlib.Path(__file__).parent.parent / "scripts/measure/draw_trace.py")


def expect(result, items, requests=None):
    assert result["items"] == items, result
    assert result["bytes"] == items * ITEM_BYTES, result
    if requests is not None:
        assert result["requests"] == requests, result


def every_format_with_one_rank_and_three(bench):
    forms = ("raw", "npy", "safetensors")
    directory = {form: bench.shards(form, form, ITEMS, ITEM_BYTES, "--items-per-object", "7",
                                    "--dtype", "i16", "--seed", "3") for form in forms}
    # The elements of raw files without an index would be bytes, which were filled otherwise.
    indices = [(form, "index") for form in forms] + [(form, form) for form in forms[1:]]
    for (form, index), world in few(itertools.product(indices, (0, WORLD))):
        args = ["--source", f"file:{directory[form]}", "--format", index, "--fill-seed", "3"]
        for mode in bench.good(world, args + BASELINES).values():
            expect(mode, ITEMS * max(1, world))


def every_kind_of_source(bench):
    directory = bench.path("raw")
    for scheme in ("file", "buffered", "mmap"):
        modes = bench.good(0, ["--source", f"{scheme}:{directory}", "--fill-seed", "3",
                               "--shuffle", "--epochs", "2", "--seed", "5"] + BASELINES)
        assert list(modes) == ["sluice", "serial", "threads:2x3"], modes
        for mode in modes.values():
            expect(mode, 2 * ITEMS, 2 * ITEMS)
        assert modes["sluice"]["opens"] == 6, modes["sluice"]
        if scheme != "file":  # which copies items at odd places
            assert modes["sluice"]["bytes_copied"] == 0, modes["sluice"]
        assert all(mode["cpu_s"] > 0 for mode in modes.values()), modes
    for world in (0, 2):
        modes = bench.good(world, ["--source", "generator", "--items", "30", "--item-bytes",
                                   ITEM_BYTES, "--generate-ms", "0.5"] + BASELINES)
        for mode in modes.values():
            expect(mode, 30 * max(1, world))


def each_byte_is_read_once_or_each_rank_gets_its_own(bench):
    source = ["--source", "buffered:" + bench.path("npy"), "--fill-seed", "3"] + BASELINES
    shared = bench.good(WORLD, source)
    expect(shared["sluice"], WORLD * ITEMS, ITEMS)
    assert shared["sluice"]["bytes_read"] == ITEMS * ITEM_BYTES, shared["sluice"]
    assert shared["sluice"]["opens"] == 6, shared["sluice"]
    expect(shared["serial"], WORLD * ITEMS, WORLD * ITEMS)
    for more in (["--share", "deal"], ["--exchange", "0"]):
        dealt = bench.good(WORLD, source + more)
        for mode in dealt.values():
            expect(mode, ITEMS, ITEMS)
    everything = bench.good(WORLD, source + ["--exchange", "0", "--share", "all"])
    expect(everything["sluice"], WORLD * ITEMS, WORLD * ITEMS)


def options_of_delivery(bench):
    source = ["--source", "buffered:" + bench.path("npy"), "--fill-seed", "3"]
    for more in few([
                 ["--order", "completed", "--latency-ms", "2", "--jitter", "0.9"],
                 ["--batch", "7", "--device-buffers", "1"],
                 ["--piece-bytes", "4K", "--budget-bytes", "16K", "--share", "deal"],
                 ["--slots", "1"],
                 ["--progress-thread", "1", "--consume-us", "50"],
                 ["--transform", "i16:f32:0.5:-3", "--check", "all"],
                 ["--transform", "i16:bf16:1.7:0.3", "--check", "sample"],
                 ["--check", "none"],
                 ["--check", "all", "--hedge", "--iters", "2"],
                 ["--slots", "auto", "--piece-bytes", "auto", "--exchange", "--progress-thread"],
                 ["--items", "11"]]):
        for world in (0, 2):
            items = 11 if "--items" in more else ITEMS
            ranks = 1 if "deal" in more else max(1, world)
            for mode in bench.good(world, source + more + BASELINES).values():
                expect(mode, items * ranks)


def waves_and_warm(bench):
    """All modes deliver the same; what is slow because of the latency is not in warm."""
    source = ["--source", "buffered:" + bench.path("npy"), "--fill-seed", "3", "--slots", "8",
              "--latency-ms", "20", "--baseline", "waves:8,waves:2,warm"]
    for world in (0, 2):
        modes = bench.good(world, source + ["--share", "deal"])
        assert list(modes) == ["sluice", "waves:8", "waves:2", "warm"], modes
        for mode in modes.values():
            expect(mode, ITEMS, ITEMS)
        # One read at a time cannot take less than the sum of their latencies.
        reads = ITEMS // max(1, world)
        assert modes["waves:8"]["time_us"]["median"] >= reads * 20000, modes["waves:8"]
    code, output, _ = bench.run(0, source + ["--baseline", "waves:9"])
    assert code == 1 and "8 slots" in output and "9 slabs" in output, output


def a_table_of_separated_values(bench):
    source = ["--source", "buffered:" + bench.path("npy"), "--fill-seed", "3", "--csv"]
    output, results = bench.passes(0, source + ["--baseline", "serial"])
    rows = list(csv.DictReader(line for line in output.splitlines() if not line.startswith("#")))
    assert [row["mode"] for row in rows] == ["sluice", "serial"], output
    for row, result in zip(rows, results["results"]):
        assert (int(row["requests"]), row["wrong"]) == (result["requests"], "0"), (row, result)
        assert abs(float(row["gb_per_s"]) - result["gb_per_s"]) < 1e-6, (row, result)


def a_generator_keeps_its_order(bench):
    hashes = set()
    orders = (("after-update", 0), ("one-ahead", 1), ("free", 1))
    mores = ([], ["--batch", "6", "--generator-threads", "3"])
    for (order, stale), more, world in few(itertools.product(orders, mores, (0, WORLD))):
        modes = bench.good(world, ["--source", "generator", "--items", "20", "--item-bytes", "1K",
                                   "--generate-order", order, "--baseline", "loop", "--epochs",
                                   "2"] + more)
        ranks = max(1, world)
        sluice, loop = modes["sluice"], modes["loop"]
        assert sluice["items"] == loop["items"] == 40 * ranks, modes
        assert sluice["requests"] == 40, modes  # each made once between all ranks
        assert loop["requests"] == 40 * ranks, modes
        assert sluice["item_hash"] == loop["item_hash"], modes
        assert 0 <= sluice["staleness_max"] <= stale, modes
        assert order == "free" or sluice["staleness_max"] == stale, modes
        hashes.add((ranks, sluice["item_hash"]))
    assert len(hashes) == len({ranks for ranks, _ in hashes}), hashes
    modes = bench.good(0, ["--source", "generator", "--items", "20", "--item-bytes", "1K",
                           "--generate-order", "after-update", "--generate-ms", "1", "--consume-us",
                           "500"])
    assert modes["sluice"]["staleness_max"] == 0, modes
    assert modes["sluice"]["speed_up_ideal"] == 1, modes


def faults_that_pass_are_tried_again(bench):
    # A read that does not hang may be slow, but hardly for so long and several times.
    source = ["--source", "buffered:" + bench.path("npy"), "--fill-seed", "3", "--seed", "1",
              "--latency-ms", "1", "--fault", "transient:0.2,hang:0.03", "--request-timeout-s",
              "2", "--attempts", "9"]
    for world in (0, WORLD):
        modes = bench.good(world, source + ["--share", "deal"] + BASELINES)
        for mode in modes.values():
            expect(mode, ITEMS)
            assert mode["retries"] > 0, mode
            assert mode["requests"] == ITEMS + mode["retries"], mode


def slow_reads_are_hedged(bench):
    args = ["--source", "generator", "--items", "400", "--item-bytes", "1K", "--latency-ms", "3",
            "--tail-percent", "2", "--tail-factor", "400", "--slots", "16", "--hedge"]
    without = bench.good(0, args + ["0"])["sluice"]
    hedged = bench.good(0, args + ["1"])["sluice"]
    assert without["hedges"] == 0 and without["requests"] == 400, without
    assert 0 < hedged["hedges"] <= 0.05 * 400, hedged
    assert hedged["requests"] == 400 + hedged["hedges"] + hedged["retries"], hedged


def a_cursor_goes_on(bench):
    source = ["--source", "buffered:" + bench.path("npy"), "--fill-seed", "3", "--shuffle",
              "--seed", "8", "--share", "deal"]
    output, results = bench.passes(2, source + ["--stop-items", "7"])
    cursor = results["results"][0]["cursor"]
    assert results["results"][0]["items"] == 14, results
    for world in (0, 2, 3):
        modes = bench.good(world, source + ["--cursor", cursor] + BASELINES)
        for mode in modes.values():
            expect(mode, ITEMS - 14)


def memory_keeps_to_the_budget_when_consumers_stop(bench):
    bench.shards("large", "raw", 200, 256 << 10)  # 50 MiB: many times what may be held
    pieces = (("4K", "64K"), ("64K", "1M"), ("256K", "4M"))
    for btl, (piece, budget) in few(itertools.product(("self,tcp", "self,vader"), pieces)):
        args = ["--source", "buffered:" + bench.path("large"), "--piece-bytes", piece,
                "--budget-bytes", budget, "--stop-items", "60"]
        output, results = bench.passes(WORLD, args, mca={"btl": btl})
        assert results["results"][0]["items"] == 60 * WORLD, results
        check_memory(results["results"][0])


def what_is_copied_is_counted(bench):
    source = ["--source", "mmap:" + bench.path("raw"), "--fill-seed", "3", "--touch"]
    for args, copies in ((["--read-ahead", "0"], False), (["--transform", "i16:f32:1:0"], True)):
        result = bench.good(0, source + args)["sluice"]
        assert result["bytes_copied"] == (result["bytes"] if copies else 0), result
    # The consumer's own mistake, where nobody may write to what it is given.
    code, output, _ = bench.run(0, source + ["--corrupt", "2"])
    assert code != 0 and "Wrong elements : 2 FAILED" in output, output


def growth_of_memory_is_found(bench):
    args = ["--source", "buffered:" + bench.path("npy"), "--fill-seed", "3", "--budget-bytes",
            "1M"] + BASELINES
    sources = (args, ["--source", "mmap:" + bench.path("raw")] + args[2:])
    for source, world in few(itertools.product(sources, (0, WORLD))):
        code, output, results = bench.run(world, source + ["--grow", "64M"])
        assert code != 0 and "Wrong elements : 0 FAILED" in output, output
        result = results["results"][0]
        assert result["memory"]["growth_bytes"] >= 64 << 20, result
        assert result["memory"]["allowed_bytes"] < 64 << 20, result
        message = f"the resident memory of rank {result['memory']['rank']} grew by "
        assert message in results["errors"][0]["message"], results["errors"]
        bench.good(world, source + ["--grow", "2M"])


def traces_are_written(bench):
    trace = bench.path("trace.json")
    bench.good(2, ["--source", "buffered:" + bench.path("npy"), "--fill-seed", "3", "--trace",
                   trace, "--trace-epochs", "1", "--epochs", "2", "--iters", "2"])
    with open(trace, encoding="utf-8") as file:
        events = json.load(file)
    events = events["traceEvents"] if isinstance(events, dict) else events
    names = {event.get("name", "") for event in events}
    for name in ("storage_read", "device_copy", "exchange", "consume", "consumer_wait"):
        assert any(name in n for n in names), (name, sorted(names)[:40])
    a_trace_is_drawn(bench, trace)
    source = ["--source", "buffered:" + bench.path("npy"), "--fill-seed", "3", "--trace", trace]
    for more, kept, left_out in (([], 5, True), (["--trace-epochs", "-1"], 7, False)):
        output, results = bench.passes(0, source + ["--epochs", "7"] + more)
        said = results["trace"]
        assert said["file"] == trace and said["epochs"] == kept, said
        assert said["bytes"] == pathlib.Path(trace).stat().st_size, said
        assert (said["spans_left_out"] > 0) == left_out and said["events_dropped"] == 0, said
        assert ("spans of epochs from 5 on were left out" in output) == left_out, output
        with open(trace, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        epochs = {event.get("args", {}).get("epoch") for event in events}
        assert epochs - {None} == set(range(kept)), epochs


def blocks_are_shuffled_and_reads_stay_long(bench):
    directory = bench.shards("blocks", "raw", 512, 4096, "--items-per-object", "512")
    for scheme in ("file", "buffered"):
        source = ["--source", f"{scheme}:{directory}", "--shuffle", "--seed", "2", "--epochs", "2"]
        singly = bench.good(0, source)["sluice"]
        blocks = bench.good(0, source + ["--shuffle-block-items", "64"])["sluice"]
        assert singly["items"] == blocks["items"] == 1024, blocks
        assert singly["requests"] == 1024, singly
        # 64 neighbours are one stretch; the first block's first item comes alone.
        assert blocks["requests"] < 200, blocks
        assert singly["sequential_bytes"] >= 4096, singly
        assert blocks["sequential_bytes"] > 10 * singly["sequential_bytes"], (blocks, singly)
    source = ["--source", "buffered:" + directory, "--shuffle", "--seed", "2",
              "--shuffle-block-items", "64"]
    for share in ("all", "deal"):
        modes = bench.good(WORLD, source + ["--share", share] + BASELINES)
        for mode in modes.values():
            assert mode["items"] == (512 if share == "deal" else 512 * WORLD), mode
    code, _, results = bench.run(0, source + ["--stop-items", "100"])
    assert code == 0, results
    cursor = results["results"][0]["cursor"]
    rest = bench.good(0, source + ["--cursor", cursor])["sluice"]
    assert rest["items"] == 412, rest
    code, output, _ = bench.run(0, source[:-1] + ["32", "--cursor", cursor])
    assert code == 1 and "in blocks of 32" in output, output
    code, output, _ = bench.run(0, ["--source", "buffered:" + directory,
                                    "--shuffle-block-items", "64"])
    assert code == 2 and "--shuffle-block-items needs --shuffle" in output, output


def a_device_is_emulated(bench):
    trace = bench.path("emulated.json")
    for device, rate in (("emulated", 0), ("emulated:2.5", 2.5)):
        code, output, results = bench.run(2, [
            "--source", "file:" + bench.path("npy"), "--fill-seed", "3", "--device", device,
            "--batch", "3", "--device-buffers", "3", "--trace", trace] + BASELINES)
        assert code == 0 and "emulated device" in output, output
        assert results["config"]["device"] == "emulated", results["config"]
        assert results["config"]["device_gb_per_s"] == rate, results["config"]
        ours, serial = results["results"][:2]
        expect(ours, 2 * ITEMS)
        assert ours["wrong"] == 0 and ours["bytes_copied"] == 2 * ITEMS * ITEM_BYTES, ours
        assert 0 <= ours["overlap"] <= 1 and serial["overlap"] is None, results["results"]
        assert "emulated device" in pathlib.Path(trace).read_text(encoding="utf-8")
        picture = bench.path("emulated.svg")
        job_limit.run([sys.executable, DRAW_TRACE, trace, picture], check=True,
                      stdout=subprocess.DEVNULL)
        assert "copy (emulated)" in pathlib.Path(picture).read_text(encoding="utf-8")
    for wrong in ("emulated:", "emulated:0", "emulated:x", "emulated:nan", "cpu:3", "gpu"):
        code, output, _ = bench.run(0, ["--source", "file:" + bench.path("npy"),
                                        "--device", wrong])
        assert code == 2 and "--device" in output, (wrong, output)
    code, output, _ = bench.run(0, ["--source", "file:" + bench.path("npy"), "--fill-seed", "3",
                                    "--device", "emulated", "--corrupt", "1"])
    assert code == 1 and "FAILED" in output, output


def a_trace_is_drawn(bench, trace):
    picture = bench.path("trace.svg")
    for rank in ("0", "1"):
        drawn = job_limit.run([sys.executable, DRAW_TRACE, "--rank", rank, "--title", "a < b",
                               trace, picture], capture_output=True, text=True, check=True)
        overlap, reading = re.match(r"overlap (\S+), reading (\S+) of ", drawn.stdout).groups()
        assert 0 <= float(overlap) <= 1 and 0 <= float(reading) <= 1, drawn.stdout
        root = xml.etree.ElementTree.parse(picture).getroot()
        rows = {rect.get("y") for rect in root.iter("{http://www.w3.org/2000/svg}rect")}
        # Whoever reads nothing has no row of reads, and items may be taken at once.
        assert len(rows) >= 2, rows
    for wrong in (["--rank", "9", trace], [trace + ".none"], ["--from", "5", "--to", "4", trace]):
        refused = job_limit.run([sys.executable, DRAW_TRACE, *wrong, picture], text=True,
                                capture_output=True)
        assert refused.returncode == 2 and "draw_trace.py:" in refused.stderr, refused


def main():
    run_tests((every_format_with_one_rank_and_three, every_kind_of_source,
              each_byte_is_read_once_or_each_rank_gets_its_own, options_of_delivery, *few((
              a_generator_keeps_its_order, faults_that_pass_are_tried_again, slow_reads_are_hedged,
              a_cursor_goes_on, memory_keeps_to_the_budget_when_consumers_stop,
              growth_of_memory_is_found, what_is_copied_is_counted, traces_are_written,
              blocks_are_shuffled_and_reads_stay_long, a_device_is_emulated, waves_and_warm,
              a_table_of_separated_values))), Bench(sys.argv[1], sys.argv[2]))


if __name__ == "__main__":
    main()
