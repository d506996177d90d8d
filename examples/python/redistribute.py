"""Brings DTensors of one job from some layouts to others, and checks every element.

    torchrun --nproc-per-node 4 examples/python/redistribute.py

Any number of processes from 2 on will do. A DTensor's own redistribute keeps the mesh. Here meshes,
placements and dtypes may all differ, and all tensors move in one run.
"""

from __future__ import annotations

import sys

import sluice
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

# Names and shapes. None divides by the mesh, and "bias" is shorter than most meshes.
SHAPES = {"embed": (1003, 64), "up": (96, 257), "bias": (3,)}


def values(name: str, version: int) -> torch.Tensor:
    """What the tensor has to be: whole numbers that bf16 holds exactly."""
    shape = torch.Size(SHAPES[name])
    numbers = torch.arange(shape.numel()) * (2 * version + 1) + len(name)
    return (numbers % 251).reshape(shape).float()


def main() -> int:
    dist.init_process_group("gloo")
    size = dist.get_world_size()
    columns = 2 if size % 2 == 0 else 1
    grid = init_device_mesh("cpu", (size // columns, columns))
    line = init_device_mesh("cpu", (size,))

    source = {name: distribute_tensor(values(name, 0), grid, [Shard(0), Shard(len(shape) - 1)],
                                      src_data_rank=None) for name, shape in SHAPES.items()}
    target = {
        "embed": empty("embed", line, [Shard(1)]),                 # columns
        "up": empty("up", line, [Replicate()], torch.bfloat16),    # whole everywhere, and cast
        "bias": torch.empty(SHAPES["bias"]),                       # a plain tensor is whole, too
    }

    wrong = 0
    with sluice.Session.from_process_group() as session:
        # Collective: matches by name, checks on all ranks, and plans. Then each run only moves.
        transfer = session.transfer(source, target)
        for version in range(3):
            for name, tensor in source.items():
                tensor.copy_(distribute_tensor(values(name, version), grid, tensor.placements,
                                               src_data_rank=None))
            transfer.run(version)
            wrong += sum(differences(name, tensor, version) for name, tensor in target.items())
        if session.rank == 0:
            print(session.report())
    print(f"rank {dist.get_rank()} of {size}: {wrong} wrong elements")
    dist.destroy_process_group()
    return 1 if wrong else 0


def empty(name: str, mesh: object, placements: list, dtype: torch.dtype | None = None) -> DTensor:
    whole = torch.full(SHAPES[name], -1.0, dtype=dtype)
    return distribute_tensor(whole, mesh, placements, src_data_rank=None)


def differences(name: str, tensor: torch.Tensor, version: int) -> int:
    """How many elements that this rank holds are not as they have to be."""
    expected = values(name, version).to(tensor.dtype)
    if isinstance(tensor, DTensor):
        expected = distribute_tensor(expected, tensor.device_mesh, tensor.placements,
                                     src_data_rank=None).to_local()
        tensor = tensor.to_local()
    return int((tensor != expected).sum())


if __name__ == "__main__":
    sys.exit(main())
