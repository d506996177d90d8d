"""Training jobs with FSDP2 over tensor parallelism, and what others get of their weights."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.6")

import sluice  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor import (DTensor, Replicate, Shard,  # noqa: E402
                                      distribute_tensor)
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,  # noqa: E402
                                               parallelize_module)
from torch_ranks import (SESSION_SECONDS, free_port, gloo_session, run_job,  # noqa: E402
                         same_bytes)

TRAINERS, SERVERS, STEPS = 4, 2, 3
# PyTorch itself computes only where tensor parallelism cuts evenly. FSDP may cut the rest anyhow.
VOCAB, HIDDEN, INNER = 37, 11, 22


class Net(torch.nn.Module):
    def __init__(self, vocab: int, hidden: int, inner: int) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(vocab, hidden)
        self.up = torch.nn.Linear(hidden, inner)
        self.down = torch.nn.Linear(inner, hidden)
        self.norm = torch.nn.LayerNorm(hidden)
        self.head = torch.nn.Linear(hidden, vocab, bias=False)

    def forward(self, tokens: Any) -> Any:
        return self.head(self.norm(self.down(torch.relu(self.up(self.embed(tokens))))))


def sharded(seed: int, sizes: tuple[int, int, int]) -> tuple[Net, dict[str, Any]]:
    """The model on a mesh of 2 by 2, and its whole weights as they were before it was cut."""
    torch.manual_seed(seed)
    model = Net(*sizes)
    whole = {name: value.clone() for name, value in model.state_dict().items()}
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    parallelize_module(model, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    return model, whole


def rank_sends_fsdp_over_tp() -> list[Any]:
    """[problems, how many models were moved, how many were refused]"""
    problems: list[str] = []
    moved = refused = 0
    with gloo_session() as session:
        line = init_device_mesh("cpu", (session.size,))
        for seed in range(8):
            draw = random.Random(seed)
            sizes = tuple(draw.randint(1, 19) for _ in range(3))
            model, whole = sharded(seed, sizes)
            plain = {name: torch.full_like(value, -1) for name, value in whole.items()}
            cut = {name: distribute_tensor(torch.zeros_like(value), line, [Shard(0)],
                                           src_data_rank=None) for name, value in whole.items()}
            try:
                session.sync(model.state_dict(), plain, progress=False)
                session.sync(model, cut, progress=False)
            except sluice.InvalidSpec as error:
                # The one reason for which it may refuse: PyTorch has two readings.
                if "can be read as" not in str(error):
                    raise
                refused += 1
                continue
            moved += 1
            for name, value in whole.items():
                if not same_bytes(plain[name], value):
                    problems.append(f"{sizes}: {name} as a plain tensor")
                expected = distribute_tensor(value, line, [Shard(0)], src_data_rank=None)
                if not torch.equal(cut[name].to_local(), expected.to_local()):
                    problems.append(f"{sizes}: {name} cut by rows")
            # And back: what FSDP gathers of it then is what was given.
            other = {name: torch.randn_like(value) for name, value in whole.items()}
            for value in other.values():
                dist.broadcast(value, 0)
            session.sync(other if session.rank == 2 else None, model.state_dict(), progress=False)
            model.unshard()
            for name, value in model.named_parameters():
                full = value.full_tensor() if isinstance(value, DTensor) else value
                if not same_bytes(full, other[name]):
                    problems.append(f"{sizes}: {name} in the model")
    return [problems, moved, refused]


def test_uneven_fsdp_over_tp() -> None:
    for problems, moved, refused in run_job(4, rank_sends_fsdp_over_tp):
        assert problems == []
        assert moved >= 4 and moved + refused == 8


def rank_trains_or_serves(folder: str, port: int) -> Any:
    rank = int(os.environ["RANK"])
    trains = rank < TRAINERS
    role, number, size = (("trainer", rank, TRAINERS) if trains else
                          ("server", rank - TRAINERS, SERVERS))
    # Two jobs: each has a process group of its own.
    os.environ.update(RANK=str(number), WORLD_SIZE=str(size),
                      MASTER_PORT=str(port if trains else os.environ["MASTER_PORT"]))
    dist.init_process_group("gloo")
    world = sluice.World.join(role=role, roles={"trainer": TRAINERS, "server": SERVERS})
    with world:
        session = world.session(join_timeout=500, timeout=SESSION_SECONDS)
        result = train(session, Path(folder)) if trains else serve(session, Path(folder))
    dist.destroy_process_group()
    return result


def train(session: sluice.Session, folder: Path) -> int:
    model, _ = sharded(7, (VOCAB, HIDDEN, INNER))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    transfer = session.transfer(model.state_dict(), None)
    for step in range(1, STEPS + 1):
        tokens = torch.randint(0, VOCAB, (4, 5), generator=torch.Generator().manual_seed(step))
        logits = model(tokens)
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()
        # By PyTorch's own way, to files, what the servers have to get.
        whole = {name: value.full_tensor() if isinstance(value, DTensor) else value
                 for name, value in model.state_dict().items()}
        if session.rank == 0:
            torch.save(whole, folder / f"{step}.pt")
        transfer.run(step, timeout=300)
    return STEPS


def serve(session: sluice.Session, folder: Path) -> list[Any]:
    with torch.device("meta"):
        shapes = {name: value.shape for name, value in Net(VOCAB, HIDDEN,
                                                           INNER).state_dict().items()}
    mesh = init_device_mesh("cpu", (SERVERS,))
    target: dict[str, Any] = {}
    for number, (name, shape) in enumerate(shapes.items()):
        placements = [Replicate() if number % 3 == 0 else Shard(len(shape) - 1)]
        target[name] = distribute_tensor(torch.zeros(shape), mesh, placements, src_data_rank=None)
    transfer = session.transfer(None, target)
    problems: list[str] = []
    before: dict[str, Any] = {}
    for step in range(1, STEPS + 1):
        transfer.run(step, timeout=300)
        whole = torch.load(folder / f"{step}.pt")
        for name, tensor in target.items():
            expected = distribute_tensor(whole[name], mesh, tensor.placements, src_data_rank=None)
            if not same_bytes(tensor.to_local(), expected.to_local()):
                problems.append(f"step {step}: {name}")
            if step > 1 and torch.equal(before[name], whole[name]):
                problems.append(f"step {step}: {name} was not trained")
        before = whole
    return [problems, transfer.version]


def test_a_server_gets_each_step(tmp_path: Path) -> None:
    ends = run_job(TRAINERS + SERVERS, rank_trains_or_serves, str(tmp_path), free_port())
    assert ends == [STEPS] * TRAINERS + [[[], STEPS]] * SERVERS
