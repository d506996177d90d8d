#!/usr/bin/env python3
"""Bad input ends in a clear error, exit code 2 and a results file, soon, and moves nothing.

  reshard_bad_input_test.py MPIRUN SLUICE_BENCH
"""
import functools
import json
import pathlib
import sys

from few import few
from reshard_run import Bench
from together import together

WORLD = 4
GOOD = {"id": "good", "shape": [8, 8], "dtype": "f32",
        "source": {"mesh": [2], "ranks": [0, 1], "placements": ["S(0)"]},
        "target": {"mesh": [2], "ranks": [2, 3], "placements": ["S(1)"]}}


def changed(**parts):
    """GOOD with other keys; `source_x` and `target_x` change a key of a side."""
    case = json.loads(json.dumps(GOOD))
    for name, value in parts.items():
        side, _, key = name.partition("_")
        if key:
            case[side][key] = value
        else:
            case[name] = value
    return case


# Content of a case file, and a part of the message. tests/workload has what reading a file finds.
FILES = [
    ("", "not JSON"),
    ({"cases": [7]}, "object"),
    ({"cases": [GOOD, GOOD]}, "good"),
    ({key: value for key, value in GOOD.items() if key != "target"}, "target"),
    (changed(shape=[1] * 9), "dimensions"),
    (changed(shape=[2**40, 64]), "available"),
    (changed(dtype="f17"), "f17"),
    (changed(target_dtype="i32"), "cast"),
    (changed(source_mesh=[0]), "source"),
    (changed(source_mesh=[2**40, 2**40]), "source"),
    (changed(target_ranks=[2, 4]), "4"),
    (changed(target_ranks=[2, 10**12]), "rank"),
    (changed(source_placements=[]), "source"),
    (changed(source_placements=["S(0)", "R"]), "source"),
    (changed(source_placements=["S(-1)"]), "S(-1)"),
    (changed(source_placements=["SS(0,0)"]), "SS(0,0)"),
    (changed(source_placements=["Q"]), "Q"),
    (changed(source_placements=["P(mean)"]), "P(mean)"),
    (changed(target_placements=["P(sum)"]), "artial"),
]

INLINE = ["--shape", "8,8", "--src-mesh", "2", "--src-ranks", "0-1", "--src-placements", "S(0)",
          "--dst-mesh", "2", "--dst-ranks", "2-3", "--dst-placements", "S(1)"]

# Arguments, and a part of the message.
ARGUMENTS = [
    ([], "nothing to move"),
    (["--cases", "/nowhere/cases.json"], "/nowhere/cases.json"),
    (["--cases", "/tmp"], "/tmp"),
    (["--preset", "etha-9-no_partial"], "etha-9-no_partial"),
    (["--preset", "etha-1-no_partial"], "preset etha-1-no_partial takes 16 ranks, "),
    (["--preset", "etha-1-no_partial", "--cases", "x"], "exclude"),
    (["--model", "x.json"], "--system"),
    (["--collective", "gather", "--plan-only"], "--ranks"),
    (["--collective", "all-hands", "--ranks", "2"], "all-to-all"),
    (INLINE + ["--collective", "gather", "--ranks", "2"], "--collective"),
    (["--shape", "8", "--src", "2:S(0)", "--dst", "2:S(1)"], "dimension 1"),
    (INLINE[:-2], "--dst-placements"),
    (INLINE + ["--dst-ranks", "2-3"], "--dst-ranks"),
    (INLINE + ["--bucket-bytes", "8"], "bucket"),
    (INLINE + ["--bucket-bytes", "lots"], "--bucket-bytes"),
    (INLINE + ["--bucket-bytes", "8M", "--budget-bytes", "4M"], "budget"),
    (INLINE + ["--max-in-flight", "-1"], "flight"),
    (INLINE + ["--max-in-flight", "many"], "--max-in-flight"),
    (INLINE + ["--compare-bucket-bytes", "1M,8"], "bucket"),
    (INLINE + ["--compare-bucket-bytes", "1M,,2M"], "--compare-bucket-bytes"),
    (INLINE + ["--compare-bucket-bytes", "auto,1M,0"], "twice"),
    (INLINE + ["--compare-bucket-bytes", "1K,2K,3K,4K,5K,6K,7K,8K,9K"], "at most 8"),
    (INLINE + ["--compare-max-in-flight", "1,x"], "--compare-max-in-flight"),
    (INLINE + ["--compare-bucket-bytes", "1K,2K,3K,4K,5K", "--compare-max-in-flight",
               "1,2,3,4,5", "--compare-budgets", "0,1,2"], "combinations"),
    (INLINE + ["--budget-buckets", "-3"], "0 for no limit"),
    (INLINE + ["--compare-budgets", "8,-3"], "--compare-budgets"),
    (INLINE + ["--timeout-s", "0"], "--timeout-s"),
    (INLINE + ["--timeout-s", "nan"], "--timeout-s"),
    (INLINE + ["--corrupt", "-1"], "--corrupt"),
    (INLINE + ["--windowed", "1", "--corrupt", "1"], "--corrupt"),
    (INLINE + ["--fingerprint", "2"], "--fingerprint"),
    (INLINE + ["-n", "0"], "--iters"),
    (INLINE + ["--check", "2"], "--check"),
    (INLINE + ["--seed", "x"], "--seed"),
    (INLINE + ["--unknown"], "there is no flag --unknown"),
    (INLINE + ["--baseline", "nonsense"], "gather-broadcast"),
    (INLINE + ["--baseline", "isend,,serial"], "--baseline"),
    (INLINE + ["--baseline", "isend,serial,isend"], "twice"),
    (INLINE + ["--plan", "nonsense"], "naive"),
    (INLINE + ["--compare-plans", "naive,naive"], "twice"),
    (INLINE + ["--format", "nonsense"], "osu"),
    (INLINE + ["--tensors", "0"], "--tensors"),
    (INLINE + ["--tensors", "many"], "--tensors"),
    (["--cases", "x", "--tensors", "2"], "--tensors"),
    (INLINE + ["-b", "1M", "-e", "1K"], "-b"),
]


def refused(bench, args, expected, by_rank=None, world=WORLD):
    results = bench.refused(world, args, expected, by_rank)
    assert results["results"] == [], (args, results["results"])


def check_cases(bench):
    """The bad cases of FILES in one file. Each has its own error, and the good one beside runs."""
    rows = [(dict(content, id=f"bad {i}"), expected) for i, (content, expected) in enumerate(FILES)
            if isinstance(content, dict) and "cases" not in content]
    file = bench.write("bad-cases.json", {"cases": [*(case for case, _ in rows), GOOD]})
    code, output, results = bench.run(WORLD, ["--cases", file, "-n", "1"])
    assert code == 1, output
    assert [result["case"] for result in results["results"]] == ["good"], results["results"]
    errors = results["errors"]
    assert [error["case"] for error in errors] == [case["id"] for case, _ in rows], errors
    for error, (_, expected) in zip(errors, rows):
        assert expected in error["message"] and error["message"] in output, (expected, error)


def bad_files(bench):
    """Whatever is no list of cases, and some of the cases, by themselves."""
    together([functools.partial(check_cases, bench)] +
             [functools.partial(refused, bench,
                                ["--cases", bench.write(f"bad-{i}.json", content)], expected)
              for i, (content, expected) in enumerate(FILES)
              if not isinstance(content, dict) or "cases" in content or i % 8 == 0])


def bad_arguments(bench):
    """Most without mpirun, which takes longer than the refusal."""
    together(functools.partial(refused, bench, args, expected, world=WORLD if i % 4 == 0 else 0)
             for i, (args, expected) in few(enumerate(ARGUMENTS)))


def other_ranks_are_named(bench):
    good = bench.write("good.json", GOOD)
    other = bench.write("other.json", changed(shape=[8, 16]))
    renamed = bench.write("renamed.json", changed(id="else"))
    broken = bench.write("broken.json", "{")
    others = [
        ["--cases", other],
        ["--cases", renamed],
        ["--cases", broken],
        ["--cases", "/nowhere/cases.json"],
        ["--cases", good, "--bucket-bytes", "4M"],
        ["--cases", good, "--max-in-flight", "3"],
        ["--cases", good, "-n", "5", "--compare-bucket-bytes", "auto,1M"],
        ["--cases", good, "-n", "3"],
        ["--cases", good, "--nonsense"],
        ["--cases", good, "-n", "5", "--baseline", "isend"],
        ["--cases", good, "-n", "5", "--plan", "naive"],
        ["--cases", good, "-n", "5", "--compare-plans", "naive,relay"],
        ["--cases", good, "-n", "5", "--format", "osu"],
        ["--cases", good, "-n", "5", "--format", "nonsense"],
    ]
    together(functools.partial(refused, bench, ["--cases", good, "-n", "5"], "2", by_rank={2: args})
             for args in few(others))


def unwritable_results(bench):
    good = bench.write("good.json", GOOD)
    bench.cannot_write_results(WORLD, ["--cases", good])


def results_replace_no_input(bench):
    good = bench.write("good.json", GOOD)
    before = pathlib.Path(good).read_bytes()
    code, output, _ = bench.run(0, ["--cases", good], results_file=good)
    assert code == 2 and "is the file of --cases" in output, (code, output)
    assert pathlib.Path(good).read_bytes() == before, good
    trace = bench.path("trace.json")
    code, output, _ = bench.run(0, INLINE + ["--trace", trace], results_file=trace)
    assert code == 2 and "is the file of --trace" in output, (code, output)


def without_a_gpu(bench):
    """There may be one: then all is well."""
    code, output, results = bench.run(2, ["--shape", "8", "--device", "cuda", "-n", "1",
                                          "--src-mesh", "1", "--src-ranks", "0",
                                          "--src-placements", "R", "--dst-mesh", "1",
                                          "--dst-ranks", "1", "--dst-placements", "R"])
    assert code in (0, 77) and bool(results["errors"]) == (code == 77), (code, output)


def main():
    bench = Bench(sys.argv[1], sys.argv[2])
    bad_files(bench)
    bad_arguments(bench)
    other_ranks_are_named(bench)
    unwritable_results(bench)
    results_replace_no_input(bench)
    without_a_gpu(bench)
    print(f"{next(bench.runs)} runs refused")


if __name__ == "__main__":
    main()
