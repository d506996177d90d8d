"""NeMo-RL's checkpoint engine by Sluice.

    policy:
      generation:
        refit_transport: "sluice.integrations.nemo_rl:CheckpointEngine"
        refit_cfg:
          "sluice.integrations.nemo_rl:CheckpointEngine":
            update_weights_bucket_memory_ratio: 0.02

The settings there may have those of `CheckpointEngine`, too.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from typing import Any

from nemo_rl.utils.checkpoint_engines.base import CheckpointEngine as _Base

from ._batches import Named
from ._endpoint import ACTOR, ROLLOUT, Endpoint
from ._hosts import warn_once

#: The interface that this was written for, and one of its names that came last.
_TRIED, _NEWEST = "2026-08", "shard_expert_weights"


class CheckpointEngine(_Base):
    """One process's end: of a policy worker, which sends, or a rollout worker. Thread: one.

    `bucket_size`: bytes of a batch. A rollout holds two, and each of A policy workers the A-th part
    of two. A tensor that is larger goes alone. `device`: where rollouts get tensors. `timeout`:
    seconds to wait for other processes. `bind`: the one address at which others reach this process.
    `options`: those of `sluice.SessionOptions`, such as transport="nccl".
    """

    def __init__(self, bucket_size: int, device: Any = None, timeout: float = 300.0,
                 bind: str = "", **options: Any) -> None:
        if not hasattr(_Base, _NEWEST):
            warn_once("this NeMo-RL was not tried with this Sluice, which was with that of "
                      f"{_TRIED}")
        self._endpoint = Endpoint(bucket_size, device, timeout, bind, options)

    def prepare(self) -> Any:
        """Where the fleet may meet, for all other processes; JSON, with a secret."""
        # A process is not told here whether it is the first policy worker. It is the first one of
        # its group, as is one of the rollouts, whose store ends when nobody meets there.
        return self._endpoint.prepare(serves=_group_rank() == 0)

    def init_policy_process_group(self, *, worker_rank: int, train_world_size: int,
                                  rollout_world_size: int, metadata: list[Any]) -> None:
        """Collective; blocks. Errors are those of `Endpoint.join`."""
        self._init(ACTOR, worker_rank, train_world_size, rollout_world_size, metadata)

    def init_rollout_process_group(self, *, rollout_rank: int, train_world_size: int,
                                   rollout_world_size: int, metadata: list[Any]) -> None:
        """Collective; blocks. Errors are those of `Endpoint.join`."""
        self._init(ROLLOUT, rollout_rank, train_world_size, rollout_world_size, metadata)

    def _init(self, role: str, rank: int, actors: int, rollouts: int, metadata: list[Any]) -> None:
        self._endpoint.join(role, rank, Endpoint.topology(actors, rollouts, metadata))

    def finalize(self) -> None:
        """Ends the session, and lets go of all memory. `prepare` begins anew."""
        self._endpoint.close()

    async def send_weights(self, weights: Generator[Named, None, None]) -> None:
        """Collective. Sends what the generator brings. Errors are those of `Batches.send`."""
        await self._endpoint.send(weights)

    async def receive_weight_batches(self) -> AsyncGenerator[list[Named], None]:
        """Collective. A batch may be used until the next one is asked for."""
        async with aclosing(self._endpoint.receive()) as received:
            async for batch in received:
                yield batch


def _group_rank() -> int:
    """In this process's own group of PyTorch, as its host has made it; 0: there is none."""
    import torch.distributed as dist
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
