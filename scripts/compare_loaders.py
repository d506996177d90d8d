#!/usr/bin/env python3
"""Loads the same items by several loaders in turns, and prints a table.

usage: through scripts/compare_loaders.sh, which builds the program and explains the options.

The results are JSON. They begin as those of scripts/bench_rounds.py do: version, kind, date,
machine, commit, command, mpi, rounds. Then come:
  items        {count, bytes: of one}
  consume_us   the consumer computes so long with each item
  budget_items how many items are held ahead of the consumer: Sluice's budget, and workers x ahead
  workers, ahead, slabs, pinned (of DataLoader's items; null without torch)
  verified     how items were verified
  rows         one for each latency and way: {latency_ms, way, shard_items, version, in_order,
               latency_per: what is read in one go; reads_at_once, items_ahead: at most,
               time_us: {min, p25, median, p75, max, rounds}, items_per_s and gb_per_s (at the
               median), wait_share: {the same; of the time, the consumer waited}, check_us (of an
               item; null for Sluice), ratio: {the same of the rounds' ratios, time over that of
               sluice}, wrong: 0}
               The ways are sluice, sluice-thread (its progress thread drives the stream), warm
               (sluice without latency), waves:N, dataloader, and the others, for each number of
               items in a shard.
  missing      [{way, reason}]: ways that could not be had
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

import bench_rounds
from bench_rounds import ROOT, Failure, positive, quartiles
from compare_checkpoints import Environment, call, size_of

LOADER = os.path.join(ROOT, "bench", "stream", "python_loader.py")
# The packages of each; all take the first one's.
LIBRARIES = {"dataloader": ["torch", "numpy"], "mosaicml-streaming": ["mosaicml-streaming"],
             "webdataset": ["webdataset"]}
SLUICE, THREAD = ("sluice", None), ("sluice-thread", None)
NAMES = {"sluice": "Sluice", "sluice-thread": "Sluice, progress thread",
         "warm": "Sluice, no latency", "dataloader": "PyTorch DataLoader",
         "mosaicml-streaming": "MosaicML streaming", "webdataset": "webdataset"}
VERIFIED = ("sluice, warm and waves: every element, with the formula that wrote it; the others: "
            "every byte, with the raw files; each item once")


class Files:
    """The items, as each loader reads them. `ways`: (way, items of a shard)."""

    def __init__(self, args, folder, environment, ways):
        self.raw = os.path.join(folder, "raw")
        call([args.sluice_bench, "shards", "--make", "raw", "--dir", self.raw, "--items",
              str(args.items), "--item-bytes", str(args.item_bytes)])
        self.stored = {}
        for way in ways:
            self.stored[way] = self.raw
            if way[1] is not None:
                self.stored[way] = tempfile.mkdtemp(prefix=f"{way[0]}-", dir=folder)
                loader(environment, "make", self.job(args, way, 0, ""))

    def job(self, args, way, latency, local):
        return json.dumps({"way": way[0], "raw": self.raw, "stored": self.stored[way],
                           "local": local, "shard_items": way[1] or 0, "latency_ms": latency,
                           "consume_us": args.consume_us, "workers": args.workers,
                           "ahead": args.ahead})


def loader(environment, action, what):
    """What the loader's last line says."""
    with tempfile.TemporaryDirectory(prefix="loaders-") as folder:  # for what libraries leave there
        output = call([environment.python, "-B", LOADER, action, what],
                      env=dict(os.environ, TMPDIR=folder))
    return json.loads(output.splitlines()[-1])


def read_all(folder):
    """Puts files into the page cache."""
    for path in pathlib.Path(folder).iterdir():
        path.read_bytes()


def sluice_turn(args, files, way, latency):
    """{way: result} of a process of Sluice's; with `sluice`, the two that it is compared with."""
    more = ["--progress-thread"] if way == THREAD else ["--compare", f"waves:{args.slabs},warm"]
    read_all(files.raw)
    with tempfile.TemporaryDirectory(prefix="loaders-") as folder:
        file = os.path.join(folder, "results.json")
        block_bytes = -(-args.item_bytes // 4096) * 4096
        call([args.sluice_bench, "stream", "--source", "buffered:" + files.raw, "--latency-ms",
              str(latency), "--budget-bytes", str(args.budget * block_bytes), "--slots",
              str(args.budget), "--piece-bytes", str(args.item_bytes), "--consume-us",
              str(args.consume_us), "--check", "all", "--json", file, *more])
        with open(file, encoding="utf-8") as text:
            results = json.load(text)
    turn = {}
    for result in results["results"]:
        # So that the latency is that of an item, and the budget what the page says.
        if result["items"] != args.items or result["requests"] != args.items:
            raise Failure(f"sluice-bench read {args.items} items otherwise: {result}")
        if result["limit"]["slots"] != args.budget or result["wrong"]:
            raise Failure(f"not {args.budget} slots, or wrong elements: {result}")
        turn[way if result["mode"] == "sluice" else (result["mode"], None)] = {
            "time_us": result["time_us"]["median"], "version": results["version"],
            "wait_us": result["stage_s"]["wait"] * 1e6, "in_order": True, "check_us": None}
    return turn


def library_turn(args, environment, files, way, latency):
    """{way: result} of a process that loads all items."""
    read_all(files.stored[way])
    with tempfile.TemporaryDirectory(prefix="local-", dir=args.folder) as local:
        result = loader(environment, "load", files.job(args, way, latency, local))
    if result["wrong"] or result["items"] != args.items:
        raise Failure(f"{way[0]} loaded something else than the files hold: {result}")
    return {way: result}


def measure(args, environment, files, libraries):
    """{latency: [{(way, items of a shard): result}, one for each round]}"""
    def run(latency, way):
        if way in (SLUICE, THREAD):
            return sluice_turn(args, files, way, latency)
        return library_turn(args, environment, files, way, latency)

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
    elif way in LIBRARIES:
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


def markdown(results):
    def name(way):
        return NAMES.get(way, f"one of {results['slabs']} slabs at a time")

    lines = ["| latency ms | way | is that of | reads at once | items ahead | items/s | waiting | "
             "time / Sluice's |", "|---:|---|---|---:|---:|---:|---:|---:|"]
    for row in results["rows"]:
        way = name(row["way"]) + (" " + row["version"] if row["way"] in LIBRARIES else "")
        lines.append("| {:g} | {} | {} | {} | {} | {:.0f} | {:.0%} | {:.2f} ({:.2f} to {:.2f}) |"
                     .format(row["latency_ms"], way, row["latency_per"], row["reads_at_once"],
                             row["items_ahead"], row["items_per_s"], row["wait_share"]["median"],
                             row["ratio"]["median"], row["ratio"]["p25"], row["ratio"]["p75"]))
    lines += [f"| | {name(one['way'])} | | | | | | {one['reason']} |" for one in results["missing"]]
    lines += ["", f"{results['items']['count']} items of {results['items']['bytes']} bytes; the "
              f"consumer computes {results['consume_us']:g} us with each."]
    if results["pinned"] is not None:
        lines[-1] += (" DataLoader's items are in pinned memory." if results["pinned"] else
                      " Nothing is in pinned memory, as there is no CUDA here.")
    return "\n".join(lines)


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
    parser.add_argument("--items", type=positive, default=256)
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
    parser.add_argument("--json", default=ROOT + "/bench/results/loaders.json")
    args = parser.parse_args()
    args.budget = args.workers * args.ahead
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
        return loader(environment, "version", way)["version"], None
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


def main():
    args = parse()
    environment = None if args.no_torch else Environment(args.venv)
    versions, missing = available(args, environment)
    libraries = [(way, count) for way in versions
                 for count in ([None] if way == "dataloader" else args.shard_items)]
    os.makedirs(args.folder, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="loaders-", dir=args.folder) as folder:
        files = Files(args, folder, environment, libraries)
        rounds = measure(args, environment, files, libraries)
    results = bench_rounds.head(args, "compare-loaders")
    for key in ("shape", "tensors", "iters"):
        del results[key]
    ways = [SLUICE, THREAD, ("warm", None), (f"waves:{args.slabs}", None), *libraries]
    one_round = next(iter(rounds.values()))[0]
    results.update(
        rounds=min(map(len, rounds.values())),
        items={"count": args.items, "bytes": args.item_bytes}, consume_us=args.consume_us,
        budget_items=args.budget, workers=args.workers, ahead=args.ahead, slabs=args.slabs,
        pinned=next((one_round[way]["pinned"] for way in libraries), None), verified=VERIFIED,
        rows=rows_of(args, versions, rounds, ways), missing=missing)
    bench_rounds.write(args.json, results)
    print(markdown(results))
    return 0


if __name__ == "__main__":
    bench_rounds.main_of(main)
