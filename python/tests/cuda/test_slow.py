"""Slowness is said: device memory that goes through the host."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from gpu import FakeGpu, Tensor
from local_ranks import on_ranks

import sluice

BYTES = 4096


@pytest.mark.parametrize("transport", [None, "cuda_ipc"])
def test_device_memory_that_goes_through_the_host(gpu: FakeGpu, transport: str | None) -> None:
    source, target = Tensor(gpu, BYTES), Tensor(gpu, BYTES)
    source.fill(1)

    def work(native: Any, rank: int) -> str:
        session = sluice.Session(native)
        transfer = session.transfer(*(({"x": source}, None) if rank == 0
                                      else (None, {"x": target})))
        for _ in range(2):
            transfer.run(stream=sluice.NO_STREAM)
        return session.report()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reports = on_ranks(2, work, accelerator="cuda:0", transport=transport)
    slow = transport is None
    assert [("through the host" in report) for report in reports] == [slow] * 2
    texts = sorted(str(warning.message) for warning in caught)
    wanted = ["rank 0: device memory goes", "rank 1: device memory goes"] if slow else []
    assert [text[:26] for text in texts] == wanted
    assert target.content() == bytes([1] * BYTES)
