"""Optimizers' state dicts in checkpoints: tensors, and what is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.6")

import sluice  # noqa: E402
from torch_ranks import gloo_session, run_job, same_bytes  # noqa: E402


def trained(steps: int, seed: int, mesh: Any = None) -> tuple[Any, Any]:
    """A model and its optimizer after some steps, sharded over a mesh."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Linear(5, 3))
    if mesh is not None:
        from torch.distributed.fsdp import fully_shard
        fully_shard(model, mesh=mesh)
    groups = [{"params": model[0].parameters(), "lr": 0.125},
              {"params": model[1].parameters(), "betas": (0.75, 0.5)}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, amsgrad=True)
    for _ in range(steps):
        step(model, optimizer)
    return model, optimizer


def step(model: Any, optimizer: Any) -> None:
    model(torch.linspace(-1, 1, 24).reshape(4, 6)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def differences(one: Any, other: Any, name: str = "") -> list[str]:
    """Where two states differ, in a bit or in a type."""
    if type(one) is not type(other):
        return [name]
    if isinstance(one, torch.Tensor):
        local = [getattr(part, "_local_tensor", part) for part in (one, other)]
        return [] if same_bytes(*local) else [name]
    if isinstance(one, dict):
        if list(one) != list(other):
            return [name]
        return [each for key in one for each in differences(one[key], other[key], f"{name}.{key}")]
    if isinstance(one, (list, tuple)):
        if len(one) != len(other):
            return [name]
        return [each for i, (a, b) in enumerate(zip(one, other))
                for each in differences(a, b, f"{name}.{i}")]
    return [] if one == other else [name]


def _saves_and_loads(session: sluice.Session, folder: Path, mesh: Any = None) -> list[str]:
    model, optimizer = trained(3, 1, mesh)
    whole = {"model": model.state_dict(), "optim": optimizer.state_dict(), "step": 3}
    session.save(folder, whole, shard_bytes_max=200, progress=False)
    other, its = trained(1, 2, mesh)
    found: Any = {"model": other.state_dict(), "optim": its.state_dict(), "step": 0}
    assert differences(whole, found)
    session.load(folder, found, strict=True, progress=False)
    wrong = differences(whole, found)
    other.load_state_dict(found["model"])
    its.load_state_dict(found["optim"])
    step(model, optimizer)
    step(other, its)
    return wrong + differences(model.state_dict(), other.state_dict()) + (
        differences(optimizer.state_dict(), its.state_dict()))


def test_one_rank(tmp_path: Path) -> None:
    with sluice.Session.from_exchange(0, 1, lambda own: [own]) as session:
        assert _saves_and_loads(session, tmp_path) == []


def rank_of_fsdp(folder: str) -> Any:
    from torch.distributed.device_mesh import init_device_mesh

    with gloo_session() as session:
        return _saves_and_loads(session, Path(folder),
                                init_device_mesh("cpu", (session.size,)))


def test_ranks_with_fsdp(tmp_path: Path) -> None:
    assert run_job(3, rank_of_fsdp, str(tmp_path / "ckpt")) == [[]] * 3


def rank_has_another_lr(folder: str) -> Any:
    with gloo_session() as session:
        model, optimizer = trained(1, 1)
        optimizer.param_groups[0]["lr"] = 0.5 + session.rank
        with pytest.raises(sluice.Disagreement) as error:
            session.save(folder, optimizer.state_dict(), progress=False)
        return str(error.value)


def test_ranks_that_differ_are_told(tmp_path: Path) -> None:
    for text in run_job(2, rank_has_another_lr, str(tmp_path / "ckpt")):
        assert "'param_groups' is" in text and "on rank 0, and" in text and "on rank 1" in text


class Extra(torch.nn.Module):
    """A module with a state that is no tensor."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((2,), float(calls)))
        self.calls = calls

    def get_extra_state(self) -> Any:
        return {"calls": self.calls}

    def set_extra_state(self, state: Any) -> None:
        self.calls = state["calls"]


def test_extra_state_of_modules(tmp_path: Path) -> None:
    with sluice.Session.from_exchange(0, 1, lambda own: [own]) as session:
        session.save(tmp_path, torch.nn.Sequential(Extra(3), Extra(4)), progress=False)
        found = torch.nn.Sequential(Extra(0), Extra(0))
        session.load(tmp_path, found, strict=True, progress=False)
    assert [part.calls for part in found] == [3, 4] and found[1].weight.tolist() == [4, 4]
