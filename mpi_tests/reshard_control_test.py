#!/usr/bin/env python3
"""Negative controls: damage must be seen. Also the flags that shape what is run.

  reshard_control_test.py MPIRUN SLUICE_BENCH
"""
import csv
import json
import re
import signal
import subprocess
import sys

from bench_run import run_tests
from few import few
from reshard_oracle import expected_targets
from reshard_run import Bench

CASE = {"id": "control", "shape": [96, 50], "dtype": "bf16",
        "source": {"mesh": [2], "ranks": [1, 0], "placements": ["S(0)"]},
        "target": {"mesh": [3], "ranks": [0, 1, 2], "placements": ["S(1)"]}}


def damage_is_counted(bench):
    file = bench.write("control.json", CASE)
    for flips in (1, 2, 77, 9600):
        code, output, results = bench.run(
            3, ["--cases", file, "-n", "1", "--fingerprint", "--corrupt", str(flips)])
        assert code == 1, output
        expected = min(flips, 4800)  # elements have two bytes
        assert results["results"][0]["wrong"] == expected, (flips, results["results"])
        assert f"# Out of bounds values : {expected} FAILED" in output, output
        assert results["results"][0]["target_ranks"] != expected_targets(CASE, 0)


def damage_is_counted_without_check(bench):
    file = bench.write("control.json", CASE)
    code, output, results = bench.run(3, ["--cases", file, "--check", "0", "--corrupt", "3"])
    assert code == 1 and results["results"][0]["wrong"] == 3, output


def nothing_to_damage_is_an_error(bench):
    file = bench.write("empty.json", dict(CASE, shape=[0, 50]))
    code, output, results = bench.run(3, ["--cases", file, "--corrupt", "3"])
    assert code == 1 and results["errors"], output


def good_cases_run_beside_bad_ones(bench):
    bad = dict(CASE, id="bad", dtype="f17")
    partial = dict(CASE, id="partial",
                   target=dict(CASE["target"], placements=["P(sum)"]))
    file = bench.write("mixed.json", {"cases": [bad, CASE, partial]})
    code, output, results = bench.run(4, ["--cases", file, "-n", "1"])
    assert code == 1, output
    assert [r["case"] for r in results["results"]] == ["control"], results
    assert [e["case"] for e in results["errors"]] == ["bad", "partial"], results
    assert results["results"][0]["wrong"] == 0


def every_fill_checks(bench):
    file = bench.write("control.json", CASE)
    for fill in ("hash", "plain"):
        code, output, results = bench.run(3, ["--cases", file, "--fill", fill, "-n", "1"])
        assert code == 0 and results["results"][0]["wrong"] == 0, output
        assert results["config"]["fill"] == fill, results["config"]
    code, output, results = bench.run(3, ["--cases", file, "--fingerprint", "-n", "1"])
    assert code == 0 and results["config"]["fill"] == "plain", output
    for wrong in (["--fill", "hash", "--fingerprint"], ["--fill", "zero"]):
        code, output, _ = bench.run(3, ["--cases", file] + wrong)
        assert code == 2 and "--fill" in output, output


def traces_show_the_gate_and_name_tensors(bench):
    trace = bench.path("trace.json")
    output, results = bench.passes(
        4, ["--shape", "64,64", "--tensors", "3", "--src", "4:S(0)", "--dst", "4:S(1)",
            "--compare-budgets", "0,2", "-n", "2", "--trace", trace])
    for result in results["results"]:
        gate = result["gate"]
        assert 0 <= gate["rank"] < 4 and gate["us"] == sorted(gate["us"]), gate
        assert len(gate["us"]) == len(gate["buckets"]) == len(gate["bytes"]) <= 200, gate
        assert 0 < max(gate["buckets"]) <= result["peak"]["buckets"], result
        assert (gate["buckets"][-1], gate["bytes"][-1]) == (0, 0), gate
    assert max(results["results"][1]["gate"]["buckets"]) <= 2, results
    with open(trace, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert {event["pid"] for event in spans} == {1, 2, 3, 4}, output
    assert all(event["args"]["tensor"] in event["name"] for event in spans), spans[0]
    ends = {event["id"]: event["pid"] for event in events if event["ph"] == "f"}
    starts = {event["id"]: event["pid"] for event in events if event["ph"] == "s"}
    moves = {(event["args"]["from"] + 1, event["pid"]) for event in spans
             if "from" in event["args"]}
    assert {(starts[i], pid) for i, pid in ends.items()} == moves and len(moves) == 12, moves


def presets_have_their_payload(bench):
    output, results = bench.passes(
        16, ["--preset", "etha-4-no_partial", "--shape", "64,32", "--tensors", "3", "-n", "1"])
    result = results["results"][0]
    # The target mesh (1,1,4,2) shards dimension 0 over all 8 ranks: each element arrives once.
    assert result["payload_bytes"] == 3 * 64 * 32 * 4, result
    assert result["case"] == "etha-4-no_partial" and result["wrong"] == 0


def sweeps_have_a_row_per_size(bench):
    output, results = bench.passes(
        4, ["--shape", "64,256", "--dtype", "f32", "--src-mesh", "2,2", "--src-ranks", "0-3",
            "--src-placements", "R,S(0)", "--dst-mesh", "4", "--dst-ranks", "3,2,1,0",
            "--dst-placements", "S(1)", "-b", "64K", "-e", "1M", "-f", "4", "-n", "1"])
    assert [r["case"] for r in results["results"]] == [
        "inline/65536", "inline/262144", "inline/1048576"], results
    rows = [line for line in output.splitlines() if "inline/" in line]
    assert len(rows) == 3 and "# Avg bus bandwidth" in output, output
    assert [row.split()[:2] for row in rows] == [
        ["64", "KiB"], ["256", "KiB"], ["1", "MiB"]], output


def the_busiest_port_and_csv(bench):
    """Of an all-gather of two, each sends and gets half of the tensor."""
    output, results = bench.passes(
        2, ["--shape", "64,256", "--src", "2:S(0)", "--dst", "2:R", "-n", "1", "--csv"])
    lines = [line for line in output.splitlines() if not line.startswith("#")]
    [row] = csv.DictReader(lines)
    result = results["results"][0]
    size = 64 * 256 * 4
    assert (result["tensor_bytes"], result["payload_bytes"], result["port_bytes"]) == (
        size, size, size // 2), result
    assert abs(result["bus_bw"] - result["gb_per_s"] / 2) < 1e-9, result
    assert (row["size"], row["wrong"], row["case"]) == (str(size), "0", "inline"), row
    assert abs(float(row["busbw"]) - result["bus_bw"]) < 1e-6, (row, result)
    code, output, _ = bench.run(0, ["--shape", "8", "--src", "1:R", "--dst", "1:R", "--csv",
                                    "--format", "osu"])
    assert code == 2 and "--csv" in output, output


def collectives_have_mpi_beside_them(bench):
    for name in ("all-gather", "reduce-scatter", "all-reduce", "all-to-all", "broadcast", "scatter",
                 "gather"):
        output, results = bench.passes(
            4, ["--collective", name, "--ranks", "3", "-b", "36K", "-n", "2", "--baseline",
                "mpi-collective"])
        [result] = results["results"]
        assert result["case"] == f"{name}/36864" and result["tensor_bytes"] == 36864, result
        theirs = result["baselines"]["mpi-collective"]
        assert theirs["wrong"] == 0 and theirs["time_us"] > 0, result


def presets_are_listed(bench):
    """Before MPI is started, so without a results file."""
    code, output, results = bench.run(0, ["--list-presets"])
    assert code == 0 and results is None, output
    assert len(output.splitlines()) == 24, output
    assert ("etha-4-no_partial    16 ranks  2,2,2,1@0-7:R,S(0),R,S(1) -> "
            "1,1,4,2@8-15:R,R,SS(0,2),S(0)\n") in output, output


def budgets_are_compared_in_one_run(bench):
    file = bench.write("control.json", dict(CASE, shape=[960, 500]))
    output, results = bench.passes(
        3, ["--cases", file, "-n", "3", "--bucket-bytes", "4K", "--compare-budgets", "0,2"])
    free, tight = results["results"]
    assert free["limit"]["buckets"] == 0 and tight["limit"] == {"buckets": 2, "bytes": 8192}
    assert tight["peak"]["buckets"] == 2 < free["peak"]["buckets"], results["results"]
    assert free["peak"]["buckets"] <= free["peak_without_budget"]["buckets"]


def flags_have_one_vocabulary(bench):
    file = bench.write("control.json", dict(CASE, shape=[960, 500]))
    words = ["--cases", file, "--iters", "2", "--check", "sample", "--timeout-s", "299.5",
             "--bucket-bytes", "auto", "--max-in-flight", "auto", "--budget-bytes", "auto",
             "--ranks-per-node", "auto", "--progress-thread", "0", "--fingerprint"]
    output, results = bench.passes(3, words)
    config = results["config"]
    assert (config["timeout_s"], config["check"], config["iters"]) == (299.5, 2, 2), config
    assert config["fingerprint"] is True and config["progress_thread"] == 0, config
    assert results["results"][0]["checked"], results
    # Damage is looked for everywhere.
    code, output, results = bench.run(3, words + ["--corrupt", "1K"])
    assert code == 1 and results["results"][0]["wrong"] == 1024, output


def plans_are_compared_in_one_run(bench):
    # To two replicas on a node of their own.
    case = dict(CASE, shape=[512, 512],
                source={"mesh": [2], "ranks": [0, 1], "placements": ["S(0)"]},
                target={"mesh": [2], "ranks": [2, 3], "placements": ["R"]})
    file = bench.write("plans.json", case)
    flags = ["--cases", file, "-n", "3", "--ranks-per-node", "2"]
    output, results = bench.passes(4, flags + ["--compare-plans", "relay,naive"])
    assert [(r["case"], r["plan"]) for r in results["results"]] == [
        ("control/relay", "relay"), ("control/naive", "naive")], results
    relay, naive = results["results"]
    assert relay["wrong"] == naive["wrong"] == 0 and naive["checked"], results
    assert relay["plan_hash"] != naive["plan_hash"], results
    assert relay["payload_bytes"] == naive["payload_bytes"] == 2 * 512 * 512 * 2, results
    assert len(relay["iterations_us"]) == len(naive["iterations_us"]) == 3, results
    assert sorted(naive["iterations_us"])[1] == naive["time_us"]["median"], results
    code, output, results = bench.run(4, flags + ["--plan", "naive"])
    assert code == 0 and results["results"][0]["plan"] == "naive", output
    assert results["results"][0]["plan_hash"] == naive["plan_hash"], output
    assert results["results"][0]["case"] == "control", output


def joining_is_compared_in_one_run(bench):
    # 4 x 2 pairs of ranks, and a chunk of each tensor for each pair.
    flags = ["--shape", "64,96", "--tensors", "10", "--src", "4:S(0)", "--dst", "2@4-5:S(1)",
             "-n", "2"]
    output, results = bench.passes(
        6, flags + ["--compare-coalesce", "on,off", "--compare-budgets", "0,1,8"])
    assert results["config"]["coalesce"] is True, results["config"]
    assert results["config"]["compare_coalesce"] == ["on", "off"], results["config"]
    assert [(r["case"], r["coalesce"], r["buckets"]) for r in results["results"]] == [
        (f"inline/budget-{budget}/{name}", name == "coalesce", 8 if name == "coalesce" else 80)
        for budget in (0, 1, 8) for name in ("coalesce", "no-coalesce")], results
    for result in results["results"]:
        assert result["wrong"] == 0 and result["checked"], result
        limit = result["limit"]["buckets"]
        assert limit == 0 or result["peak"]["buckets"] <= limit, result
    hashes = [r["plan_hash"] for r in results["results"]]
    assert hashes[0] != hashes[1], hashes
    code, output, results = bench.run(6, flags + ["--no-coalesce"])
    assert code == 0 and " coalesce=0" in output, output
    assert results["config"]["coalesce"] is False, results["config"]
    assert [(r["case"], r["buckets"]) for r in results["results"]] == [("inline", 80)], results
    code, output, _ = bench.run(0, flags + ["--compare-coalesce", "on,yes"])
    assert code == 2 and "--compare-coalesce" in output, output


def knobs_are_compared_in_one_run(bench):
    file = bench.write("control.json", dict(CASE, shape=[960, 500]))
    output, results = bench.passes(
        3, ["--cases", file, "-n", "3", "--compare-bucket-bytes", "auto,4K,1M",
            "--compare-max-in-flight", "auto, 1"])
    assert results["config"]["compare_bucket_bytes"] == [0, 4096, 1 << 20]
    assert results["config"]["compare_max_in_flight"] == [0, 1]
    assert [r["case"] for r in results["results"]] == [
        f"control/bucket-{bucket}/in-flight-{count}"
        for bucket in ("auto", 4096, 1048576) for count in ("auto", 1)], results
    for result in results["results"]:
        assert result["wrong"] == 0 and len(result["iterations_us"]) == 3, result
        assert min(result["iterations_us"]) == result["time_us"]["min"], result
    chosen = [r["chosen"]["bucket_bytes"] for r in results["results"]]
    assert chosen[0] == chosen[1] >= 1 << 16 and chosen[2:] == [4096] * 2 + [1 << 20] * 2, chosen
    assert [r["chosen"]["max_in_flight"] for r in results["results"]][1::2] == [1] * 3
    assert results["results"][2]["buckets"] > results["results"][0]["buckets"]
    assert results["results"][2]["limit"] == {"buckets": 16, "bytes": 16 * 4096}
    # What was chosen is said where it was not given: of six lanes, four.
    assert output.count("of a channel in flight") == 4, output


def automatic_is_the_default(bench):
    file = bench.write("control.json", CASE)
    code, output, results = bench.run(3, ["--cases", file, "-n", "1"])
    given = bench.run(3, ["--cases", file, "-n", "1", "--bucket-bytes", "0", "--max-in-flight",
                          "0", "--budget-bytes", "4M"])
    assert code == 0 and given[0] == 0, output + given[1]
    assert results["config"]["bucket_bytes"] == results["config"]["max_in_flight"] == 0
    assert results["results"][0]["limit"] == {"buckets": 16, "bytes": 128 << 20}
    assert given[2]["results"][0]["limit"] == {"buckets": 16, "bytes": 4 << 20}


def baselines_are_compared_with_every_budget(bench):
    file = bench.write("control.json", dict(CASE, shape=[960, 500]))
    output, results = bench.passes(
        3, ["--cases", file, "-n", "3", "--compare-budgets", "0,2", "--bucket-bytes", "4K",
            "--baseline", "isend, gather-broadcast"])
    assert results["config"]["baselines"] == ["isend", "gather-broadcast"]
    free, tight = results["results"]
    for result in (free, tight):
        assert list(result["baselines"]) == ["isend", "gather-broadcast"], result
        theirs = result["baselines"]["isend"]
        assert theirs["ratio_p25"] <= theirs["ratio"] <= theirs["ratio_p75"], result
        rate = result["payload_bytes"] / theirs["time_us"] / 1e3
        assert abs(theirs["gb_per_s"] / rate - 1) < 1e-9, result
    assert (free["baselines"]["isend"]["time_us"] == tight["baselines"]["isend"]["time_us"])
    table_is_narrow(output, results)
    assert "Avg bus" not in output, output  # the rows are of different budgets
    output, _ = bench.passes(
        3, ["--cases", file, "-n", "2", "--wide", "--baseline", "isend"])
    assert "theirs / ours" in output and "busbw" in output, output


def table_is_narrow(output, results):
    """A column for each baseline, sizes with units, and only options that were given."""
    lines = [line for line in output.splitlines() if not line.startswith("sluice-bench: ")]
    assert max(map(len, lines)) <= 100, output
    head = next(at for at, line in enumerate(lines) if " x isend " in line)
    assert lines[head].split()[-1] == "case" and " broadcast " in lines[head + 1], output
    config = next(line for line in lines if line.startswith("# transport="))
    assert "compare_budgets=[0,2]" in config and "warmup" not in config, config
    rows = [line for line in lines[head + 2:] if not line.startswith("#")]
    for row, result in zip(rows, results["results"]):
        names = ["isend", "gather-broadcast"]
        ratios = [result["baselines"][name]["ratio"] for name in names]
        shown = [f"{'*' if ratio < 1 else ''}{ratio:.2f}" for ratio in ratios]
        cells = row.split()
        assert cells[:2] == ["937.5", "KiB"] and cells[3] in ("us", "ms", "s"), row
        assert [cell.lstrip("*") for cell in cells[5:7]] == [one.lstrip("*") for one in shown], row
        assert f" {result['buckets']} " in row, row
        assert cells[-2:] == ["0", result["case"]] or f"# {result['case']}" in lines, output
    budget, staging = lines[-2:]
    assert budget.startswith("Without a budget the busiest rank needs "), output
    assert re.match(r"With a budget of 2 it needs 2 buckets.* at once, and \d+\.\d+ times the "
                    r"time\.$", staging), output


def an_interrupt_shows_what_there_is(bench):
    """Of many sizes the first is done when it comes."""
    results = bench.path("interrupted.json")
    with subprocess.Popen(
            [bench.program, "reshard", "--shape", "64", "--src", "1:R", "--dst", "1:R", "-b", "1K",
             "-e", "1G", "-n", "5000", "--json", results],
            stdout=subprocess.PIPE, text=True) as run:
        head = ""
        while "inline/2048" not in head:
            line = run.stdout.readline()
            assert line, head
            head += line
        run.send_signal(signal.SIGTERM)  # as mpirun does; SIGINT may be ignored here
        rest = run.stdout.read()
    assert run.returncode == 130, (run.returncode, head, rest)
    assert rest.endswith("# interrupted (SIGTERM)\n"), rest
    assert "# Out of bounds values : 0 OK" in rest, rest
    with open(results, encoding="utf-8") as file:
        written = json.load(file)
    assert written["results"][0]["case"] == "inline/1024", written
    assert written["errors"][0]["message"] == "the run has not ended", written


def a_baseline_that_cannot_says_why(bench):
    # Every other row: not a box.
    case = dict(CASE, target={"mesh": [2], "ranks": [0, 1], "placements": ["SS(0,8)"]})
    file = bench.write("strided.json", case)
    output, results = bench.passes(
        3, ["--cases", file, "-n", "1", "--baseline", "alltoallw,serial"])
    result = results["results"][0]
    assert result["baselines"]["alltoallw"] is None, result
    assert "box" in result["baseline_reasons"]["alltoallw"], result
    assert "not a box" in output and result["baselines"]["serial"]["wrong"] == 0, output


def osu_view_has_three_columns_and_the_case(bench):
    output, results = bench.passes(
        4, ["--shape", "64,256", "--tensors", "3", "--src-mesh", "2", "--src-ranks", "0-1",
            "--src-placements", "S(0)", "--dst-mesh", "2", "--dst-ranks", "2-3",
            "--dst-placements", "S(1)", "-b", "16K", "-e", "64K", "-i", "48K", "-n", "3",
            "--baseline", "isend", "--format", "osu"])
    header = [line for line in output.splitlines() if line.startswith("# Size ")]
    assert [h.split()[1:] for h in header] == [["Size", "MB/s", "Messages/s", "Case"]], output
    lines = output.splitlines()
    first = lines.index(header[0]) + 1
    rows = [line.split() for line in lines[first:first + 2]]  # with nothing in between
    assert [row[3] for row in rows] == ["inline/16384", "inline/65536"], output
    assert lines[first + 2] == "# inline/16384" and " isend " in lines[first + 3], output
    assert [row[0] for row in rows] == ["49152", "196608"], output
    for row, result in zip(rows, results["results"]):
        seconds = result["time_us"]["median"] * 1e-6
        assert abs(float(row[1]) - result["payload_bytes"] / seconds / 1e6) < 0.01, (row, result)
        assert abs(float(row[2]) - result["buckets"] / seconds) < 0.01, (row, result)


def main():
    run_tests((damage_is_counted, damage_is_counted_without_check,
               traces_show_the_gate_and_name_tensors, *few((
              nothing_to_damage_is_an_error, every_fill_checks, good_cases_run_beside_bad_ones,
              presets_have_their_payload, flags_have_one_vocabulary, the_busiest_port_and_csv,
              presets_are_listed, collectives_have_mpi_beside_them, sweeps_have_a_row_per_size,
              an_interrupt_shows_what_there_is,
              budgets_are_compared_in_one_run, plans_are_compared_in_one_run,
              joining_is_compared_in_one_run, knobs_are_compared_in_one_run,
              automatic_is_the_default, baselines_are_compared_with_every_budget,
              a_baseline_that_cannot_says_why, osu_view_has_three_columns_and_the_case))),
              Bench(sys.argv[1], sys.argv[2]))


if __name__ == "__main__":
    main()
