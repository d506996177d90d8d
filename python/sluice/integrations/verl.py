"""verl's checkpoint engine by Sluice.

    actor_rollout_ref.rollout.checkpoint_engine.backend=sluice
    actor_rollout_ref.rollout.checkpoint_engine.engine_kwargs.sluice.timeout=300

verl imports this module by its entry point, or as `custom_backend_module`. Importing it registers
the engine.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from typing import Any

from verl.checkpoint_engine.base import CheckpointEngine, CheckpointEngineRegistry

from ._batches import Named
from ._endpoint import ACTOR, ROLLOUT, Endpoint
from ._hosts import warn_of_version


@CheckpointEngineRegistry.register("sluice")
class SluiceCheckpointEngine(CheckpointEngine):
    """One process's end: of an actor, which sends, or a rollout. Thread: one.

    `bucket_size`: bytes of a batch. A rollout holds two, and each of A actors the A-th part of two.
    A tensor that is larger goes alone. `device`: where rollouts get tensors. `timeout`: seconds to
    wait for other processes. `bind`: the one address at which others reach this process. `options`:
    those of `sluice.SessionOptions`, such as transport="nccl".
    """

    def __init__(self, bucket_size: int, is_master: bool = False, device: Any = None,
                 timeout: float = 300.0, bind: str = "", **options: Any) -> None:
        warn_of_version("verl", "0.9.1", "verl")
        self._is_master = is_master
        self._endpoint = Endpoint(bucket_size, device, timeout, bind, options)

    def prepare(self) -> dict[str, Any]:
        """For `build_topology`: where the fleet meets, and which session this process has; JSON."""
        return self._endpoint.prepare(serves=self._is_master)

    @classmethod
    def build_topology(cls, actor_wg_world_size: int, rollout_world_size: int,
                       metadata: list[dict[str, Any]]
                       ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """What `init_process_group` is given on each actor, and on each rollout."""
        topology = Endpoint.topology(actor_wg_world_size, rollout_world_size, metadata)

        def kwargs(role: str, size: int) -> dict[str, list[Any]]:
            return {"role": [role] * size, "rank": list(range(size)), "topology": [topology] * size}

        return kwargs(ACTOR, actor_wg_world_size), kwargs(ROLLOUT, rollout_world_size)

    def init_process_group(self, role: str, rank: int, topology: dict[str, Any]) -> None:
        """Collective; blocks. Keeps the session of the last update, unless members have changed.

        Errors are those of `Endpoint.join`.
        """
        self._endpoint.join(role, rank, topology)

    def finalize(self) -> None:
        """Lets go of the memory of batches. The session stays for the next update."""
        self._endpoint.release()

    async def send_weights(self, weights: Generator[Named, None, None],
                           global_steps: int | None = None) -> dict[str, float]:
        """Collective. Sends what the generator brings, and returns what it came to.

        Errors are those of `Batches.send`.
        """
        sent = await self._endpoint.send(weights)
        return {f"checkpoint_engine/sluice_{name}": value for name, value in sent.items()}

    async def receive_weights(self, global_steps: int | None = None
                              ) -> AsyncGenerator[Named, None]:
        """Collective. A tensor may be used until one of the next batch is asked for."""
        async with aclosing(self._endpoint.receive()) as received:
            async for batch in received:
                for pair in batch:
                    yield pair
