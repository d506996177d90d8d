"""Turns of compare_loaders.py: the files that loaders read, and loading them once in one way."""
import json
import os
import pathlib
import subprocess
import tempfile
import threading

import bench_rounds
from bench_rounds import ROOT, Failure
from compare_checkpoints import call

LOADER = os.path.join(ROOT, "bench", "stream", "python_loader.py")
RESULT = "result: "
SLUICE, THREAD = ("sluice", None), ("sluice-thread", None)


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

    def job(self, args, way, latency, local, scratch=""):
        return json.dumps({"way": way[0], "raw": self.raw, "stored": self.stored[way],
                           "local": local, "shard_items": way[1] or 0, "latency_ms": latency,
                           "consume_us": args.consume_us, "workers": args.workers,
                           "ahead": args.ahead, "scratch": scratch})


def loader(environment, action, what):
    """What the loader answers."""
    with tempfile.TemporaryDirectory(prefix="loaders-") as folder:  # for what libraries leave there
        output = call([environment.python, "-B", LOADER, action, what],
                      env=dict(os.environ, TMPDIR=folder))
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

    def load(self, job):
        timer = threading.Timer(bench_rounds.TIMEOUT_S, self._process.kill)
        timer.start()
        try:
            self._process.stdin.write(job + "\n")
            self._process.stdin.flush()
            line = next((line for line in self._process.stdout if line.startswith(RESULT)), None)
        except OSError:
            line = None
        finally:
            timer.cancel()
        if line is None:
            raise Failure(f"python_loader.py has ended, or took too long:\n{self._said()}")
        result = json.loads(line.removeprefix(RESULT))
        if "error" in result:
            raise Failure(f"{result['error']}\n{self._said()}")
        return result

    def _said(self):
        self._errors.seek(0)
        return self._errors.read()[-2000:]


def read_all(folder):
    """Puts files into the page cache."""
    for path in pathlib.Path(folder).iterdir():
        path.read_bytes()


def sluice_turn(args, files, way, latency):
    """{way: result} of a process of Sluice's; with `sluice`, the two that it is compared with."""
    more = ["--progress-thread"] if way == THREAD else ["--baseline", ",".join(args.plain)]
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
        turn[way if result["case"] == "sluice" else (result["case"], None)] = {
            "time_us": result["time_us"]["median"], "version": results["version"],
            "wait_us": result["stage_s"]["wait"] * 1e6, "in_order": True, "check_us": None}
    return turn


def library_turn(args, server, files, way, latency):
    """{way: result} of a process that loads all items."""
    read_all(files.stored[way])
    with tempfile.TemporaryDirectory(prefix="local-", dir=args.folder) as local, \
            tempfile.TemporaryDirectory(prefix="loaders-") as scratch:
        result = server.load(files.job(args, way, latency, local, scratch))
    if result["wrong"] or result["items"] != args.items:
        raise Failure(f"{way[0]} loaded something else than the files hold: {result}")
    return {way: result}
