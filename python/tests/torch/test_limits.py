"""What docs/python.md names as limits, each violated once: a clear error, or the right values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

import sluice  # noqa: E402

SHAPE = (4, 6)


@pytest.fixture()
def session() -> Iterator[sluice.Session]:
    with sluice.Session.from_exchange(0, 1, lambda payload: [payload]) as made:
        yield made


def value(dtype: Any = torch.float32) -> Any:
    return torch.arange(24).view(SHAPE).to(dtype)


def tensor(placement: str, dtype: str = "f32", memory: Any = None) -> sluice.Tensor:
    return sluice.Tensor("w", SHAPE, dtype, sluice.Layout([0], placement),
                         value() if memory is None else memory)


class OnDevice:
    """Memory of a GPU, by CUDA's protocol."""

    __cuda_array_interface__ = {"shape": SHAPE, "typestr": "<f4", "data": (1 << 20, False),
                                "version": 3, "strides": None}


def _in_another_thread(session: sluice.Session, folder: Path) -> None:
    caught: list[BaseException] = []

    def work() -> None:
        try:
            session.transfer({"w": value()}, {"w": value()})
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    raise caught[0]


def _to_partial(session: sluice.Session, folder: Path) -> None:
    session.transfer([tensor("R")], [tensor("P(sum)")])


def _saves_partial(session: sluice.Session, folder: Path) -> None:
    session.save(folder, [tensor("P(sum)")], progress=False)


def _loads_partial(session: sluice.Session, folder: Path) -> None:
    session.save(folder, {"w": value()}, progress=False)
    session.load(folder, [tensor("P(sum)")], progress=False)


def _casts(source: Any, target: Any) -> Callable[..., None]:
    def work(session: sluice.Session, folder: Path) -> None:
        session.transfer({"w": value(source)}, {"w": torch.zeros(SHAPE, dtype=target)})
    return work


def _casts_a_checkpoint(session: sluice.Session, folder: Path) -> None:
    session.save(folder, {"w": value(torch.int32)}, progress=False)
    session.load(folder, {"w": value()}, progress=False)


def _saves_as_whole_numbers(session: sluice.Session, folder: Path) -> None:
    session.save(folder, {"w": value()}, dtype="i32", progress=False)


def _to_a_device(session: sluice.Session, folder: Path) -> None:
    session.transfer({"w": value()}, {"w": OnDevice()})


def _saves_from_a_device(session: sluice.Session, folder: Path) -> None:
    session.save(folder, {"w": OnDevice()}, progress=False)


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


def _binds_another(session: sluice.Session, folder: Path) -> None:
    on_meta = torch.nn.Linear(6, 4, bias=False, device="meta").requires_grad_(False)
    captured = sluice.capture(lambda pairs: [on_meta.weight.copy_(one) for _, one in pairs],
                              {"w": (SHAPE, torch.float32)}, on_meta)
    captured.bind(torch.nn.Linear(5, 4, bias=False))


def _is_not_bound(session: sluice.Session, folder: Path) -> None:
    on_meta = torch.nn.Linear(6, 4, bias=False, device="meta").requires_grad_(False)
    captured = sluice.capture(lambda pairs: [on_meta.weight.copy_(one) for _, one in pairs],
                              {"w": (SHAPE, torch.float32)}, on_meta)
    session.transfer({"w": value()}, captured).run()


@pytest.mark.parametrize("work, kind, words", [
    (_in_another_thread, sluice.Error, "thread"),
    (_to_partial, sluice.InvalidSpec, "target 'w': only a source may be Partial"),
    (_saves_partial, sluice.Unsupported, "'w' has a Partial placement"),
    (_loads_partial, sluice.Unsupported, "'w' has a Partial placement"),
    (_casts(torch.float32, torch.int32), sluice.InvalidSpec, "no cast exists.*target 'w'"),
    (_casts(torch.int64, torch.int32), sluice.InvalidSpec, "no cast exists.*target 'w'"),
    (_casts(torch.float32, torch.complex64), sluice.InvalidSpec, "no cast exists.*target 'w'"),
    (_casts(torch.float32, torch.float8_e4m3fnuz), sluice.InvalidSpec, "no cast exists.*target 'w'"),
    (_casts_a_checkpoint, sluice.InvalidSpec, "'w' is of i32 .* cannot be cast to f32"),
    (_saves_as_whole_numbers, sluice.InvalidSpec, "dtype is 'i32'"),
    (_to_a_device, sluice.InvalidSpec, "'w': view is not in host memory"),
    (_saves_from_a_device, sluice.InvalidSpec, "'w': view is not in host memory"),
    (_captured(_assigns), sluice.InvalidSpec, "'weight' has other memory"),
    (_captured(lambda module: module.to(torch.float64)), sluice.InvalidSpec, "'weight'.*dtype"),
    (_binds_another, sluice.InvalidSpec, "'weight' was captured with shape"),
    (_is_not_bound, sluice.Error, "'w'.*memory"),
])
def test_what_is_beyond_a_limit_is_refused(session: sluice.Session, tmp_path: Path, work: Any,
                                           kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        work(session, tmp_path / "x")


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
