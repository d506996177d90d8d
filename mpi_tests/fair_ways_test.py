#!/usr/bin/env python3
"""Comparisons are fair and say what with: the ways beside Sluice, whose memory tensors are in, and
the scripts that measure all presets.

  fair_ways_test.py MPIRUN SLUICE_BENCH
"""
import json
import os
import pathlib
import subprocess
import sys

from bench_run import job_limit
from reshard_run import Bench

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent / "scripts"
INLINE = ["--shape", "64,96", "--tensors", "3", "--src", "4:S(0)", "--dst", "2:S(1)", "-n", "2"]
CASE = "etha-4-partial_dp"


def script(name, bench, *words, program=None):
    """(exit code, output, results)"""
    file = bench.path(f"{name}.json")
    done = job_limit.run(
        [str(SCRIPTS / name), "--sluice-bench", program or os.path.abspath(bench.program),
         "--cases", CASE, "--shape", "64,64", "--rounds", "2", "--iters", "1", "--json", file,
         *words], 600, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    results = None
    if os.path.exists(file):
        with open(file, encoding="utf-8") as text:
            results = json.load(text)
        os.remove(file)
    return done.returncode, done.stdout, results


def tables_say_whose_memory(bench):
    for words, memory, line in (
            ([], "private", "in your own memory"),
            (["--memory", "shared"], "shared", "in memory that Sluice allocated"),
            (["--memory", "shared", "--format", "osu"], "shared",
             "in memory that Sluice allocated"),
            (["--csv"], "private", "in your own memory")):
        code, output, results = bench.run(4, INLINE + words)
        assert code == 0, output
        assert results["config"]["memory"] == memory, results["config"]
        heads = [row for row in output.splitlines() if row.startswith("# sluice-bench reshard ")]
        assert len(heads) == 1 and heads[0].endswith(line), output


def every_way_keeps_its_name(bench):
    names = ["isend-packed", "memcpy", "memcpy-own", "bound"]
    for memory in ("private", "shared"):
        code, output, results = bench.run(
            4, INLINE + ["--memory", memory, "--baseline", ",".join(names)])
        assert code == 0, output
        theirs = results["results"][0]["baselines"]
        assert list(theirs) == names, theirs
        assert all(b["wrong"] == 0 and b["time_us"] > 0 for b in theirs.values()), theirs


def check_quartiles(q, rounds):
    assert q["min"] <= q["p25"] <= q["median"] <= q["p75"] <= q["max"], q
    assert len(q["rounds"]) == rounds and q["min"] > 0, q


def the_best_of_mpi_is_found(bench):
    code, output, results = script("best_mpi.sh", bench)
    if code == 77:  # MPICH
        return
    assert code == 0, output
    assert results["ranks"] == 16 and results["shape"] == [64, 64], results
    [case] = results["cases"]
    assert case["case"] == CASE and case["rounds"] == 2, case
    medians = []
    for memory in ("private", "shared"):
        check_quartiles(case["ours"][memory], 2)
        check_quartiles(case["ratio"][memory], 2)
        check_quartiles(case["of_bound"][memory], 2)
        check_quartiles(case["best_same"][memory]["ratio"], 2)
        for way, settings in case["ways"].items():
            if way == "alltoallw":
                assert settings is None and way in case["reasons"], case
                continue
            for copy in ("cma", "no_cma"):
                check_quartiles(settings[memory][copy], 2)
                medians.append(settings[memory][copy]["median"])
        for i, ratio in enumerate(case["ratio"][memory]["rounds"]):
            best, ours = case["best"]["time_us"]["rounds"][i], case["ours"][memory]["rounds"][i]
            assert abs(ratio / (best / ours) - 1) < 1e-9, case
    assert case["best"]["time_us"]["median"] == min(medians), case
    assert results["summary"]["ratio"]["private"]["cases"] == 1, results["summary"]


def a_budget_is_priced(bench):
    code, output, results = script("budget_table.sh", bench, "--budgets", "1,8")
    assert code == 0, output
    [case] = results["cases"]
    assert list(case["budgets"]) == ["0", "1", "8"], case
    assert case["budgets"]["1"]["peak_buckets"] <= 1 == case["budgets"]["1"]["limit_buckets"], case
    assert case["budgets"]["0"]["limit_buckets"] == 0, case
    for of in case["budgets"].values():
        check_quartiles(of["time_us"], 2)
        check_quartiles(of["ratio"], 2)
        assert of["growth_bytes"] is None or of["growth_bytes"] <= of["allowed_bytes"], of
    assert set(case["budgets"]["0"]["ratio"]["rounds"]) == {1}, case
    assert results["summary"]["8"]["ratio"]["cases"] == 1, results["summary"]


def models_are_priced_joined_and_apart(bench):
    code, output, results = script("budget_table.sh", bench, "--models",
                                   "llama-3-8b:llama-3-8b-fsdp4-tp2dp2:64:2")
    assert code == 0, output
    [case] = results["cases"]
    assert case["case"] == "llama-3-8b/llama-3-8b-fsdp4-tp2dp2", case
    assert (case["ranks"], case["scale"], case["layers"]) == (8, 64, 2), case
    assert list(case["budgets"]) == list(case["apart"]) == ["0", "8"], case
    for way in ("budgets", "apart"):
        assert case[way]["8"]["peak_buckets"] <= 8 == case[way]["8"]["limit_buckets"], case
        for of in case[way].values():
            check_quartiles(of["time_us"], 2)
            check_quartiles(of["ratio"], 2)
            assert of["peak_ops"] > 0, of
    assert set(case["budgets"]["0"]["ratio"]["rounds"]) == {1}, case
    assert case["apart"]["0"]["buckets"] > case["budgets"]["0"]["buckets"], case
    for i, ratio in enumerate(case["apart"]["8"]["ratio"]["rounds"]):
        times = [case[way][budget]["time_us"]["rounds"][i]
                 for way, budget in (("apart", "8"), ("budgets", "0"))]
        assert abs(ratio / (times[0] / times[1]) - 1) < 1e-9, case
    for wrong in ("llama-3-8b", "llama-3-8b:none", "none:llama-3-8b-fsdp4-tp2dp2",
                  "llama-3-8b:llama-3-8b-fsdp4-tp2dp2:0"):
        code, output, _ = script("budget_table.sh", bench, "--models", wrong)
        assert code == 2 and "--models" in output, output


def what_is_wrong_ends_the_script(bench):
    damaged = pathlib.Path(bench.path("damaged.sh"))
    program = os.path.abspath(bench.program)
    damaged.write_text('#!/bin/sh\ncase " $* " in *--list-presets*) ;; '
                       '*) set -- "$@" --corrupt 8 ;; esac\n'
                       f'exec "{program}" "$@"\n', encoding="utf-8")
    damaged.chmod(0o755)
    code, output, results = script("budget_table.sh", bench, program=str(damaged))
    assert code == 1 and results is None, output
    assert "FAILED" in output, output
    code, output, _ = script("budget_table.sh", bench, "--cases", "etha-9-*")
    assert code == 2 and "etha-9-*" in output, output
    code, output, results = script("budget_table.sh", bench, "--minutes", "1e-9")
    assert code == 1 and "no case has a whole round" in output and results is None, output


def main():
    bench = Bench(sys.argv[1], sys.argv[2])
    for test in (tables_say_whose_memory, every_way_keeps_its_name, the_best_of_mpi_is_found,
                 a_budget_is_priced, models_are_priced_joined_and_apart,
                 what_is_wrong_ends_the_script):
        test(bench)
        print(f"ok {test.__name__}", flush=True)


if __name__ == "__main__":
    main()
