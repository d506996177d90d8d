"""A call takes part in the stream of whoever has made its tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gpu import Array, Exporter, FakeGpu, Tensor, Torch, gpu_session, released_later

import sluice

BYTES = 256


def full(value: int) -> bytes:
    return bytes([value] * BYTES)


Move = Callable[[Any, dict[str, Any], dict[str, Any], Any], None]


def by_sync(session: Any, src: Any, dst: Any, stream: Any) -> None:
    session.sync(src, dst, progress=False, stream=stream)


def by_run(session: Any, src: Any, dst: Any, stream: Any) -> None:
    session.transfer(src, dst).run(stream=stream)


def by_start(session: Any, src: Any, dst: Any, stream: Any) -> None:
    session.transfer(src, dst).start(stream=stream).wait()


MOVES = [by_sync, by_run, by_start]


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("named", [False, True])
def test_what_the_stream_holds_comes_before(gpu: FakeGpu, torch: Torch, move: Move,
                                            named: bool) -> None:
    stream = gpu.stream()
    if not named:
        torch.current = stream
    with gpu_session() as session:
        source, target = Tensor(gpu, BYTES), Tensor(gpu, BYTES)
        source.fill(1)
        held = source.fill_in(stream, 2)
        released_later(held, lambda: move(session, {"x": source}, {"x": target},
                                          stream if named else None))
        reading = target.read_in(stream)
        assert reading.result() == full(2)


@pytest.mark.parametrize("move", MOVES)
def test_no_stream_waits_for_none(gpu: FakeGpu, torch: Torch, move: Move) -> None:
    torch.current = gpu.stream()
    with gpu_session() as session:
        source, target = Tensor(gpu, BYTES), Tensor(gpu, BYTES)
        source.fill(1)
        held = gpu.fake.hold(torch.current)
        move(session, {"x": source}, {"x": target}, sluice.NO_STREAM)
        assert target.content() == full(1)
        held.release()


def test_a_second_sync_comes_after_the_stream_too(gpu: FakeGpu, torch: Torch) -> None:
    with gpu_session() as session:
        source, target = Tensor(gpu, BYTES), Tensor(gpu, BYTES)
        for value in range(3):
            torch.current = gpu.stream()
            held = source.fill_in(torch.current, value)
            released_later(held, lambda: by_sync(session, {"x": source}, {"x": target}, None))
            assert target.read_in(torch.current).result() == full(value)


def test_host_memory_is_complete_after_wait(gpu: FakeGpu, torch: Torch) -> None:
    torch.current = gpu.stream()
    with gpu_session() as session:
        source, target = Tensor(gpu, BYTES), bytearray(BYTES)
        held = source.fill_in(torch.current, 3)
        run = session.transfer({"x": source}, {"x": target}).start()
        assert not run.done
        released_later(held, run.wait)
        assert run.done and bytes(target) == full(3)


@pytest.mark.parametrize("is_source", [True, False])
def test_an_array_names_its_stream(gpu: FakeGpu, torch: Torch, is_source: bool) -> None:
    torch.current, theirs = gpu.stream(), gpu.stream()
    with gpu_session() as session:
        tensors: list[Any] = [Array(gpu, BYTES, theirs), Tensor(gpu, BYTES)]
        streams = [theirs, torch.current]
        if not is_source:
            tensors.reverse()
            streams.reverse()
        held = tensors[0].fill_in(streams[0], 4)
        released_later(held, lambda: by_sync(session, {"x": tensors[0]}, {"x": tensors[1]}, None))
        assert tensors[1].read_in(streams[1]).result() == full(4)


def test_arrays_alone_have_the_run_in_their_stream(gpu: FakeGpu) -> None:
    theirs = gpu.stream()
    with gpu_session() as session:
        source, target = Array(gpu, BYTES, theirs), Array(gpu, BYTES, None)
        held = source.fill_in(theirs, 6)
        released_later(held, lambda: by_sync(session, {"x": source}, {"x": target}, None))
        assert target.read_in(theirs).result() == full(6)


@pytest.mark.parametrize("move", MOVES)
def test_dlpack_is_asked_for_the_stream_of_the_run(gpu: FakeGpu, torch: Torch, move: Move) -> None:
    torch.current = gpu.stream()
    with gpu_session() as session:
        for stream, asked in ((None, torch.current), (0, 1), (sluice.NO_STREAM, -1)):
            source, target = Exporter(gpu, BYTES), Tensor(gpu, BYTES)
            source.fill(7)
            move(session, {"x": source}, {"x": target}, stream)
            assert source.asked[-1]["stream"] == asked
            gpu.synchronize()
            assert target.content() == full(7)


def test_pytorch_hears_which_stream_uses_memory(gpu: FakeGpu, torch: Torch) -> None:
    torch.current = gpu.stream()
    with gpu_session() as session:
        source, target = Tensor(gpu, BYTES), Tensor(gpu, BYTES)
        for runs in (1, 2):
            by_sync(session, {"x": source}, {"x": target}, None)
            assert source.recorded == target.recorded == [torch.current] * runs
        by_sync(session, {"x": source}, {"x": target}, sluice.NO_STREAM)
        assert len(source.recorded) == 2


def test_memory_is_bound_after_what_a_stream_holds(gpu: FakeGpu, torch: Torch) -> None:
    with gpu_session() as session:
        source, target = Tensor(gpu, BYTES), Tensor(gpu, BYTES)
        transfer = session.transfer({"x": source}, {"x": target})
        other = Tensor(gpu, BYTES)
        torch.current = gpu.stream()
        held = other.fill_in(torch.current, 8)
        transfer.rebind({"x": other})
        torch.current = gpu.stream()
        released_later(held, transfer.run)
        assert target.read_in(torch.current).result() == full(8)


def test_late_memory_is_written_after_what_a_stream_holds(gpu: FakeGpu, torch: Torch) -> None:
    torch.current = gpu.stream()
    with gpu_session() as session:
        source, target = Tensor(gpu, BYTES), Tensor(gpu, BYTES)
        source.fill(9)
        meta = Tensor.__new__(Tensor)
        meta.shape, meta.pointer, meta.device = (BYTES,), 0, SimpleNamespace(type="meta")
        transfer = session.transfer({"x": source}, {"x": meta}, late=True)
        run = transfer.start()
        for event in run.events():
            if isinstance(event, sluice.NeedsMemory):
                theirs = gpu.stream()
                held = target.fill_in(theirs, 1)
                run.supply("x", target, stream=theirs)
                break
        released_later(held, run.wait)
        assert target.read_in(torch.current).result() == full(9)
        assert target.recorded == [torch.current]


def test_a_save_reads_after_what_the_stream_holds(gpu: FakeGpu, torch: Torch,
                                                  tmp_path: Path) -> None:
    torch.current = gpu.stream()
    with gpu_session() as session:
        source, target = Tensor(gpu, BYTES), Tensor(gpu, BYTES)
        held = source.fill_in(torch.current, 10)
        released_later(held, lambda: session.save(tmp_path / "saved", {"x": source},
                                                  progress=False))
        held = target.fill_in(torch.current, 1)
        released_later(held, lambda: session.load(tmp_path / "saved", {"x": target},
                                                  progress=False))
        assert target.read_in(torch.current).result() == full(10)


@pytest.mark.parametrize("call", ["sync", "start", "load", "save"])
def test_no_stream_at_all_is_refused(gpu: FakeGpu, tmp_path: Path, call: str) -> None:
    with gpu_session() as session:
        tensors = {"x": Tensor(gpu, BYTES)}
        calls: dict[str, Callable[[], Any]] = {
            "sync": lambda: session.sync(tensors, {}, stream="first"),
            "start": lambda: session.transfer(tensors, {}, ignore_unused=True).start(stream=-1),
            "load": lambda: session.load(tmp_path, tensors, stream="first"),
            "save": lambda: session.save(tmp_path, tensors, stream=1.5)}
        with pytest.raises(sluice.InvalidSpec, match="NO_STREAM"):
            calls[call]()
