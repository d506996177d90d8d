"""Loaders of training data behind the same injected latency: Sluice, PyTorch's DataLoader, MosaicML
streaming and webdataset.

A case is a latency. Ways of Sluice's own are sluice, sluice-thread (its progress thread drives the
stream), warm (without latency), waves:N, serial and threads:WxN. Every item of every way is
verified in every round. All files are in the page cache. The time is from the first read to the end
of the last item's computation. Torch is large: 3 GB to fetch, 5 GB on disk. It is a tenth of that
if pip is told where builds for CPUs are (PIP_EXTRA_INDEX_URL).

Columns: `latency_per` is what is read in one go; `reads_at_once` and `items_ahead` are at most;
`wait_share` is the part of the time in which the consumer waited; `check_us` is of an item.

example: compare.py loaders --items 64 --rounds 2 --latencies 0,20 --json /tmp/loaders.json
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import threading

import packages
from rounds import (ROOT, TIMEOUT_S, Failure, call, into_page_cache, listed, positive, results_of,
                    size_of)

BASELINE = "sluice"
PACKAGES = ("python3-venv",)
MPI = False
# The packages of each; all take the first one's.
LIBRARIES = {"dataloader": ["torch", "numpy"], "dataloader-pinned": ["torch", "numpy"],
             "mosaicml-streaming": ["mosaicml-streaming"], "webdataset": ["webdataset"]}
IN_SHARDS = ("mosaicml-streaming", "webdataset")  # they read whole shards
LOADER = ROOT / "bench/stream/python_loader.py"
RESULT = "result: "


def not_negative(text):
    number = float(text)
    if not 0 <= number < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is below 0, or too much")
    return number


def options(parser):
    parser.add_argument("--items", type=positive, default=160, help="[160]")
    parser.add_argument("--item-bytes", type=size_of, default=1 << 20,
                        help="such as 64K, 1M [1M]")
    parser.add_argument("--latencies", type=listed(not_negative), default=[0, 20, 50, 200],
                        help="least time of each read, in milliseconds [0,20,50,200]")
    parser.add_argument("--consume-us", type=not_negative, default=2000,
                        help="the consumer computes so long with each item, check included [2000]")
    parser.add_argument("--workers", type=positive, default=8,
                        help="processes of a Python loader [8]")
    parser.add_argument("--ahead", type=positive, default=4,
                        help="items that each of them may be ahead (prefetch_factor); Sluice's "
                             "budget is the product of the two, in items [4]")
    parser.add_argument("--slabs", type=positive, default=8,
                        help="of that budget, for the way that fills one slab at a time [8]")
    parser.add_argument("--shard-items", type=listed(positive), default=[1, 8],
                        help="items of a shard of libraries that read whole shards [1,8]")
    parser.add_argument("--ways", type=listed(str), default=list(LIBRARIES),
                        help="loaders of Python's; pinned memory takes CUDA [all]")
    parser.add_argument("--no-torch", action="store_true",
                        help="none of them, as all take torch")
    parser.add_argument("--folder", default=ROOT / "build",
                        help="files are made there, and removed afterwards [build]")
    packages.options(parser, "venv-loaders")


def build(args):
    args.budget = args.workers * args.ahead
    args.plain = [f"waves:{args.slabs}", "warm", "serial", f"threads:{args.workers}x{args.ahead}"]
    if args.budget % args.slabs:
        raise ValueError(f"--slabs: {args.budget} items are not {args.slabs} equal slabs")
    if args.items < args.budget:
        raise ValueError("--items: fewer than the budget, --workers times --ahead")
    for way in args.ways:
        if way not in LIBRARIES:
            raise ValueError(f"--ways: there is no {way}; there are: {' '.join(LIBRARIES)}")
    environment = None if args.no_torch else packages.Environment(args.venv)
    args.versions, args.missing = available(args, environment)
    pathlib.Path(args.folder).mkdir(parents=True, exist_ok=True)
    args.made = args.stack.enter_context(
        tempfile.TemporaryDirectory(prefix="loaders-", dir=args.folder))
    args.raw = os.path.join(args.made, "raw")
    call([args.bin / "sluice-bench", "shards", "--make", "raw", "--dir", args.raw, "--items",
          args.items, "--item-bytes", args.item_bytes])
    # {(way, items of a shard): folder of the items as it reads them}
    args.stored = {(way, count): args.raw for way in args.versions
                   for count in (args.shard_items if way in IN_SHARDS else [None])}
    for way, count in args.stored:
        if count is not None:
            args.stored[way, count] = tempfile.mkdtemp(prefix=f"{way}-", dir=args.made)
            loader(environment, "make", job(args, way, count, 0, ""))
    if args.stored:
        args.server = args.stack.enter_context(LoaderServer(environment))


def version_of(environment, way):
    """(version, why it cannot be had): one of them."""
    if reason := environment.install(LIBRARIES[way]):
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


def cases(args):
    return [{"latency_ms": latency} for latency in args.latencies]


def turns(args, latency_ms):
    return [lambda: sluice(args, "sluice", latency_ms),
            lambda: sluice(args, "sluice-thread", latency_ms),
            *(lambda way=way, count=count: library(args, way, count, latency_ms)
              for way, count in args.stored)]


def times(args, way, shard_items, found):
    """With what the latency is of, and how many reads and items there are at once, at most."""
    per, at_once, ahead = "item", args.budget, args.budget
    if way.startswith("waves"):
        at_once //= args.slabs
    elif way in LIBRARIES or way.startswith("threads"):
        at_once = args.workers
    if shard_items is not None:
        per = f"shard of {shard_items}"
        at_once = min(at_once, -(-args.items // shard_items))
    if way == "mosaicml-streaming":
        # It downloads shards ahead of the workers, which are ahead of the consumer.
        ahead += args.workers * (args.ahead + shard_items - 1)
    check_us, time_us = found.get("check_us"), float(found["time_us"])
    return {way if shard_items is None else f"{way}, {per}": {
        "version": found["version"], "in_order": str(found["in_order"]), "latency_per": per,
        "reads_at_once": at_once, "items_ahead": ahead, "time_us": time_us,
        "items_per_s": args.items / time_us * 1e6, "wait_share": found["wait_us"] / time_us,
        "check_us": None if check_us is None else float(check_us)}}


def sluice(args, way, latency):
    """A process of Sluice's; with `sluice`, the plain loaders too."""
    more = ["--progress-thread"] if way == "sluice-thread" else ["--baseline", ",".join(args.plain)]
    into_page_cache(pathlib.Path(args.raw).iterdir())
    block_bytes = -(-args.item_bytes // 4096) * 4096
    results = results_of([
        args.bin / "sluice-bench", "stream", "--source", f"buffered:{args.raw}", "--latency-ms",
        latency, "--budget-bytes", args.budget * block_bytes, "--slots", args.budget,
        "--piece-bytes", args.item_bytes, "--consume-us", args.consume_us, "--check", "all", *more])
    turn = {}
    for result in results["results"]:
        # So that the latency is that of an item, and the budget what the page says.
        if (result["items"], result["requests"], result["limit"]["slots"]) != (
                args.items, args.items, args.budget):
            raise Failure(f"sluice-bench read {args.items} items otherwise: {result}")
        turn.update(times(args, way if result["case"] == "sluice" else result["case"], None, {
            "time_us": result["time_us"]["median"], "version": results["version"],
            "wait_us": result["stage_s"]["wait"] * 1e6, "in_order": True}))
    return turn


def job(args, way, shard_items, latency, local, scratch=""):
    return json.dumps({"way": way, "raw": args.raw, "stored": args.stored[way, shard_items],
                       "local": local, "shard_items": shard_items or 0, "latency_ms": latency,
                       "consume_us": args.consume_us, "workers": args.workers,
                       "ahead": args.ahead, "scratch": scratch})


def library(args, way, shard_items, latency):
    """A process that loads all items."""
    into_page_cache(path for path in pathlib.Path(args.stored[way, shard_items]).iterdir()
                    if path.is_file())
    with tempfile.TemporaryDirectory(prefix="local-", dir=args.folder) as local, \
            tempfile.TemporaryDirectory(prefix="loaders-") as scratch:
        found = args.server.load(job(args, way, shard_items, latency, local, scratch))
    if found["wrong"] or found["items"] != args.items:
        raise Failure(f"{way} loaded something else than the files hold: {found}")
    return times(args, way, shard_items, {**found, "version": args.versions[way]})


def extra(args, _):
    return {"items": args.items, "item_bytes": args.item_bytes, "consume_us": args.consume_us,
            "budget_items": args.budget, "missing": args.missing}


def loader(environment, action, what):
    """What the loader answers."""
    with tempfile.TemporaryDirectory(prefix="loaders-") as folder:  # for what libraries leave there
        output = call([environment.python, "-B", LOADER, action, what],
                      variables={"TMPDIR": folder})
    return next(json.loads(line.removeprefix(RESULT)) for line in reversed(output.splitlines())
                if line.startswith(RESULT))


class LoaderServer:
    """A process that has imported the libraries, and loads one job after the other."""

    def __init__(self, environment):
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self._process = subprocess.Popen(
            [environment.python, "-B", LOADER, "serve"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self._errors, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._process.stdin.close()
        except OSError:  # it has ended before
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def load(self, words):
        timer = threading.Timer(TIMEOUT_S, self._process.kill)
        timer.start()
        try:
            self._process.stdin.write(words + "\n")
            self._process.stdin.flush()
            line = next((line for line in self._process.stdout if line.startswith(RESULT)), None)
        except OSError:
            line = None
        finally:
            timer.cancel()
        if line is None:
            raise Failure(f"python_loader.py has ended, or took too long:\n{self._said()}")
        found = json.loads(line.removeprefix(RESULT))
        if "error" in found:
            raise Failure(f"{found['error']}\n{self._said()}")
        return found

    def _said(self):
        self._errors.seek(0)
        return self._errors.read()[-2000:]
