"""A training job, FSDP2 over tensor parallelism, whose weights another job serves: see server.py.

    torchrun --standalone --nproc-per-node 4 examples/python/trainer.py &
    torchrun --standalone --nproc-per-node 2 examples/python/server.py

The jobs are started apart, in any order, and meet in a world. On two hosts, set SLUICE_WORLD to
tcp://SERVER-HOST:PORT and SLUICE_TOKEN to a secret on both. The trainer knows nothing of the
server's layout. It gives its model as it is. If the trainer is killed, start it again: the server
waits for it.
"""

from __future__ import annotations

import os
import sys

import sluice
import torch
import torch.distributed as dist
import weights
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import distribute_tensor
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                               parallelize_module)


def build_model() -> nn.Module:
    """Modules by the names of weights.shapes(). What they compute is not needed here."""
    model = nn.Module()
    for name, shape in weights.shapes().items():
        *path, _ = name.split(".")
        parent = model
        for part in path[:-1]:
            if part not in dict(parent.named_children()):
                parent.add_module(part, nn.Module())
            parent = parent.get_submodule(part)
        if len(shape) == 1:
            module: nn.Module = nn.RMSNorm(shape[0])
        elif "embed" in name:
            module = nn.Embedding(*shape)
        else:
            module = nn.Linear(shape[1], shape[0], bias=False)
        parent.add_module(path[-1], module)
    return model


def parallelize(model: nn.Module) -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    plan = {"embed_tokens": RowwiseParallel(), "lm_head": ColwiseParallel()}
    for layer in range(weights.LAYERS):
        for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                     "mlp.gate_proj", "mlp.up_proj"):
            plan[f"layers.{layer}.{name}"] = ColwiseParallel()
        for name in ("self_attn.o_proj", "mlp.down_proj"):
            plan[f"layers.{layer}.{name}"] = RowwiseParallel()
    parallelize_module(model, mesh["tp"], plan)
    for layer in model.get_submodule("layers").children():
        fully_shard(layer, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])


def set_first_values(model: nn.Module) -> None:
    state = model.state_dict()
    with torch.no_grad():
        for name, whole in weights.first_values():
            tensor = state[name]
            tensor.copy_(distribute_tensor(whole, tensor.device_mesh, tensor.placements,
                                           src_data_rank=None))


def train_one_step(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
    # Instead of backward(): then the server can compute what each weight has to be.
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, weights.gradient(step))
    optimizer.step()
    optimizer.zero_grad()


def main() -> int:
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    if dist.get_world_size() != weights.TRAINERS:
        raise SystemExit(f"trainer.py is for {weights.TRAINERS} processes")
    model = build_model()
    parallelize(model)
    set_first_values(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)

    url = os.environ.get("SLUICE_WORLD", weights.WORLD)
    with sluice.World.join(url, role="trainer", roles=weights.ROLES, timeout=300) as world:
        # Each round carries the weights, and then its body runs: version 1 has those of before the
        # first step.
        for version in world.versions(src=model, join_timeout=300):
            if version > weights.STEPS:
                break
            train_one_step(model, optimizer, version)
    print(f"trainer {world.rank}: {version} versions")
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
