"""One rank: the same redistributions by Sluice, by DTensor.redistribute and by packed sends.

usage: redistribute.py --json FILE [--size N] [--rounds N] [--iters N] [--dtypes f32,bf16]
RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set, as torchrun does. compare_torch.py starts it.

A square tensor lies by rows over all ranks, in plain memory of PyTorch's. It goes to columns, and
to a whole copy on each rank. Ways have their turns in each round, every other round backwards. The
time of an iteration is the slowest rank's, from a barrier on; the time of a turn is the median of
its iterations. Before each iteration destinations are overwritten. Once all ranks are done, every
element is compared. A wrong one ends the run.
"""
import argparse
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Replicate, Shard, init_device_mesh

import sluice

DTYPES = {"f32": (torch.float32, torch.int32), "bf16": (torch.bfloat16, torch.int16)}
TARGETS = {"columns": Shard(1), "replicas": Replicate()}


class Case:
    """One redistribution: this rank's rows, and what it has to get."""

    def __init__(self, size, dtype, target):
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.size, self.part, self.target = size, size // self.ranks, target
        self.dtype, self.bits = DTYPES[dtype]
        self.rows = self._made(self.rank * self.part, self.part, 0, size)
        if target == "columns":
            self.expected = self._made(0, size, self.rank * self.part, self.part)
        else:
            self.expected = self._made(0, size, 0, size)
        self.placement = TARGETS[target]

    def _made(self, row, rows, column, columns):
        """Any bit pattern may come, NaN too: elements are moved, and compared as integers."""
        made = torch.empty(rows, columns, dtype=self.bits)
        across = torch.arange(column, column + columns, dtype=torch.int64)
        for i in range(rows):
            made[i] = (((row + i) * self.size + across) * 2654435761 >> 9).to(self.bits)
        return made.view(self.dtype)

    def memory(self):
        return torch.empty_like(self.expected)

    def check(self, way, result):
        if not torch.equal(result.view(self.bits), self.expected.view(self.bits)):
            wrong = int((result.view(self.bits) != self.expected.view(self.bits)).sum())
            sys.exit(f"redistribute.py: rank {self.rank}, {way} to {self.target}: {wrong} wrong "
                     "elements")


class Redistribute:
    """DTensor.redistribute, which allocates its result. The old one is gone before."""

    def __init__(self, case, mesh):
        self._mesh, self._placement = mesh, case.placement
        self._tensor = DTensor.from_local(case.rows, mesh, [Shard(0)])
        self._bits = case.bits
        self._result = None

    def spoil(self):
        # Its memory may be that of the next result.
        if self._result is not None:
            self._result.view(self._bits).fill_(-1)
        self._result = None

    def run(self):
        result = self._tensor.redistribute(self._mesh, [self._placement]).to_local()
        if hasattr(result, "wait"):
            result = result.wait()
        self._result = result

    def result(self):
        return self._result


class Packed:
    """Hand-written: contiguous blocks, memory that is there, one batch of isend and irecv.

    To columns, each block is packed once, and arrives where it belongs. To replicas nothing has to
    be packed. `as_packed`: each block is sent as soon as it is packed, in place of all at once.
    """

    def __init__(self, case, as_packed=False):
        self._case, self._as_packed = case, as_packed
        self._memory = case.memory()
        self._blocks = self._memory.view(case.ranks, case.part, -1)
        self._others = [(case.rank + i) % case.ranks for i in range(1, case.ranks)]
        self._packs = case.target == "columns"
        if self._packs:
            self._pack = torch.empty(case.ranks, case.part, case.part, dtype=case.dtype)
            self._parts = case.rows.view(case.part, case.ranks, case.part)

    def spoil(self):
        self._memory.view(self._case.bits).fill_(-1)

    def run(self):
        case = self._case
        works = []
        receives = [dist.P2POp(dist.irecv, self._blocks[peer], peer)
                    for peer in reversed(self._others)]
        if self._as_packed:
            works += dist.batch_isend_irecv(receives)
            receives = []
        sends = []
        for peer in self._others:
            sends.append(dist.P2POp(dist.isend, self._block(peer), peer))
            if self._as_packed:
                works += dist.batch_isend_irecv(sends)
                sends = []
        if not self._as_packed:
            works = dist.batch_isend_irecv(receives + sends)
        own = self._parts[:, case.rank] if self._packs else case.rows
        self._blocks[case.rank].copy_(own)
        for work in works:
            work.wait()

    def _block(self, peer):
        if not self._packs:
            return self._case.rows
        return self._pack[peer].copy_(self._parts[:, peer])

    def result(self):
        return self._memory


class Collective(Packed):
    """One collective call into memory that is there."""

    def run(self):
        if self._packs:
            self._pack.copy_(self._parts.transpose(0, 1))
            dist.all_to_all_single(self._blocks.view(-1), self._pack.view(-1))
        else:
            dist.all_gather_into_tensor(self._memory, self._case.rows)


class Bound:
    """A transfer of Sluice that was planned once."""

    def __init__(self, case, mesh, session):
        self._case, self._memory = case, case.memory()
        self._src = {"w": DTensor.from_local(case.rows, mesh, [Shard(0)])}
        self._dst = {"w": DTensor.from_local(self._memory, mesh, [case.placement])}
        self._session = session
        dist.barrier()
        begin = time.perf_counter()
        self._transfer = self._bind()
        self.plan_us = (time.perf_counter() - begin) * 1e6

    def _bind(self):
        return self._session.transfer(self._src, self._dst)

    def spoil(self):
        self._memory.view(self._case.bits).fill_(-1)

    def run(self):
        self._transfer.start().wait()

    def result(self):
        return self._memory

    def drop(self):
        self._transfer.drop()


class Sync(Bound):
    """sluice.sync, which looks at the tensors in each call."""

    def _bind(self):
        return None

    def run(self):
        sluice.sync(self._src, self._dst, session=self._session)

    def drop(self):
        pass


def ways_of(case, mesh, session):
    return {"sluice": Bound(case, mesh, session), "sluice-sync": Sync(case, mesh, session),
            "redistribute": Redistribute(case, mesh), "packed": Packed(case),
            "packed-each": Packed(case, as_packed=True), "collective": Collective(case)}


def slowest(times):
    """Of each of `times`, over the ranks."""
    found = torch.tensor(times, dtype=torch.float64)
    dist.all_reduce(found, op=dist.ReduceOp.MAX)
    return found.tolist()


def turn(case, name, way, iters):
    """The median over the iterations, of the slowest rank; microseconds."""
    times = []
    for _ in range(iters):
        way.spoil()
        dist.barrier()
        begin = time.perf_counter()
        way.run()
        times.append((time.perf_counter() - begin) * 1e6)
        dist.barrier()  # who is done must not take the CPUs of who is not, by checking
        case.check(name, way.result())
    return statistics.median(slowest(times))


def measure(case, options, mesh, session):
    """{way: [microseconds of each round]}, and what planning took, once."""
    ways = ways_of(case, mesh, session)
    times = {name: [] for name in ways}
    for name, way in ways.items():
        turn(case, name, way, 1)  # connections, and pages that were never touched
    for number in range(options.rounds):
        for name in list(ways) if number % 2 == 0 else reversed(list(ways)):
            times[name].append(turn(case, name, ways[name], options.iters))
    ways["sluice"].drop()
    return {"times": times, "plan_us": slowest([ways["sluice"].plan_us])[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", required=True)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--iters", type=int, default=3)
    parser.add_argument("--dtypes", default="f32,bf16")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    if options.size % dist.get_world_size() != 0:
        sys.exit("redistribute.py: --size has to be a multiple of the number of ranks")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    session = sluice.Session.from_process_group()
    cases = []
    for dtype in options.dtypes.split(","):
        for target in TARGETS:
            case = Case(options.size, dtype, target)
            cases.append({"dtype": dtype, "to": target,
                          **measure(case, options, mesh, session)})
    if dist.get_rank() == 0:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"cases": cases, "torch": torch.__version__, "sluice": sluice.__version__,
                       "report": str(session.report())}, file)
    session.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
