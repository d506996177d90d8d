#!/usr/bin/env python3
"""sluice-bench checkpoint, alone and under mpirun: what it reports, and how it ends.

  checkpoint_test.py MPIRUN SLUICE_BENCH
"""
import functools
import json
import os
import re
import struct
import subprocess
import sys

from bench_run import BenchRun, run_tests
from few import few
from together import together

SMALL = ["--shape", "64,32", "--tensors", "3"]


def made(bench, name, world, *more):
    """Arguments that write a checkpoint of their own, and load it."""
    return ["--path", bench.path(name), "--make", "--layout", f"{max(1, world)}:S(0)", *SMALL,
            *more]


def good(bench):
    for world in (0, 3):
        os.mkdir(bench.path(f"good-{world}"))
        output, results = bench.passes(world, made(bench, f"good-{world}", world, "-n", "2"))
        assert results["errors"] == [], results
        assert "# error" not in output, output
        assert results["config"]["world"] == max(1, world), results
        assert results["config"]["hosts"] == 1, results
        assert [result["case"] for result in results["results"]] == ["save", "load"], results
        for result in results["results"]:
            assert result["wrong"] == 0 and result["tensors"] == 3, result
            assert result["bytes"] == 3 * 64 * 32 * 4, result
            times = result["time_us"]
            assert 0 < times["min"] <= times["median"] <= times["max"], result
            assert len(result["iterations_us"]) == 2 and result["gb_per_s"] > 0, result
            assert "baselines" not in result, result
        assert [r["checked"] for r in results["results"]] == [False, True], results
        config = results["config"]
        assert results["version"] and config["make"] is True and config["cold"] is False, results
        assert config["iters"] == 2 and config["budget_bytes"] == 256 << 20, results


def safetensors(path, tensors):
    """Writes what another program would: {name: (dtype, shape, bytes)}."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            file.write(data)


def foreign(bench):
    """A checkpoint of somebody else's: loaded, and not compared unless that is asked for."""
    folder = bench.path("foreign")
    os.mkdir(folder)
    rows = struct.pack("<24f", *range(24))
    safetensors(os.path.join(folder, "model.safetensors"),
                {"w": ("F32", [6, 4], rows), "scale": ("F32", [], rows[:4]),
                 "empty": ("BF16", [0, 4], b"")})
    # Another file is no part of a checkpoint that has a model.safetensors.
    safetensors(os.path.join(folder, "old.safetensors"), {"stale": ("F32", [6, 4], rows)})
    for more in ([], ["--layout", "3:S(1)"], ["--baseline", "mmap"]):
        output, results = bench.passes(3, ["--path", folder, *more])
        result, = results["results"]
        assert result["tensors"] == 3 and result["bytes"] == 25 * 4, result
        assert result["checked"] is False and result["wrong"] == 0, result
    code, output, results = bench.run(3, ["--path", folder, "--check", "all",
                                          "--baseline", "mmap"])
    assert code == 1, output
    result, = results["results"]
    assert result["wrong"] > 0 and result["baselines"]["mmap"]["wrong"] > 0, results
    assert [error["case"] for error in results["errors"]] == ["load", "mmap"], results
    assert "# error: load: " in output, output


def an_index_says_whose_tensor_counts(bench):
    """A file may hold more than what the index names it for."""
    folder = bench.path("indexed")
    os.mkdir(folder)
    rows = struct.pack("<24f", *range(24))
    safetensors(os.path.join(folder, "x.safetensors"), {"a": ("F32", [6, 4], rows)})
    safetensors(os.path.join(folder, "y.safetensors"),
                {"a": ("F32", [2], rows[:8]), "b": ("F32", [6], rows[:24])})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump({"weight_map": {"a": "x.safetensors", "b": "y.safetensors"}}, file)
    output, results = bench.passes(2, ["--path", folder, "--baseline", "mmap"])
    result, = results["results"]
    assert result["tensors"] == 2 and result["bytes"] == 30 * 4, result


def is_memory(folder):
    done = subprocess.run(["stat", "-f", "-c", "%T", folder], stdout=subprocess.PIPE, text=True,
                          check=True)
    return done.stdout.strip() in ("tmpfs", "ramfs")


def other_ways(bench):
    """Loaded by plain mapping in turns: every element is compared there, too."""
    folder = bench.path("ways")
    os.mkdir(folder)
    # Sixteen files; columns in memory, so that rows are copied with strides.
    args = ["--path", "buffered:" + folder, "--shape", "64,32", "--tensors", "16",
            "--layout", "3:S(1)", "--baseline", "mmap", "-w", "1", "-n", "3"]
    for more in (["--make", "--shard-bytes", "8K"], ["--check", "all", "--cold"],
                 ["--check", "sample", "--new-memory"]):
        code, output, results = bench.run(3, args + more)
        if code == 77 and "--cold" in more and is_memory(folder):
            print("--cold: not tried, as the folder for temporary files is memory")
            continue
        assert code == 0, (more, output)
        load = results["results"][-1]
        assert load["files"] == 16 and load["checked"] is True and load["wrong"] == 0, load
        assert load["sampled"] == ("sample" in more), load
        way = load["baselines"]["mmap"]
        assert way["wrong"] == 0 and way["time_us"] > 0 and way["gb_per_s"] > 0, way
        assert 0 < way["ratio_p25"] <= way["ratio_p75"] and way["ratio"] > 0, way
        assert len(way["iterations_us"]) == len(load["iterations_us"]) == 3, load
        assert any(line.split()[:2] == ["mmap", "16"] for line in output.splitlines()), output
    # Made with another seed, every way finds other values.
    code, output, results = bench.run(3, args + ["--check", "all", "--seed", "5"])
    assert code == 1, output
    load, = results["results"]
    assert load["wrong"] > 0 and load["baselines"]["mmap"]["wrong"] > 0, load


def a_way_that_cannot(bench):
    """Files of another dtype than memory: ours casts, and the table says why mmap does not."""
    folder = bench.path("cast")
    os.mkdir(folder)
    data = struct.pack("<32f", *range(32))
    safetensors(os.path.join(folder, "model.safetensors"), {"tensor.0": ("F32", [8, 4], data)})
    args = ["--path", folder, "--shape", "8,4", "--dtype", "bf16", "--baseline", "mmap"]
    output, results = bench.passes(2, args)
    load, = results["results"]
    assert load["baselines"] == {"mmap": None}, load
    assert "nothing casts it" in load["baseline_reasons"]["mmap"], load
    assert "# mmap: " in output, output


def cold_in_memory(bench):
    """A file system of memory has nothing else to read from: 77, and the reason."""
    if not os.path.isdir("/dev/shm"):
        return
    folder = f"/dev/shm/sluice-checkpoint-{os.getpid()}"
    os.mkdir(folder)
    try:
        code, output, results = bench.run(
            2, ["--path", "buffered:" + folder, "--make", "--cold", *SMALL])
        assert code == 77, output
        assert "stay in the page cache" in results["errors"][0]["message"], results
        # What was there before is in the file.
        assert [result["case"] for result in results["results"]] == ["save"], results
    finally:
        for name in os.listdir(folder):
            os.remove(os.path.join(folder, name))
        os.rmdir(folder)


def models(bench):
    """A model file alone: cut over all ranks. One dimension is shorter than the ranks are many."""
    model = bench.path("model.json")
    with open(model, "w", encoding="utf-8") as file:
        json.dump({"wide": {"shape": [7, 6], "dtype": "F32"},
                   "short": {"shape": [2, 8], "dtype": "F32"},
                   "bias": {"shape": [1], "dtype": "F32"}}, file)
    for number, more in enumerate(([], ["--layout", "2,2:S(1),S(0)", "--save-layout", "4:S(1)"])):
        folder = bench.path(f"model-{number}")
        os.mkdir(folder)
        args = ["--path", "buffered:" + folder, "--model", model, "--baseline", "mmap", *more]
        output, results = bench.passes(4, args + ["--make"])
        load = results["results"][1]
        assert load["tensors"] == 3 and load["wrong"] == 0 and load["checked"] is True, load
        assert load["bytes"] == (42 + 16 + 1) * 4, load
        assert load["baselines"]["mmap"]["wrong"] == 0, load
        assert results["config"]["layout"] == (more[1] if more else "4:S(0)"), results
        code, output, results = bench.run(4, args)
        assert code == 0 and results["results"][0]["checked"] is False, output


def refused(bench, world, args, expected, by_rank=None):
    """An error that all ranks have, and no other."""
    results = bench.refused(world, args, expected, by_rank, code=2)
    assert len(results["errors"]) == 1, (args, results)


def bad_input(bench):
    os.mkdir(bench.path("empty"))
    jobs = []
    for args, expected in (
            (["--path", bench.path("empty"), "--layout", "2:S(0)"], "empty"),
            (["--path", bench.path("nowhere"), "--layout", "2:S(0)", *SMALL], "nowhere"),
            (["--path", bench.path("empty"), "--layout", "2:Q", *SMALL], "Q"),
            (["--path", bench.path("empty"), "--budget-bytes", "lots"], "--budget-bytes"),
            (["--path", "http://127.0.0.1:1/x", "--make", "--layout", "2:S(0)", *SMALL],
             "no directory"),
            (["--path", "http://127.0.0.1:1/x", "--baseline", "mmap", *SMALL],
             "--baseline needs a directory"),
            (["--path", "http://127.0.0.1:1/x", "--cold", *SMALL], "--cold needs a directory"),
            (["--path", bench.path("empty"), "--baseline", "magic", *SMALL], "magic"),
            (["--path", bench.path("empty"), "--system", "none"], "--system needs --model"),
            (["--path", bench.path("empty"), "--make", "--model", bench.path("none.json")],
             "none.json"),
            (["--layout", "2:S(0)"], "--path")):
        # What goes with any number of ranks is refused without mpirun, which takes longer.
        jobs.append(functools.partial(refused, bench, 2 if "--layout" in args else 0, args,
                                      expected))
    together(jobs)


def other_ranks_are_named(bench):
    os.mkdir(bench.path("other"))
    args = made(bench, "other", 3)
    for more, expected in ((["--seed", "7"],
                            "different fill-seed: rank 0 has 0, rank 2 has 7"),
                           (["--dtype", "bf16"], "different dtype"),
                           (["--nonsense"], "rank 2: ")):
        refused(bench, 3, args, expected, by_rank={2: args + more})
    assert os.listdir(bench.path("other")) == []


# Rank 2 waits for a file that never comes, so that the others lose it. Rank 0 alone waits for a
# short time. Rank 1 may come later than that.
def a_silent_rank_ends_the_job(bench):
    os.mkdir(bench.path("silent"))
    os.mkfifo(bench.path("pipe"))
    args = made(bench, "silent", 3)
    stuck = ["--path", bench.path("silent"), "--model", bench.path("pipe"), "--system", "none"]
    code, output, results = bench.run(
        3, args, by_rank={0: [*args, "--timeout-s", "3"], 2: stuck})
    assert code == 1, (code, output)
    assert "sluice-bench checkpoint: rank 0: " in output, output
    # The job ends when rank 0 has written this down.
    assert len(results["errors"]) == 1, results
    lost = r"no word from (rank 2|ranks 1-2) within"
    assert re.match(lost, results["errors"][0]["message"]), results
    assert re.search("# error: " + lost, output), output


def unwritable_results(bench):
    os.mkdir(bench.path("unwritten"))
    bench.cannot_write_results(2, made(bench, "unwritten", 2))
    assert os.listdir(bench.path("unwritten")) == []


def main():
    run_tests((good, bad_input, *few((foreign, an_index_says_whose_tensor_counts, other_ways,
              a_way_that_cannot, cold_in_memory, models, other_ranks_are_named,
              a_silent_rank_ends_the_job, unwritable_results))), BenchRun(sys.argv[1], sys.argv[2],
              "checkpoint"))


if __name__ == "__main__":
    main()
