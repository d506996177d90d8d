"""Saves the weights of one mesh as safetensors, and loads them into another mesh and dtype.

    torchrun --nproc-per-node 4 examples/python/checkpoint.py [FOLDER]

FOLDER, which all processes see, gets the checkpoint; without it, a temporary one of this host does.
Each rank writes and reads a part. What is written is the usual model.safetensors with its index,
which other programs read.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import sluice
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

SHAPES = {"embed.weight": (1003, 51), "mlp.up.weight": (102, 51), "norm.weight": (51,)}


def values(name: str) -> torch.Tensor:
    """Whole numbers that bf16 holds exactly."""
    shape = torch.Size(SHAPES[name])
    return (torch.arange(shape.numel()) * 7 % 251 + len(name)).reshape(shape).float()


def main() -> int:
    dist.init_process_group("gloo")
    size = dist.get_world_size()
    columns = 2 if size % 2 == 0 else 1
    grid = init_device_mesh("cpu", (size // columns, columns))
    line = init_device_mesh("cpu", (size,))
    default = Path(tempfile.gettempdir()) / f"sluice-checkpoint-{os.environ['MASTER_PORT']}"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default

    saved = {name: distribute_tensor(values(name), grid, [Replicate(), Shard(0)],
                                     src_data_rank=None) for name in SHAPES}
    loaded = {name: distribute_tensor(torch.zeros(shape, dtype=torch.bfloat16), line,
                                      [Shard(len(shape) - 1)], src_data_rank=None)
              for name, shape in SHAPES.items()}
    with sluice.Session.from_process_group() as session:
        session.save(folder, saved)  # of replicas, one is written
        report = session.load(f"file:{folder}", loaded)
        if session.rank == 0:
            print(f"loaded {report['tensors']} tensors from {sorted(os.listdir(folder))}")
    wrong = 0
    for name, tensor in loaded.items():
        expected = distribute_tensor(values(name).bfloat16(), line, tensor.placements,
                                     src_data_rank=None)
        wrong += int((tensor.to_local() != expected.to_local()).sum())
    print(f"rank {dist.get_rank()} of {size}: {wrong} wrong elements")
    dist.barrier()
    if dist.get_rank() == 0 and folder == default:
        shutil.rmtree(folder, ignore_errors=True)
    dist.destroy_process_group()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
