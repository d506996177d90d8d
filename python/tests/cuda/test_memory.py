"""Memory that was freed, and had again at the same address, is other memory."""

from __future__ import annotations

from typing import Any

import pytest
from gpu import FakeGpu, Tensor
from local_ranks import on_ranks

import sluice

BYTES = 4 << 20


@pytest.mark.parametrize("pool", [False, True])
def test_memory_that_others_cannot_open_at_an_address_that_they_had(gpu: FakeGpu,
                                                                    pool: bool) -> None:
    gpu.fake.configure(reuse_addresses=True)
    source, target = Tensor(gpu, BYTES), Tensor(gpu, BYTES)

    def work(native: Any, rank: int) -> None:
        session = sluice.Session(native)
        mine = ({"x": source}, None) if rank == 0 else (None, {"x": target})
        transfer = session.transfer(*mine)
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
