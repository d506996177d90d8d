"""Starts functions of the tests as ranks of a job of torch.distributed, each in its own process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent))

from ranks import SESSION_SECONDS, free_port, run_ranks  # noqa: E402

# Each rank imports PyTorch, which takes a core for seconds.
_LIMIT_SECONDS = 600.0


def run_job(size: int, function: Callable[..., Any], *args: Any,
            limit: float = _LIMIT_SECONDS, path: str = "") -> list[Any]:
    """What `function` returns on each rank, as run_ranks of ranks.py; without a session.

    `path`: a folder of further packages.
    """
    environment = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                   "OMP_NUM_THREADS": "1"}
    if path:
        environment["PYTHONPATH"] = path
    return run_ranks(size, function, *args, session=False, environment=environment, limit=limit)


@contextmanager
def gloo_session() -> Iterator[Any]:
    """A session of all ranks of the job, over which torch.distributed runs on gloo."""
    import sluice
    import torch.distributed as dist

    dist.init_process_group("gloo")
    with sluice.Session.from_process_group(timeout=SESSION_SECONDS) as session:
        yield session
    dist.destroy_process_group()


def same_bytes(one: Any, other: Any) -> bool:
    """Whether two tensors have the same shape, dtype and bits."""
    import torch

    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    parts = [part.detach().contiguous().reshape(-1).view(torch.uint8) for part in (one, other)]
    return bool(torch.equal(*parts))
