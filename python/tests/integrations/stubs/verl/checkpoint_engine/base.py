"""Stands for verl's module of this name: what its checkpoint engines derive from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any


class CheckpointEngineRegistry:
    _registry: dict[str, type] = {}

    def register(backend: str):  # type: ignore[no-untyped-def]
        def enter(cls: type) -> type:
            CheckpointEngineRegistry._registry[backend] = cls
            return cls

        return enter

    @classmethod
    def get(cls, backend: str) -> Any:
        return cls._registry[backend]

    @classmethod
    def new(cls, backend: str, *args: Any, **kwargs: Any) -> Any:
        return cls.get(backend)(*args, **kwargs)


class CheckpointEngine(ABC):
    wire_format = "named_tensors"

    @abstractmethod
    def prepare(self) -> dict[str, Any]: ...

    @classmethod
    @abstractmethod
    def build_topology(cls, actor_wg_world_size: int, rollout_world_size: int,
                       metadata: list[dict[str, Any]]) -> Any: ...

    @abstractmethod
    def init_process_group(self, **kwargs: Any) -> None: ...

    @abstractmethod
    def finalize(self) -> None: ...

    @abstractmethod
    async def send_weights(self, weights: Generator[Any, None, None],
                           global_steps: int | None = None) -> Any: ...

    @abstractmethod
    async def receive_weights(self, global_steps: int | None = None) -> Any: ...
