"""Transfers between tensors of an emulated GPU."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from gpu import FakeGpu, Tensor, gpu_session
from local_ranks import on_ranks

import sluice
from sluice import _sluice

BYTES = 4 << 20


def test_the_fake_gpu_reads_what_was_written(gpu: FakeGpu) -> None:
    memory = gpu.allocate(64)
    held = gpu.fake.enqueue_write(gpu.stream(), memory, bytes(range(64)))
    assert gpu.fake.read(memory, 64) != bytes(range(64))
    held.release()
    gpu.synchronize()
    assert gpu.fake.read(memory, 64) == bytes(range(64))


def test_misuse_is_told() -> None:
    stream = _sluice.fake_cuda.stream()
    _sluice.fake_cuda.destroy(stream)
    with pytest.raises(RuntimeError):
        _sluice.fake_cuda.destroy(stream)
    assert _sluice.fake_cuda.check_clean()


def test_a_session_moves_device_memory(gpu: FakeGpu) -> None:
    with gpu_session() as session:
        source, target = Tensor(gpu, 64), Tensor(gpu, 64)
        source.fill(7)
        session.sync({"x": source}, {"x": target}, progress=False)
        gpu.synchronize()
        assert target.content() == bytes([7] * 64)


def connected(native: Any, rank: int, source: Tensor, target: Tensor) -> sluice.Transfer:
    """From rank 0 to rank 1."""
    session = sluice.Session(native)
    return session.transfer({"x": source} if rank == 0 else None,
                            {"x": target} if rank == 1 else None)


@pytest.mark.parametrize("pool", [False, True])
def test_memory_that_others_cannot_open_at_an_address_that_they_had(gpu: FakeGpu,
                                                                    pool: bool) -> None:
    """Memory that was freed, and had again at the same address, is other memory."""
    gpu.fake.configure(reuse_addresses=True)
    source, target = Tensor(gpu, BYTES), Tensor(gpu, BYTES)

    def work(native: Any, rank: int) -> None:
        transfer = connected(native, rank, source, target)
        for value in (1, 2):
            if rank == 0:
                source.fill(value)
            transfer.run(stream=sluice.NO_STREAM)
            if rank == 1:
                assert target.content() == bytes([value] * BYTES)
            if rank == 0 and value == 1:
                pointer = source.pointer
                gpu.free(pointer)
                source.pointer = gpu.allocate(BYTES, pool=pool)
                assert source.pointer == pointer

    on_ranks(2, work, accelerator="cuda:0", transport="cuda_ipc")


@pytest.mark.parametrize("transport", [None, "cuda_ipc"])
def test_slowness_is_said_where_device_memory_goes_through_the_host(gpu: FakeGpu,
                                                                    transport: str | None) -> None:
    source, target = Tensor(gpu, BYTES), Tensor(gpu, BYTES)
    source.fill(1)

    def work(native: Any, rank: int) -> str:
        transfer = connected(native, rank, source, target)
        for _ in range(2):
            transfer.run(stream=sluice.NO_STREAM)
        return native.report()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reports = on_ranks(2, work, accelerator="cuda:0", transport=transport)
    slow = transport is None
    assert [("through the host" in report) for report in reports] == [slow] * 2
    texts = sorted(str(warning.message) for warning in caught)
    wanted = ["rank 0: device memory goes", "rank 1: device memory goes"] if slow else []
    assert [text[:26] for text in texts] == wanted
    assert target.content() == bytes([1] * BYTES)
