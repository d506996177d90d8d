"""Stands for NeMo-RL's module of this name: what its checkpoint engines derive from."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Generator
from typing import Any


class CheckpointEngine(ABC):
    cleanup_after_load: bool = True
    shard_expert_weights: bool = False

    def get_target_weight_layout(self) -> dict[str, Any] | None:
        return None

    @abstractmethod
    def prepare(self) -> Any: ...

    @abstractmethod
    def init_policy_process_group(self, *, worker_rank: int, train_world_size: int,
                                  rollout_world_size: int, metadata: list[Any]) -> None: ...

    @abstractmethod
    def init_rollout_process_group(self, *, rollout_rank: int, train_world_size: int,
                                   rollout_world_size: int, metadata: list[Any]) -> None: ...

    def finalize(self) -> None: ...

    @abstractmethod
    async def send_weights(self, weights: Generator[Any, None, None]) -> None: ...

    @abstractmethod
    def receive_weight_batches(self) -> AsyncGenerator[Any, None]: ...


def create_checkpoint_engine(backend: str, *, bucket_size_bytes: int,
                             engine_kwargs: dict[str, Any]) -> Any:
    module, name = backend.split(":")
    return getattr(importlib.import_module(module), name)(bucket_size=bucket_size_bytes,
                                                          **engine_kwargs)
