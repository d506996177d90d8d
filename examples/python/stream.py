"""Reads shards of a data set as batches, stops in the middle, goes on, and checks every item.

    torchrun --nproc-per-node 2 examples/python/stream.py [FOLDER]

FOLDER, which all processes see, gets the shards; without it, a temporary one of this host does. A
batch is a tensor of PyTorch in memory that is lent: no copy is made of it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import sluice
import torch
import torch.distributed as dist

SHARDS, ITEMS_OF_SHARD, ITEM_BYTES = 3, 50, 3072  # 32 x 32 pixels of 3 channels
ITEMS = SHARDS * ITEMS_OF_SHARD


def value_of(item: int) -> int:
    return item * 37 % 256


def make_shards(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for shard in range(SHARDS):
        first = shard * ITEMS_OF_SHARD
        (folder / f"shard-{shard}.bin").write_bytes(b"".join(
            bytes([value_of(item)]) * ITEM_BYTES for item in range(first, first + ITEMS_OF_SHARD)))


def take(stream: sluice.Stream, counts: torch.Tensor, batches: int | None = None) -> int:
    """Some batches, or all that are left: counts each item, and how many have wrong values."""
    wrong = 0
    for number, batch in enumerate(stream, 1):
        expected = torch.tensor([value_of(item) for item in batch.items]).float() * (1 / 255)
        wrong += int((batch.tensor != expected[:, None]).any(dim=1).sum())
        for item in batch.items:
            counts[item] += 1
        if number == batches:
            batch.release()  # done with, so that the state has it behind itself
            break
    return wrong


def main() -> int:
    dist.init_process_group("gloo")
    default = Path(tempfile.gettempdir()) / f"sluice-stream-{os.environ['MASTER_PORT']}"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    counts = torch.zeros(ITEMS, dtype=torch.int64)
    with contextlib.ExitStack() as at_end, sluice.Session.from_process_group() as session:
        if session.rank == 0:
            if folder == default:
                at_end.callback(shutil.rmtree, folder, ignore_errors=True)
            make_shards(folder)
        dist.barrier()
        options = {"format": "raw", "item_bytes": ITEM_BYTES, "batch_items": 8, "shuffle": True,
                   "seed": 7, "transform": sluice.scale(1 / 255)}
        with session.stream(f"file:{folder}", **options) as stream:
            wrong = take(stream, counts, batches=4)
            state = stream.state_dict()  # plain data: goes into any checkpoint
        with session.stream(f"file:{folder}", state=state, **options) as stream:
            wrong += take(stream, counts)
        # Over all ranks and both streams, each item has come once.
        dist.all_reduce(counts)
        wrong += int((counts != 1).sum())
        print(f"rank {session.rank} of {session.size}: {wrong} wrong items")
    dist.destroy_process_group()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
