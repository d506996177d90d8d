#!/usr/bin/env python3
"""Loads the same items by several loaders in turns, and prints a table.

usage: through scripts/compare_loaders.sh, which builds the program and explains the options.

The results are JSON. They begin as those of scripts/bench_rounds.py do: version, kind, date,
machine, commit, command, mpi, rounds. Then come:
  items        {count, bytes: of one}
  consume_us   the consumer computes so long with each item
  budget_items how many items are held ahead of the consumer: Sluice's budget, and workers x ahead
  workers, ahead, slabs, pinned (dataloader-pinned was measured; null without torch)
  verified     how items were verified
  rows         one for each latency and way: {latency_ms, way, shard_items, version, in_order,
               latency_per: what is read in one go; reads_at_once, items_ahead: at most,
               time_us: {min, p25, median, p75, max, rounds}, items_per_s and gb_per_s (at the
               median), wait_share: {the same; of the time, the consumer waited}, check_us (of an
               item; null for Sluice), ratio: {the same of the rounds' ratios, time over that of
               sluice}, wrong: 0}
               The ways are sluice, sluice-thread (its progress thread drives the stream), warm
               (sluice without latency), waves:N, serial and threads:WxN (plain loaders of
               sluice-bench's own), dataloader, dataloader-pinned, and the others, for each number
               of items in a shard.
  goals        [{goal, words, setting, least, measured: {n, median, q1, q3}, reached}]: times of
               others over Sluice's
  missing      [{way, reason}]: ways that could not be had
"""
import argparse
import contextlib
import os
import pathlib
import shlex
import sys
import tempfile

import bench_rounds
from bench_rounds import ROOT, Failure, positive, quartiles
from compare_checkpoints import Environment, size_of
from loader_turns import SLUICE, THREAD, Files, LoaderServer, library_turn, loader, sluice_turn

import results_file  # below bench_rounds, which knows its folder
import table
import verdict
from spread import spread

# The packages of each; all take the first one's.
LIBRARIES = {"dataloader": ["torch", "numpy"], "dataloader-pinned": ["torch", "numpy"],
             "mosaicml-streaming": ["mosaicml-streaming"], "webdataset": ["webdataset"]}
IN_SHARDS = ("mosaicml-streaming", "webdataset")  # they read whole shards
# What is to be reached: of the time of the best of them, and of DataLoader's from so many ms on.
BEST, DATALOADER, DATALOADER_MS = 1.0, 2.0, 50
VERIFIED = ("ways of sluice-bench: every element, with the formula that wrote it; the others: "
            "every byte, with the raw files; each item once")


def measure(args, server, files, libraries):
    """{latency: [{(way, items of a shard): result}, one for each round]}"""
    def run(latency, way):
        if way in (SLUICE, THREAD):
            return sluice_turn(args, files, way, latency)
        return library_turn(args, server, files, way, latency)

    rounds = bench_rounds.measure(args, args.latencies, [SLUICE, THREAD, *libraries], run)
    if not all(rounds.values()):
        raise Failure("no round was whole")
    return {latency: [{way: result for turn in whole.values() for way, result in turn.items()}
                      for whole in all_turns] for latency, all_turns in rounds.items()}


def reads_of(args, way, shard_items):
    """What the latency is of, and how many reads and items there are at once, at most."""
    per, at_once, ahead = "item", args.budget, args.budget
    if way.startswith("waves"):
        at_once //= args.slabs
    elif way in LIBRARIES or way.startswith("threads"):
        at_once = args.workers
    if shard_items is not None:
        per = f"shard of {shard_items} item{'s' * (shard_items > 1)}"
        at_once = min(at_once, -(-args.items // shard_items))
    if way == "mosaicml-streaming":
        # It downloads shards ahead of the workers, which are ahead of the consumer.
        ahead += args.workers * (args.ahead + shard_items - 1)
    return {"latency_per": per, "reads_at_once": at_once, "items_ahead": ahead}


def rows_of(args, versions, rounds, ways):
    rows = []
    for latency, all_results in rounds.items():
        for way in ways:
            results = [one[way] for one in all_results]
            spread = quartiles([result["time_us"] for result in results])
            per_s = args.items / spread["median"] * 1e6
            checks = [result["check_us"] for result in results if result["check_us"] is not None]
            rows.append({
                "latency_ms": latency, "way": way[0], "shard_items": way[1],
                "version": versions.get(way[0]) or results[0]["version"],
                "in_order": all(result["in_order"] for result in results), **reads_of(args, *way),
                "time_us": spread, "items_per_s": per_s, "gb_per_s": per_s * args.item_bytes / 1e9,
                "wait_share": quartiles([one["wait_us"] / one["time_us"] for one in results]),
                "check_us": bench_rounds.median(checks) if checks else None,
                "ratio": quartiles([one[way]["time_us"] / one[SLUICE]["time_us"]
                                    for one in all_results]), "wrong": 0})
    return rows


def goals_of(rounds, libraries):
    """Of each latency: how long others take beside Sluice."""
    def against(words, least, ways):
        found = spread(min(one[way]["time_us"] for way in ways) / one[SLUICE]["time_us"]
                       for one in all_results)
        lines.append(verdict.at_least(words, f"{latency:g} ms", least, found))

    lines = []
    item_by_item = [way for way in libraries if way[1] in (None, 1)]
    torch = [way for way in libraries if way[0].startswith("dataloader")]
    for latency, all_results in rounds.items():
        if item_by_item:
            against("the best loader that reads item by item, time over Sluice's", BEST,
                    item_by_item)
        if len(item_by_item) < len(libraries):
            against("the best loader, whole shards too, time over Sluice's", BEST, libraries)
        if torch and latency >= DATALOADER_MS:
            against("PyTorch's DataLoader, time over Sluice's", DATALOADER, torch)
    return lines


def listed(kind):
    """A list with commas between, each once. `kind` reads one of it."""
    def list_of_numbers(text):
        return list(dict.fromkeys(kind(word) for word in text.split(",")))
    return list_of_numbers


def not_negative(text):
    number = float(text)
    if not 0 <= number < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is below 0, or too much")
    return number


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    build = os.path.join(ROOT, "build")
    parser.add_argument("--sluice-bench", default=build + "/bin/sluice-bench")
    parser.add_argument("--items", type=positive, default=160)
    parser.add_argument("--item-bytes", type=size_of, default=1 << 20)
    parser.add_argument("--latencies", type=listed(not_negative), default=[0, 20, 50, 200])
    parser.add_argument("--consume-us", type=not_negative, default=2000)
    parser.add_argument("--workers", type=positive, default=8)
    parser.add_argument("--ahead", type=positive, default=4)
    parser.add_argument("--slabs", type=positive, default=8)
    parser.add_argument("--shard-items", type=listed(positive), default=[1, 8])
    parser.add_argument("--ways", type=listed(str), default=list(LIBRARIES))
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--folder", default=build)
    parser.add_argument("--rounds", type=positive, default=5)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--venv", default=build + "/venv-loaders")
    parser.add_argument("--json", default=ROOT + "/build/results/loaders.json")
    args = parser.parse_args()
    args.budget = args.workers * args.ahead
    args.plain = [f"waves:{args.slabs}", "warm", "serial", f"threads:{args.workers}x{args.ahead}"]
    if args.budget % args.slabs:
        parser.error(f"--slabs: {args.budget} items are not {args.slabs} equal slabs")
    if args.items < args.budget:
        parser.error("--items: fewer than the budget, --workers times --ahead")
    for way in args.ways:
        if way not in LIBRARIES:
            parser.error(f"--ways: there is no {way}; there are: {' '.join(LIBRARIES)}")
    args.sluice_bench = os.path.abspath(args.sluice_bench)
    args.ranks, args.shape, args.tensors, args.iters = 1, "0", 0, 1  # for bench_rounds.head
    return args


def version_of(environment, way):
    """(version, why it cannot be had): one of them."""
    reason = environment.install(LIBRARIES[way])
    if reason:
        return None, reason
    try:
        said = loader(environment, "version", way)
        return said.get("version"), said.get("reason")
    except Failure as error:
        return None, f"it cannot be imported: {str(error).splitlines()[-1]}"


def available(args, environment):
    """{way: version} of the libraries that are there, and why the others are not."""
    if args.no_torch:
        return {}, [{"way": way, "reason": "left out: it takes torch"} for way in args.ways]
    torch, without = version_of(environment, "dataloader")
    versions, missing = {}, []
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as pins:
        # The torch that is there stays: a library that takes another one is left out.
        pins.write(f"torch=={torch}\n")
        pins.flush()
        os.environ["PIP_CONSTRAINT"] = pins.name
        for way in args.ways:
            version, reason = (None, without) if without else version_of(environment, way)
            if reason:
                missing.append({"way": way, "reason": reason})
            else:
                versions[way] = version
    return versions, missing


def command_of(words):
    """As it was typed, but for where this machine has things."""
    kept = list(words)
    for flag in ("--sluice-bench", "--venv", "--folder", "--json"):
        while flag in kept:
            at = kept.index(flag)
            del kept[at:at + 2]
    return shlex.join(["scripts/compare_loaders.sh", *kept])


def main():
    args = parse()
    environment = None if args.no_torch else Environment(args.venv)
    versions, missing = available(args, environment)
    libraries = [(way, count) for way in versions
                 for count in (args.shard_items if way in IN_SHARDS else [None])]
    os.makedirs(args.folder, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="loaders-", dir=args.folder) as folder:
        files = Files(args, folder, environment, libraries)
        with LoaderServer(environment) if libraries else contextlib.nullcontext() as server:
            rounds = measure(args, server, files, libraries)
    results = bench_rounds.head(args, "compare-loaders")
    for key in ("shape", "tensors", "iters"):
        del results[key]
    ways = [SLUICE, THREAD, *((way, None) for way in args.plain), *libraries]
    results.update(
        command=command_of(sys.argv[1:]),
        rounds=min(map(len, rounds.values())),
        items={"count": args.items, "bytes": args.item_bytes}, consume_us=args.consume_us,
        budget_items=args.budget, workers=args.workers, ahead=args.ahead, slabs=args.slabs,
        pinned="dataloader-pinned" in versions if libraries else None, verified=VERIFIED,
        goals=goals_of(rounds, libraries), rows=rows_of(args, versions, rounds, ways),
        missing=missing)
    results_file.write(pathlib.Path(args.json), results)
    print(table.tables(results))
    return 0


if __name__ == "__main__":
    bench_rounds.main_of(main)
