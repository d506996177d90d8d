"""Loads one DCP checkpoint in turns by dcp.load, by Sluice's reader in it, and by Session.load.

usage: torchrun --nproc-per-node 4 bench/python/dcp_loads.py FOLDER [--tensors 24] [--rounds 7]

The checkpoint is written by a 2 x 2 mesh (FSDP over tensor parallelism), in bf16, and read into a
mesh of all ranks with rows or columns cut (TP). Environment: PyTorch and NumPy, and the package.
Sluice reads past the page cache where pages are cold, and through maps where they are warm. Prints
JSON: milliseconds of the slowest rank in each round, the quartiles of dcp.load's time over each
other way's, and how often the checkpoint's bytes were read. (Cold: from storage, by the kernel's
count. Warm: by read(), which maps do not use.) Each load's memory is new; elements are compared.
"""
import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard

import sluice
from sluice.integrations.dcp import Reader

ROWS, COLUMNS = 8192, 4096


def local(mesh, placements, number):
    """A DTensor whose elements are told by their row, column and the tensor's number."""
    empty = torch.empty((ROWS, COLUMNS), device="meta")
    shape, offset = torch.distributed.tensor._utils.compute_local_shape_and_global_offset(
        empty.shape, mesh, placements)
    rows = torch.arange(offset[0], offset[0] + shape[0]).view(-1, 1)
    columns = torch.arange(offset[1], offset[1] + shape[1]).view(1, -1)
    part = ((rows * 31 + columns * 7 + number) % 251).to(torch.bfloat16)
    return DTensor.from_local(part, mesh, placements, shape=empty.shape,
                              stride=(COLUMNS, 1), run_check=False)


def state_of(mesh, placements, count):
    return {f"layers.{i}.weight": local(mesh, placements(i), i) for i in range(count)}


def emptied(state):
    return {name: DTensor.from_local(torch.empty_like(one.to_local()), one.device_mesh,
                                     one.placements, shape=one.shape, stride=one.stride(),
                                     run_check=False) for name, one in state.items()}


def forget_pages(folder):
    for file in os.listdir(folder):
        fd = os.open(f"{folder}/{file}", os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def io_count(what):
    with open("/proc/self/io", encoding="ascii") as file:
        return int(dict(line.split(": ") for line in file)[what])


def summed(value, op=dist.ReduceOp.SUM):
    one = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(one, op)
    return float(one)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--tensors", type=int, default=24, help="of 64 MiB each [24]")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    folder = os.path.abspath(options.folder)
    square = init_device_mesh("cpu", (2, size // 2))
    line = init_device_mesh("cpu", (size,))
    dcp.save(state_of(square, lambda i: [Shard(0), Shard(1 - i % 2)], options.tensors),
             checkpoint_id=folder)
    wanted = state_of(line, lambda i: [Shard(i % 2)], options.tensors)
    whole = options.tensors * ROWS * COLUMNS * 2
    found = {}
    with sluice.Session.from_process_group() as session:
        for pages, scheme, counter in (("cold", "file", "read_bytes"), ("warm", "mmap", "rchar")):
            place = f"{scheme}:{folder}"
            ways = {
                "dcp": lambda state: dcp.load(state, checkpoint_id=folder),
                "reader": lambda state: dcp.load(state, storage_reader=Reader(place, session)),
                "load": lambda state: session.load(f"dcp:{place}", state, progress=False),
            }
            times, reads = {way: [] for way in ways}, {way: [] for way in ways}
            for turn in range(options.rounds + 1):
                for way, load in ways.items():
                    state = emptied(wanted)
                    dist.barrier()
                    if pages == "cold" and rank == 0:
                        forget_pages(folder)
                    dist.barrier()
                    before, begin = io_count(counter), time.perf_counter()
                    load(state)
                    spent = summed(time.perf_counter() - begin, dist.ReduceOp.MAX)
                    count = summed(io_count(counter) - before)
                    wrong = sum(not torch.equal(one.to_local(), wanted[name].to_local())
                                for name, one in state.items())
                    if summed(wrong):
                        raise SystemExit(f"dcp_loads.py: {way} has wrong elements")
                    if turn > 0:  # the first one is to warm up
                        times[way].append(spent * 1e3)
                        reads[way].append(count / whole)
            found[pages] = {
                "ms": {way: [round(one, 1) for one in all_] for way, all_ in times.items()},
                "reads": {way: round(statistics.median(all_), 2) for way, all_ in reads.items()},
                "dcp_over": {way: [round(one, 2) for one in statistics.quantiles(
                    [a / b for a, b in zip(times["dcp"], times[way])], n=4)]
                    for way in ("reader", "load")}}
    if rank == 0:
        print(json.dumps({"bytes": whole, "ranks": size, "torch": torch.__version__, **found}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
