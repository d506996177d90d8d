"""Loads one DCP checkpoint in turns by dcp.load, by Sluice's reader in it, and by Session.load.

usage: torchrun --nproc-per-node 4 bench/python/dcp_loads.py FOLDER [--tensors 24] [--rounds 7]

The checkpoint is written by a 2 x 2 mesh (FSDP over tensor parallelism), in bf16, and read into a
mesh of all ranks with rows or columns cut (TP). Environment: PyTorch and NumPy, and the package.
Sluice reads past the page cache where pages are cold, and through maps where they are warm. Prints
JSON: rows of pages and ways, with the slowest rank's times, their ratio over those of Session.load
and of the reader, and how often the checkpoint's bytes were read. (Cold: from storage, by the
kernel's count. Warm: by read(), which maps do not use.) Each load's memory is new; elements are
compared.
"""
import argparse
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard

import sluice
from sluice.integrations.dcp import Reader

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "figures"))
from rounds import into_page_cache, out_of_page_cache, rows_of, take_turns  # noqa: E402

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


def io_count(what):
    with open("/proc/self/io", encoding="ascii") as file:
        return int(dict(line.split(": ") for line in file)[what])


def summed(value, op=dist.ReduceOp.SUM):
    one = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(one, op)
    return float(one)


def prepare(folder, pages):
    """Puts the files out of the page cache, or into it."""
    dist.barrier()
    if dist.get_rank() == 0:
        files = [f"{folder}/{file}" for file in os.listdir(folder)]
        (out_of_page_cache if pages == "cold" else into_page_cache)(files)
    dist.barrier()


def rounds_of(rounds, turns):
    """As take_turns has them, cold and warm, without the first round, which is to warm up."""
    found = take_turns(rounds + 1, [{"pages": "cold"}, {"pages": "warm"}], turns)
    return [(case, of_rounds[1:]) for case, of_rounds in found]


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
    with sluice.Session.from_process_group() as session:
        def turns(pages):
            place = f"{'file' if pages == 'cold' else 'mmap'}:{folder}"
            ways = {
                "dcp": lambda state: dcp.load(state, checkpoint_id=folder),
                "reader": lambda state: dcp.load(state, storage_reader=Reader(place, session)),
                "load": lambda state: session.load(f"dcp:{place}", state, progress=False),
            }
            return [lambda way=way: turn(pages, way, ways[way]) for way in ways]

        def turn(pages, way, load):
            state = emptied(wanted)
            prepare(folder, pages)
            counter = "read_bytes" if pages == "cold" else "rchar"
            before, begin = io_count(counter), time.perf_counter()
            load(state)
            spent = summed(time.perf_counter() - begin, dist.ReduceOp.MAX)
            count = summed(io_count(counter) - before)
            wrong = sum(not torch.equal(one.to_local(), wanted[name].to_local())
                        for name, one in state.items())
            if summed(wrong):
                raise SystemExit(f"dcp_loads.py: {way} has wrong elements")
            return {way: {"time_us": spent * 1e6, "reads": count / whole}}

        found = rounds_of(options.rounds, turns)
    if rank == 0:
        print(json.dumps({"bytes": whole, "ranks": size, "torch": torch.__version__,
                          **{f"over_{way}": rows_of(found, way) for way in ("load", "reader")}}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
