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

from bench_run import job_limit, run_tests
from reshard_run import Bench

COMPARE = pathlib.Path(__file__).resolve().parent.parent / "scripts/measure/compare.py"
INLINE = ["--shape", "64,96", "--tensors", "3", "--src", "4:S(0)", "--dst", "2:S(1)", "-n", "2"]
CASE = "etha-4-partial_dp"


def compare(competitor, bench, *words, folder=None):
    """(exit code, output, results)"""
    file = bench.path(f"{competitor}.json")
    done = job_limit.run(
        [sys.executable, str(COMPARE), competitor, "--bin",
         folder or os.path.dirname(os.path.abspath(bench.program)), "--cases", CASE, "--shape",
         "64,64", "--rounds", "2", "--iters", "1", "--json", file, *words], 600,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
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
        output, results = bench.passes(4, INLINE + words)
        assert results["config"]["memory"] == memory, results["config"]
        heads = [row for row in output.splitlines() if row.startswith("# sluice-bench reshard ")]
        assert len(heads) == 1 and heads[0].endswith(line), output


def every_way_keeps_its_name(bench):
    names = ["isend-packed", "memcpy", "memcpy-own", "bound"]
    for memory in ("private", "shared"):
        output, results = bench.passes(
            4, INLINE + ["--memory", memory, "--baseline", ",".join(names)])
        theirs = results["results"][0]["baselines"]
        assert list(theirs) == names, theirs
        assert all(b["wrong"] == 0 and b["time_us"] > 0 for b in theirs.values()), theirs


def check_spread(found, count):
    assert found["min"] <= found["q1"] <= found["median"] <= found["q3"] <= found["max"], found
    assert len(found["rounds"]) == count and found["min"] > 0, found


def rows_by_way(results, case, count):
    """All are of the case."""
    for row in results["rows"]:
        assert row["case"] == case and row["of_rounds"] == count, row
    return {row["way"]: row for row in results["rows"]}


def the_best_of_mpi_is_found(bench):
    code, output, results = compare("best-mpi", bench)
    if code == 77:  # MPICH
        return
    assert code == 0, output
    rows = rows_by_way(results, CASE, 2)
    times = {}
    for way, row in rows.items():
        if way.startswith("alltoallw,"):
            assert row["time_us"] is None and row["reason"], row
            continue
        check_spread(row["time_us"], 2)
        times[way] = row["time_us"]["rounds"]
    others = {way: sum(of) for way, of in times.items()
              if not way.startswith(("sluice", "bound", "memcpy-own"))}
    for best in results["best"]:
        memory = best["memory"]
        assert best["case"] == CASE and others[best["best"]] == min(others.values()), results
        assert f", {memory}," in best["same"], best
        for key in ("ratio", "same_ratio", "of_bound"):
            check_spread(best[key], 2)
        ours = [sum(both) / 2 for both in zip(*(
            of for way, of in times.items() if way.startswith(f"sluice, {memory},")))]
        for i, ratio in enumerate(best["ratio"]["rounds"]):
            assert abs(ratio / (times[best["best"]][i] / ours[i]) - 1) < 1e-9, best
    assert [row["memory"] for row in results["summary"]] == ["private", "shared"], results


def check_budgets(rows, ways):
    """Each row's ratio is to the time without a budget, joined."""
    assert list(rows) == ways, list(rows)
    for way, row in rows.items():
        check_spread(row["time_us"], 2)
        check_spread(row["ratio"], 2)
        assert row["peak_ops"] > 0, row
        assert row["growth_bytes"] is None or row["growth_bytes"] <= row["allowed_bytes"], row
        limit = 0 if "no budget" in way else int(way.removeprefix("apart, ").split()[0])
        assert row["limit_buckets"] == limit and (not limit or row["peak_buckets"] <= limit), row
        for i, ratio in enumerate(row["ratio"]["rounds"]):
            times = [rows[one]["time_us"]["rounds"][i] for one in (way, "no budget")]
            assert abs(ratio / (times[0] / times[1]) - 1) < 1e-9, row


def a_budget_is_priced(bench):
    code, output, results = compare("budgets", bench, "--budgets", "1,8")
    assert code == 0, output
    check_budgets(rows_by_way(results, CASE, 2), ["no budget", "1 buckets", "8 buckets"])


def models_are_priced_joined_and_apart(bench):
    model, system = "llama-3-8b", "llama-3-8b-fsdp4-tp2dp2"
    code, output, results = compare("budgets", bench, "--models", f"{model}:{system}:64:2")
    assert code == 0, output
    rows = rows_by_way(results, f"{model}/{system}", 2)
    check_budgets(rows, ["no budget", "apart, no budget", "8 buckets", "apart, 8 buckets"])
    assert all((row["ranks"], row["scale"], row["layers"]) == (8, 64, 2) for row in rows.values())
    assert rows["apart, no budget"]["buckets"] > rows["no budget"]["buckets"], rows
    for wrong in (model, f"{model}:none", f"none:{system}", f"{model}:{system}:0"):
        code, output, _ = compare("budgets", bench, "--models", wrong)
        assert code == 2 and "--models" in output, output


def what_is_wrong_ends_the_script(bench):
    damaged = pathlib.Path(bench.path("damaged"), "sluice-bench")
    damaged.parent.mkdir()
    program = os.path.abspath(bench.program)
    damaged.write_text('#!/bin/sh\ncase " $* " in *--list-presets*) ;; '
                       '*) set -- "$@" --corrupt 8 ;; esac\n'
                       f'exec "{program}" "$@"\n', encoding="utf-8")
    damaged.chmod(0o755)
    code, output, results = compare("budgets", bench, folder=str(damaged.parent))
    assert code == 1 and results is None, output
    assert "FAILED" in output, output
    code, output, _ = compare("budgets", bench, "--cases", "etha-9-*")
    assert code == 2 and "etha-9-*" in output, output
    code, output, results = compare("budgets", bench, "--minutes", "1e-9")
    assert code == 1 and "no case has a whole round" in output and results is None, output


def main():
    run_tests((tables_say_whose_memory, every_way_keeps_its_name, the_best_of_mpi_is_found,
              a_budget_is_priced, models_are_priced_joined_and_apart,
              what_is_wrong_ends_the_script), Bench(sys.argv[1], sys.argv[2]))


if __name__ == "__main__":
    main()
