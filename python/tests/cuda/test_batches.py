"""Batches in device memory go back once the streams that read them have got past that."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import pytest
from gpu import Consumed, FakeGpu, Torch, gpu_session, released_later

import sluice

BYTES = 64
ITEMS = 8


def generate(item: int, into: memoryview) -> None:
    into[:] = bytes([item + 1] * len(into))


def opened(session: Any, **options: Any) -> Any:
    return session.stream(generator=generate, generator_items=ITEMS, item_bytes=BYTES, device="cuda",
                          **options)


def read_in(gpu: FakeGpu, stream: int, tensor: Consumed) -> Any:
    return gpu.fake.enqueue_read(stream, tensor.pointer, BYTES)


@pytest.mark.parametrize("keeps", [False, True])
def test_the_next_batch_waits_for_the_reader(gpu: FakeGpu, torch: Torch, keeps: bool) -> None:
    torch.current = gpu.stream()
    with gpu_session() as session, opened(session, buffers=2) as stream:
        readings = []
        held = gpu.fake.hold(torch.current)
        for _ in range(2):
            batch = next(stream)
            tensor = batch.tensor
            readings.append(read_in(gpu, torch.current, tensor))
            if keeps:  # the loop's own way: the tensor goes after its batch
                continue
            del tensor
            batch.release()
        tensor = None
        del batch
        gc.collect()
        assert gpu.fake.is_idle(torch.current) is False
        if keeps:
            stream._give_up_batch()
        held.release()
        for batch in stream:
            assert batch.tensor.shape
        assert [reading.result() for reading in readings] == [bytes([1] * BYTES), bytes([2] * BYTES)]


def test_a_released_batch_is_refilled_after_its_stream(gpu: FakeGpu, torch: Torch) -> None:
    theirs = gpu.stream()
    with gpu_session() as session, opened(session, buffers=1) as stream:
        batch = next(stream)
        held = gpu.fake.hold(theirs)
        tensor = batch.tensor
        reading = read_in(gpu, theirs, tensor)
        del tensor
        batch.release(stream=theirs)
        released_later(held, lambda: next(stream))  # into the only buffer, which is being read
        assert reading.result() == bytes([1] * BYTES)


def test_release_counts_tensors(gpu: FakeGpu, torch: Torch) -> None:
    with gpu_session() as session, opened(session) as stream:
        batch = next(stream)
        tensor = batch.tensor
        with pytest.warns(UserWarning, match="1 tensor"):
            batch.release()
        del tensor
        batch = next(stream)
        tensor = batch.tensor
        del tensor
        batch._tensors = None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            batch.release()


def test_each_item_has_a_tensor(gpu: FakeGpu, torch: Torch) -> None:
    with gpu_session() as session, opened(session, batch_items=2) as stream:
        batch = next(stream)
        tensors = batch.tensors
        readings = [read_in(gpu, 0, tensor) for tensor in tensors]
        assert [reading.result() for reading in readings] == [bytes([n] * BYTES) for n in (1, 2)]
        del tensors, batch
        gpu.synchronize()


@pytest.mark.parametrize("stream", [None, -1, "own"])
def test_dlpack_takes_the_stream_of_the_consumer(gpu: FakeGpu, stream: Any) -> None:
    own = gpu.stream()
    with gpu_session() as session, opened(session, buffers=1, await_in_stream=True) as batches:
        batch = next(batches)
        tensor = Consumed(batch.__dlpack__(stream=own if stream == "own" else stream))
        if stream != -1:
            reading = read_in(gpu, own if stream == "own" else 0, tensor)
            if stream == "own":
                assert reading.result() == bytes([1] * BYTES)
        if stream == "own":
            held = gpu.fake.hold(own)
            reading = read_in(gpu, own, tensor)
            del tensor
            released_later(held, lambda: next(batches))
            assert reading.result() == bytes([1] * BYTES)
        gpu.synchronize()
        with pytest.raises(sluice.InvalidSpec):
            batch.items  # noqa: B018 - it has gone
