#!/usr/bin/env python3
"""Loads items once by a loader of Python's, checks each, and prints what came of it.

  python_loader.py version WAY     in an environment that has the library
  python_loader.py make JOB        writes the items as the library keeps them
  python_loader.py serve           loads for each line of its input, which is a JOB

WAY is dataloader or dataloader-pinned (PyTorch's), mosaicml-streaming or webdataset. JOB is the
JSON of a Job. Lines that begin with RESULT are the answers, as JSON. Workers are processes, and
starting them is not in the time: all of them wait until the last one has started. What serves has
imported the libraries once. A process of its own, forked off, loads for each job.
"""
import contextlib
import dataclasses
import glob
import importlib.metadata
import io
import json
import mmap
import os
import sys
import tarfile
import tempfile
import time
import traceback
import warnings

import numpy as np
import torch

PACKAGES = {"dataloader": "torch", "dataloader-pinned": "torch",
            "mosaicml-streaming": "mosaicml-streaming", "webdataset": "webdataset"}
RESULT = "result: "
START_S = 120
# A loader that gives an item within this has kept nobody waiting: it comes off the computation.
SHORT_WAIT_S = 1e-3


@dataclasses.dataclass
class Job:
    way: str
    raw: str            # folder of `sluice-bench shards --make raw`
    stored: str         # folder of the items as the library keeps them
    local: str          # empty folder, for what is downloaded
    shard_items: int    # of a shard in `stored`
    latency_ms: float   # least time of each read
    consume_us: float   # the consumer computes so long with each item
    workers: int
    ahead: int          # items of each worker
    scratch: str = ""   # folder for what libraries leave behind


@contextlib.contextmanager
def at_least(seconds):
    """What is inside takes no less time."""
    begin = time.monotonic()
    yield
    time.sleep(max(0.0, seconds - (time.monotonic() - begin)))


def places(folder):
    """(path, offset, bytes) of each item of raw shards."""
    with open(os.path.join(folder, "index.json"), encoding="utf-8") as file:
        index = json.load(file)
    found = []
    for one in index["objects"]:
        size = one["item_bytes"]
        found += [(os.path.join(folder, one["name"]),
                   one.get("offset", 0) + i * one.get("stride", size), size)
                  for i in range(one["items"])]
    return found


def to_tensor(data):
    return torch.frombuffer(data, dtype=torch.uint8)


class RawItems:
    """A map-style data set over the very files that Sluice reads."""

    def __init__(self, job):
        self.places = places(job.raw)
        self.latency_s = job.latency_ms / 1e3
        self.files = {}  # those that this worker has opened

    def __len__(self):
        return len(self.places)

    def __getitem__(self, number):
        path, offset, size = self.places[number]
        data = torch.empty(size, dtype=torch.uint8)
        with at_least(self.latency_s):
            if path not in self.files:
                self.files[path] = os.open(path, os.O_RDONLY)
            if os.preadv(self.files[path], [data.numpy()], offset) != size:
                raise OSError(f"{path} is too short")
        return number, data


def streaming_items(job):
    from streaming import Stream, StreamingDataset

    class SlowStream(Stream):
        def _download_file(self, from_basename, to_basename=None):
            with at_least(0 if from_basename.endswith(".json") else job.latency_ms / 1e3):
                return super()._download_file(from_basename, to_basename)

    class Items(StreamingDataset):
        def __getitem__(self, at):
            sample = super().__getitem__(at)
            return int(sample["number"]), to_tensor(sample["data"])

    return Items(streams=[SlowStream(remote=job.stored, local=job.local)], batch_size=1,
                 shuffle=False, num_canonical_nodes=1, predownload=job.ahead)


def webdataset_items(job):
    import webdataset
    from webdataset.gopen import gopen_schemes

    def slow_open(url, mode="rb", *_args, **_options):
        with at_least(job.latency_ms / 1e3):
            return open(url.removeprefix("slow:"), mode)

    gopen_schemes["slow"] = slow_open
    shards = ["slow:" + path for path in sorted(glob.glob(os.path.join(job.stored, "*.tar")))]
    # With fewer shards than workers some workers have nothing, which is no error.
    return webdataset.WebDataset(shards, shardshuffle=False, empty_check=False).map(
        lambda sample: (int(sample["__key__"]), to_tensor(sample["bin"])))


DATASETS = {"dataloader": RawItems, "dataloader-pinned": RawItems,
            "mosaicml-streaming": streaming_items, "webdataset": webdataset_items}


def raw_bytes(job):
    for number, (path, offset, size) in enumerate(places(job.raw)):
        with open(path, "rb") as file:
            file.seek(offset)
            yield number, file.read(size)


def make_tars(job):
    archive = None
    for number, data in raw_bytes(job):
        if number % job.shard_items == 0:
            if archive is not None:
                archive.close()
            name = f"shard-{number // job.shard_items:06d}.tar"
            archive = tarfile.open(os.path.join(job.stored, name), "w")
        entry = tarfile.TarInfo(f"{number:09d}.bin")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    archive.close()


def make_mds(job):
    from streaming import MDSWriter
    item_bytes = max(size for _, _, size in places(job.raw))
    # Half an item is more than what a shard has besides its items.
    with MDSWriter(out=job.stored, columns={"number": "int", "data": "bytes"},
                   size_limit=job.shard_items * item_bytes + item_bytes // 2) as writer:
        for number, data in raw_bytes(job):
            writer.write({"number": number, "data": data})
    with open(os.path.join(job.stored, "index.json"), encoding="utf-8") as file:
        counts = [shard["samples"] for shard in json.load(file)["shards"]]
    if any(count != job.shard_items for count in counts[:-1]):
        raise ValueError(f"shards were to have {job.shard_items} items, and have {counts}")


class Gate:
    """Holds workers back until all have started, so that no start of a process is timed."""

    def __init__(self, context):
        self.started = context.Semaphore(0)
        self.is_open = context.Event()

    def __call__(self, _worker):
        self.started.release()
        self.is_open.wait()

    def open(self, workers):
        for _ in range(workers):
            if not self.started.acquire(timeout=START_S):
                raise TimeoutError(f"a worker has not started within {START_S} s")
        self.is_open.set()


class Check:
    """Compares items with the raw shards, of which Sluice verifies every element."""

    def __init__(self, job):
        self.places = places(job.raw)
        self.missing = set(range(len(self.places)))
        self.next, self.in_order = 0, True
        self.files = {}
        for path in {path for path, _, _ in self.places}:
            with open(path, "rb") as file:
                # In memory now, so that no item waits for it.
                mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE,
                                   prot=mmap.PROT_READ)
            self.files[path] = np.frombuffer(mapped, dtype=np.uint8)

    def is_wrong(self, number, data):
        self.in_order = self.in_order and number == self.next
        self.next = number + 1
        if number not in self.missing:
            return True
        self.missing.remove(number)
        path, offset, size = self.places[number]
        return not np.array_equal(data.numpy(), self.files[path][offset:offset + size])


def load(job):
    context = torch.multiprocessing.get_context("fork")
    gate, check = Gate(context), Check(job)
    pinned = job.way == "dataloader-pinned"
    iterator = iter(torch.utils.data.DataLoader(
        DATASETS[job.way](job), batch_size=None, num_workers=job.workers, pin_memory=pinned,
        prefetch_factor=job.ahead, multiprocessing_context=context, worker_init_fn=gate))
    gate.open(job.workers)
    wrong, wait_s, checks_s = 0, 0.0, []
    begin = end = due = time.monotonic()
    for number, data in iterator:
        now = time.monotonic()
        wait_s += now - end
        if not checks_s or now - end > SHORT_WAIT_S:
            due = now
        wrong += check.is_wrong(number, data)
        checked = time.monotonic()
        checks_s.append(checked - now)
        # The check is part of the computation, as in sluice-bench.
        due = max(due + job.consume_us / 1e6, checked)
        if due > checked:
            time.sleep(due - checked)
        end = time.monotonic()
    return {"time_us": (end - begin) * 1e6, "wait_us": wait_s * 1e6, "items": len(checks_s),
            "wrong": wrong + len(check.missing), "in_order": check.in_order, "pinned": pinned,
            "check_us": float(np.median(checks_s)) * 1e6}


def import_library(way):
    if way == "mosaicml-streaming":
        import streaming  # noqa: F401
    elif way == "webdataset":
        import webdataset  # noqa: F401


def version(way):
    """Or why this way cannot be had here."""
    import_library(way)
    if way == "dataloader-pinned" and not torch.cuda.is_available():
        return {"reason": "pinned memory takes CUDA, and PyTorch finds none here"}
    return {"version": importlib.metadata.version(PACKAGES[way])}


def answer(what):
    print(RESULT + json.dumps(what), flush=True)


def serve():
    for line in sys.stdin:
        job = Job(**json.loads(line))
        import_library(job.way)
        child = os.fork()
        if child == 0:
            os.environ["TMPDIR"] = tempfile.tempdir = job.scratch
            try:
                answer(load(job))
            except Exception:  # whatever a library raises; who asked gets to know
                answer({"error": traceback.format_exc()})
            return  # an ordinary end, in which libraries put away what they have
        _, status = os.waitpid(child, 0)
        if status != 0:
            answer({"error": f"the process that loads ended with {status}"})


def main():
    # More workers than cores; buffers that nobody writes to.
    warnings.filterwarnings("ignore", category=UserWarning)
    action = sys.argv[1]
    if action == "serve":
        serve()
        return
    what = sys.argv[2]
    if action == "version":
        answer(version(what))
        return
    job = Job(**json.loads(what))
    {"mosaicml-streaming": make_mds, "webdataset": make_tars}[job.way](job)
    answer({})


if __name__ == "__main__":
    main()
