"""What docs/python.md names as limits, each violated once: a clear error, or the right values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

import sluice  # noqa: E402
from ranks import error_of  # noqa: E402
from torch_ranks import gloo_session, run_job  # noqa: E402

SHAPE = (4, 6)


def value(dtype: Any = torch.float32) -> Any:
    return torch.arange(24).view(SHAPE).to(dtype)


def tensor(placement: str, dtype: str = "f32", memory: Any = None) -> sluice.Tensor:
    return sluice.Tensor("w", SHAPE, dtype, sluice.Layout([0], placement),
                         value() if memory is None else memory)


class OnDevice:
    """Memory of a GPU, by CUDA's protocol."""

    __cuda_array_interface__ = {"shape": SHAPE, "typestr": "<f4", "data": (1 << 20, False),
                                "version": 3, "strides": None}


def _loads_partial(session: sluice.Session, folder: Path) -> None:
    session.save(folder, {"w": value()}, progress=False)
    session.load(folder, [tensor("P(sum)")], progress=False)


def _casts_a_checkpoint(session: sluice.Session, folder: Path) -> None:
    session.save(folder, {"w": value(torch.int32)}, progress=False)
    session.load(folder, {"w": value()}, progress=False)


def _captured(change: Callable[[Any], None]) -> Callable[..., None]:
    def work(session: sluice.Session, folder: Path) -> None:
        module = torch.nn.Linear(6, 4, bias=False).requires_grad_(False)
        captured = sluice.capture(lambda pairs: [module.weight.copy_(one) for _, one in pairs],
                                  {"w": (SHAPE, torch.float32)}, module)
        change(module)
        session.transfer({"w": value()}, captured)
    return work


def _assigns(module: Any) -> None:
    module.load_state_dict({"weight": value()}, assign=True)


def _on_meta() -> Any:
    on_meta = torch.nn.Linear(6, 4, bias=False, device="meta").requires_grad_(False)
    return sluice.capture(lambda pairs: [on_meta.weight.copy_(one) for _, one in pairs],
                          {"w": (SHAPE, torch.float32)}, on_meta)


@pytest.mark.parametrize("work, kind, words", [
    (lambda session, folder: session.transfer([tensor("R")], [tensor("P(sum)")]),
     sluice.InvalidSpec, "target 'w': only a source may be Partial"),
    (lambda session, folder: session.save(folder, [tensor("P(sum)")], progress=False),
     sluice.Unsupported, "'w' has a Partial placement"),
    (_loads_partial, sluice.Unsupported, "'w' has a Partial placement"),
    (_casts_a_checkpoint, sluice.InvalidSpec, "'w' is of i32 .* cannot be cast to f32"),
    (lambda session, folder: session.save(folder, {"w": value()}, dtype="i32", progress=False),
     sluice.InvalidSpec, "dtype is i32"),
    (lambda session, folder: session.transfer({"w": value()}, {"w": OnDevice()}),
     sluice.InvalidSpec, "'w': view is not in host memory"),
    (lambda session, folder: session.save(folder, {"w": OnDevice()}, progress=False),
     sluice.InvalidSpec, "'w': view is not in host memory"),
    (_captured(_assigns), sluice.InvalidSpec, "'weight' has other memory"),
    (_captured(lambda module: module.to(torch.float64)), sluice.InvalidSpec, "'weight'.*dtype"),
    (lambda session, folder: _on_meta().bind(torch.nn.Linear(5, 4, bias=False)),
     sluice.InvalidSpec, "'weight' was captured with shape"),
    (lambda session, folder: session.transfer({"w": value()}, _on_meta()).run(),
     sluice.Error, "'w'.*memory"),
])
def test_what_is_beyond_a_limit_is_refused(session: sluice.Session, tmp_path: Path, work: Any,
                                           kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        work(session, tmp_path / "x")


@pytest.mark.parametrize("source, target", [
    (torch.float32, torch.int32), (torch.int64, torch.int32), (torch.float32, torch.complex64),
    (torch.float32, torch.float8_e4m3fnuz)])
def test_casts_that_do_not_exist(session: sluice.Session, source: Any, target: Any) -> None:
    with pytest.raises(sluice.InvalidSpec, match="no cast exists.*target 'w'"):
        session.transfer({"w": value(source)}, {"w": torch.zeros(SHAPE, dtype=target)})


def test_tied_weights_are_written_once(session: sluice.Session) -> None:
    head = torch.nn.Linear(6, 4, bias=False)
    model = torch.nn.ModuleDict({"embed": torch.nn.Embedding(4, 6), "head": head})
    head.weight = model["embed"].weight
    source = {"embed.weight": value(), "head.weight": value() + 100}
    with session.transfer(source, model.state_dict(), ignore_unused=True) as transfer:
        transfer.run()
        assert transfer.aliases == {"head.weight": "embed.weight"}
    assert torch.equal(head.weight, source["embed.weight"])


def test_autograd_does_not_see_a_transfer(session: sluice.Session) -> None:
    layer = torch.nn.Linear(6, 4, bias=False)
    loss = layer(torch.ones(6)).sum()
    sluice.sync({"weight": value()}, layer, session=session)
    loss.backward()
    assert torch.equal(layer.weight, value()) and torch.equal(layer.weight.grad, torch.ones(4, 6))


def test_a_capture_writes_what_the_loader_writes_alone(session: sluice.Session) -> None:
    def load(engine: Any, pairs: Any) -> None:
        engine[4:].zero_()
        for _, one in pairs:
            engine[:4].copy_(one)

    engine, on_meta = torch.full((6, 6), 5.0), torch.empty(6, 6, device="meta")
    captured = sluice.capture(lambda pairs: load(on_meta, pairs), {"w": (SHAPE, "f32")},
                              {"p": on_meta})
    sluice.sync({"w": value()}, captured.bind({"p": engine}), session=session)
    assert torch.equal(engine, torch.cat([value(), torch.full((2, 6), 5.0)]))
    sluice.capture(lambda pairs: load(engine, pairs), {"w": (SHAPE, "f32")}, {"p": engine})
    assert torch.equal(engine, torch.cat([value(), torch.zeros(2, 6)]))


def rank_changes_memory(how: str, runs: int) -> Any:
    with gloo_session() as session:
        tensor = torch.arange(100, dtype=torch.float32)
        other = torch.zeros(100)
        transfer = session.transfer({"w": tensor} if session.rank == 0 else None,
                                    None if session.rank == 0 else {"w": other})
        for _ in range(runs):
            transfer.run()
        if session.rank == 0:
            if how == "freed":
                tensor.untyped_storage().resize_(0)
            elif how == "resized":
                tensor.resize_(50)
            else:
                tensor.set_(torch.zeros(100))
        return [error_of(transfer.run), bool((other == torch.arange(100)).all()), session.rank]


@pytest.mark.parametrize("how,text", [
    ("freed", "was freed since it was bound; give it to rebind, or make a new transfer"),
    ("resized", "now has (50,): make a new transfer"),
    ("replaced", "has moved to other memory since it was bound; give it to rebind, or make a ")])
@pytest.mark.parametrize("runs", [0, 2])
def test_bound_tensors_that_changed(how: str, text: str, runs: int) -> None:
    for error, moved, rank in run_job(2, rank_changes_memory, how, runs):
        assert "InvalidSpec" in error["types"], error
        assert text in error["text"] and error["tensor"] == "w" and error["ranks"] == [0], error
        assert rank == 0 or moved == (runs > 0)


def test_a_module_that_changed(session: sluice.Session) -> None:
    source = {"weight": value(), "bias": torch.ones(4)}
    target = torch.nn.Linear(6, 4)
    transfer = session.transfer(source, target)
    target.register_buffer("more", torch.zeros(2))
    transfer.run()
    assert torch.equal(target.weight, value()) and target.more.tolist() == [0, 0]
    del target.bias
    with pytest.raises(sluice.InvalidSpec, match="'bias': the module has no 'bias' any more; make "
                                                 "a new transfer"):
        transfer.run()


def test_a_state_dict_keeps_the_memory_that_the_module_had(session: sluice.Session) -> None:
    module, found = torch.nn.Linear(6, 4, bias=False), {"weight": torch.zeros(SHAPE)}
    transfer = session.transfer(module.state_dict(), found)
    before = module.weight.detach().clone()
    module.load_state_dict({"weight": value()}, assign=True)
    transfer.run()
    assert torch.equal(found["weight"], before)
    with pytest.raises(sluice.InvalidSpec, match="'weight': the module has other memory"):
        module.weight.data = value()
        transfer = session.transfer(module, found)
        module.load_state_dict({"weight": value()}, assign=True)
        transfer.run()


def test_dtypes_of_pytorch(tmp_path: Path) -> None:
    given = {"w": value()}
    found = {"w": torch.zeros(SHAPE)}
    sluice.save(tmp_path, given, dtype=torch.bfloat16, progress=False)
    sluice.load(tmp_path, found, progress=False)
    assert torch.equal(found["w"], given["w"])
    shown = sluice.Tensor("w", SHAPE, torch.float32, sluice.Layout([0], "R"), value())
    assert shown.dtype == "f32"
    with sluice.Session.local() as session:
        with session.stream(tmp_path, format="safetensors",
                            transform=sluice.scale(2.0, src=torch.bfloat16, dst=torch.float16)
                            ) as stream:
            tensor = next(stream).tensor
            assert tensor.dtype == torch.float16 and torch.equal(tensor[0], 2 * given["w"].half())
            del tensor
