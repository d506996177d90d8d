#!/usr/bin/env python3
"""What --plan-only prints and writes, with its figures computed again from the routes.

  reshard_plan_only_test.py MPIRUN SLUICE_BENCH
"""
import sys

from bench_run import run_tests
from reshard_run import Bench

RANKS_PER_NODE = 8
ELEMENTS = 512 * 256
TENSORS = 2


def across(routes):
    return [r for r in routes if r["src"] // RANKS_PER_NODE != r["dst"] // RANKS_PER_NODE]


def busiest(routes, end):
    sums = {}
    for route in routes:
        sums[route[end]] = sums.get(route[end], 0) + route["bytes"]
    return max(sums.values())


def figures_are_those_of_the_routes(bench):
    # All of the tensors goes from ranks 0 - 7, where each part has equally many holders, to 8 - 15.
    whole = TENSORS * ELEMENTS * 4
    for preset in ("etha-1-no_partial", "etha-4-replicate_dp", "etha-5-partial_dp",
                   "etha-7-no_partial"):
        code, output, results = bench.run(
            0, ["--plan-only", "--preset", preset, "--shape", "512,256", "--ranks-per-node", "8"])
        assert code == 0 and preset in output, output
        [plan] = results["results"]
        assert not results["errors"] and results["config"]["plan_only"] is True, results
        routes = plan["routes"]
        keys = [(r["src"], r["dst"], r["hop"]) for r in routes]
        assert len(set(keys)) == len(keys), "a route is there twice"
        crossing = across(routes)
        for key, value, bound in (
                ("node_bytes_ratio", sum(r["bytes"] for r in crossing), whole),
                ("busiest_src_ratio", busiest(crossing, "src"), whole / 8),
                ("busiest_dst_ratio", busiest(crossing, "dst"), whole / 8)):
            assert abs(plan[key] - value / bound) < 1e-9, (preset, key, plan[key], value / bound)
        assert plan["hops_max"] == max(r["hop"] for r in routes), plan
        assert plan["buckets"] > 0 and plan["peak_without_budget"]["buckets"] > 0, plan


def naive_plans_cross_once_for_each_replica(bench):
    # Replicas on the target's node; they hold all of the tensors that the sources hold.
    for preset, replicas in (("etha-1-no_partial", 8), ("etha-3-no_partial", 8),
                             ("etha-2-no_partial", 2), ("etha-4-no_partial", 1)):
        output, results = bench.passes(
            0, ["--plan-only", "--preset", preset, "--shape", "512,256", "--ranks-per-node", "8",
                "--compare-plans", "relay,naive"])
        relay, naive = results["results"]
        assert (relay["case"], naive["case"]) == (f"{preset}/relay", f"{preset}/naive"), results
        assert (relay["plan"], naive["plan"]) == ("relay", "naive"), results
        assert relay["node_bytes"] == ELEMENTS * 4 * TENSORS, (preset, relay["node_bytes"])
        assert naive["node_bytes"] == replicas * relay["node_bytes"], (preset, naive["node_bytes"])
        assert naive["hops_max"] == 1, (preset, naive["hops_max"])
        code, output, results = bench.run(
            0, ["--plan-only", "--preset", preset, "--shape", "512,256", "--ranks-per-node", "8",
                "--plan", "naive"])
        expected = dict(naive, case=preset)
        assert code == 0 and results["results"] == [expected], output


def without_joining_each_chunk_is_a_bucket(bench):
    flags = ["--plan-only", "--shape", "64,96", "--tensors", "10", "--src", "4:S(0)", "--dst",
             "2@4-5:S(1)"]
    output, results = bench.passes(0, flags + ["--compare-coalesce", "on,off"])
    joined, apart = results["results"]
    assert (joined["case"], apart["case"]) == ("inline/coalesce", "inline/no-coalesce"), results
    assert (joined["coalesce"], apart["coalesce"]) == (True, False), results
    assert (joined["buckets"], joined["chunks"]) == (8, 80), joined
    assert (apart["buckets"], apart["chunks"]) == (80, 80), apart
    assert joined["routes"] == apart["routes"], results
    code, output, results = bench.run(0, flags + ["--no-coalesce"])
    assert code == 0 and "coalesce=0" in output, output
    assert results["results"] == [dict(apart, case="inline")], results


def one_process_prints_for_all(bench):
    flags = ["--plan-only", "--preset", "etha-3-no_partial", "--ranks-per-node", "8"]
    code, alone, expected = bench.run(0, flags)
    assert code == 0, alone
    code, output, results = bench.run(2, flags)
    assert code == 0 and output == alone, output
    assert results == expected


def on_one_node_nothing_crosses(bench):
    output, results = bench.passes(0, ["--plan-only", "--preset", "etha-3-no_partial"])
    [plan] = results["results"]
    assert plan["node_bytes"] == 0 and plan["node_bytes_ratio"] == 1, plan
    assert plan["busiest_src_ratio"] == plan["busiest_dst_ratio"] == 1, plan


def boxes_on_both_sides(bench):
    """Ranks of boxes count, too: 0 and 3 have halves of 8 rows, and 5 gets all but the last one."""
    boxes = {"source": [(0, 0, 4), (3, 4, 4)], "target": [(5, 0, 7)]}
    case = {"id": "boxes", "shape": [8, 2]}
    for side, parts in boxes.items():
        case[side] = {"boxes": [{"rank": rank, "parts": [{"offset": [at, 0], "shape": [rows, 2]}]}
                                for rank, at, rows in parts]}
    file = bench.write("boxes.json", {"cases": [case]})
    output, results = bench.passes(0, ["--plan-only", "--cases", file])
    assert results["results"][0]["routes"] == [{"src": 0, "dst": 5, "bytes": 32, "hop": 1},
                                               {"src": 3, "dst": 5, "bytes": 24, "hop": 1}], results


def errors_are_named(bench):
    good = {"id": "good", "shape": [8], "source": {"mesh": [1], "ranks": [0], "placements": ["R"]},
            "target": {"mesh": [1], "ranks": [3], "placements": ["R"]}}
    file = bench.write("cases.json", {"cases": [dict(good, id="bad", dtype="f17"), good]})
    code, output, results = bench.run(0, ["--plan-only", "--cases", file])
    assert code == 1 and "f17" in output, (code, output)
    assert [r["case"] for r in results["results"]] == ["good"], results
    assert [e["case"] for e in results["errors"]] == ["bad"], results
    assert results["results"][0]["routes"] == [{"src": 0, "dst": 3, "bytes": 32, "hop": 1}]
    code, output, results = bench.run(0, ["--plan-only", "--preset", "etha-9"])
    assert code == 2 and results["errors"] and not results["results"], output


def ids_are_shown_on_one_line(bench):
    ident = "a\nb \u202egnp \u001b[31mred"
    part = {"mesh": [1], "ranks": [0], "placements": ["R"]}
    good = {"id": ident, "shape": [8], "source": part, "target": part}
    file = bench.write("ids.json", {"cases": [good, dict(good, id=ident + "2", dtype="f17")]})
    code, output, results = bench.run(0, ["--plan-only", "--cases", file])
    assert code == 1 and output.count(r"a\nb \xe2\x80\xaegnp \x1b[31mred") == 2, (code, output)
    assert not set("\u202e\u001b") & set(output), output
    assert [r["case"] for r in results["results"]] == [ident], results


def main():
    run_tests((figures_are_those_of_the_routes, naive_plans_cross_once_for_each_replica,
              without_joining_each_chunk_is_a_bucket, one_process_prints_for_all,
              on_one_node_nothing_crosses, boxes_on_both_sides, errors_are_named,
              ids_are_shown_on_one_line), Bench(sys.argv[1], sys.argv[2]))


if __name__ == "__main__":
    main()
