"""Stands for SGLang's module of this name. Its own ways say that they were taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def _unsupported_derived_weight_cache_error(model: Any = None) -> str | None:
    return getattr(model, "derived", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightUpdater:
    tp_rank: int
    device: str
    get_model: Callable[[], Any]
    get_model_runner: Callable[[], Any]

    def init_weights_update_group(self, master_address, master_port, rank_offset, world_size,
                                  group_name, backend="nccl"):  # type: ignore[no-untyped-def]
        return True, f"SGLang's own way to {group_name} by {backend}"

    def destroy_weights_update_group(self, group_name):  # type: ignore[no-untyped-def]
        return False, f"SGLang's own way from {group_name}"

    def _assert_weight_cache_inactive(self, op: str) -> None: ...

    def receive_weights_from_distributed(self, *, names, dtypes, shapes, group_name,
                                         load_format=None):  # type: ignore[no-untyped-def]
        return [f"SGLang's own way by {group_name}"]
