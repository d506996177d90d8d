"""One rank: what a sync of many small tensors takes from Python, beside micro-bench small-sync.

usage: scripts/spawn.sh -n 2 PYTHON bench/python/small_sync.py --way bound|sync --json FILE

The same tensors as there, as tensors of PyTorch's, from rows to columns. `bound` starts a transfer
that was planned once, and waits; `sync` calls sluice.sync. Microseconds of each run, of the slowest
rank. Before each run destinations are overwritten, after it every element is compared.
"""
import argparse
import json
import sys
import time

import torch

import sluice


def layouts(size):
    ranks = list(range(size))
    return (sluice.Layout(mesh=ranks, placements=[sluice.Shard(0)]),
            sluice.Layout(mesh=ranks, placements=[sluice.Shard(1)]))


class Job:
    def __init__(self, session, options):
        rank, size = session.rank, session.size
        shape = (options.rows, options.columns)
        rows, columns = layouts(size)
        whole = torch.arange(options.tensors * options.rows * options.columns,
                             dtype=torch.float32).view(options.tensors, *shape)
        height, width = options.rows // size, options.columns // size
        self.expected = whole[:, :, rank * width:(rank + 1) * width]
        self.results = [torch.full((options.rows, width), -1.0) for _ in range(options.tensors)]
        parts = [whole[t, rank * height:(rank + 1) * height].clone()
                 for t in range(options.tensors)]
        self.src = [sluice.Tensor(f"w{t}", shape, "f32", rows, part)
                    for t, part in enumerate(parts)]
        self.dst = [sluice.Tensor(f"w{t}", shape, "f32", columns, result)
                    for t, result in enumerate(self.results)]

    def spoil(self):
        for result in self.results:
            result.fill_(-1)

    def check(self, rank):
        wrong = int((torch.stack(self.results) != self.expected).sum())
        if wrong:
            sys.exit(f"small_sync.py: rank {rank} has {wrong} wrong elements")


def runs_of(session, job, way):
    """Two calls: the second ends what the first has begun."""
    if way == "sync":
        return (lambda: sluice.sync(job.src, job.dst, session=session)), lambda _: None
    transfer = session.transfer(job.src, job.dst)
    return transfer.start, lambda run: run.wait()


def barrier_of(session):
    """A tiny transfer in which each rank needs what all others have."""
    size = session.size
    rows, _ = layouts(size)
    everywhere = sluice.Layout(mesh=list(range(size)), placements=[sluice.Replicate()])
    own, all_of_them = torch.zeros(1), torch.zeros(size)
    return session.transfer([sluice.Tensor("barrier", (size,), "f32", rows, own)],
                            [sluice.Tensor("barrier", (size,), "f32", everywhere, all_of_them)])


def slowest(session, times):
    """Of each run, over the ranks."""
    size = session.size
    rows, _ = layouts(size)
    everywhere = sluice.Layout(mesh=list(range(size)), placements=[sluice.Replicate()])
    own = torch.tensor(times, dtype=torch.float64).view(1, -1)
    found = torch.zeros(size, len(times), dtype=torch.float64)
    shape = tuple(found.shape)
    sluice.sync([sluice.Tensor("times", shape, "f64", rows, own)],
                [sluice.Tensor("times", shape, "f64", everywhere, found)], session=session)
    return found.amax(0).tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--way", choices=("bound", "sync"), required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("--tensors", type=int, default=300)
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--warmups", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with sluice.Session.from_env() as session:
        if options.rows % session.size or options.columns % session.size:
            sys.exit(f"small_sync.py: --rows and --columns must be multiples of {session.size}")
        job = Job(session, options)
        begin_run, end_run = runs_of(session, job, options.way)
        flags = barrier_of(session)
        syncs, starts = [], []
        for run in range(-options.warmups, options.runs):
            job.spoil()
            flags.start().wait()
            begin = time.perf_counter_ns()
            begun = begin_run()
            middle = time.perf_counter_ns()
            end_run(begun)
            end = time.perf_counter_ns()
            job.check(session.rank)
            if run >= 0:
                syncs.append((end - begin) / 1e3)
                starts.append((middle - begin) / 1e3)
        found = {"ranks": session.size, "tensors": options.tensors,
                 "sync_us": slowest(session, syncs), "start_us": slowest(session, starts)}
        if session.rank == 0:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(found, file)


if __name__ == "__main__":
    main()
