"""A rank whose stream waits for a process that has died learns of it, and ends."""

from __future__ import annotations

import os
import signal
from typing import Any

from gpu import FakeGpu, Tensor
from ranks import hear, ranks_end, tell

import sluice

BYTES = 4 << 20


def rank_outlives_a_sender(limit: float) -> str:
    gpu = FakeGpu()
    session = sluice.Session.from_env(accelerator="cuda:0", transport="cuda_ipc", timeout=limit)
    stream, tensor = gpu.stream(), Tensor(gpu, BYTES)
    sends = session.rank == 0
    transfer = session.transfer({"x": tensor} if sends else None, None if sends else {"x": tensor})
    held: Any = gpu.fake.hold(stream) if sends else None
    run = transfer.start(stream=stream)
    if sends:
        while not run.done:
            session.poll()
        hear("copying")
        assert held is not None
        os.kill(os.getpid(), signal.SIGKILL)
    run.wait()  # the copy is in the stream, behind what the sender's stream holds
    assert not gpu.fake.is_idle(stream)
    tell("copying")
    try:
        session.close()
    except sluice.Error as error:
        return str(error)
    return "closed"


def test_the_receiver_ends_with_an_error() -> None:
    ends = ranks_end(2, rank_outlives_a_sender, 10.0, session=False)
    assert ends[0].returncode == -signal.SIGKILL, ends[0].output
    # 86: at the end the fake counts what could not be freed, behind a stream that waits for ever.
    assert ends[1].returncode == 86, ends[1].output
    assert "rank 0" in ends[1].result
