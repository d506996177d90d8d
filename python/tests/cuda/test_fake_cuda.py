"""Transfers between tensors of an emulated GPU."""

from __future__ import annotations

import pytest
from gpu import FakeGpu, Tensor, gpu_session

from sluice import _sluice


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
