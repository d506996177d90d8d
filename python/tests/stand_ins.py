"""Objects with the attributes of PyTorch's tensors and DTensors, for tests without PyTorch."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod
from types import SimpleNamespace
from typing import Any


class Tensor:
    """A dense f32 tensor of the host, with memory of its own or somewhere in `memory`."""

    def __init__(self, shape: Sequence[int], memory: Any = None, dtype: str = "torch.float32",
                 device: str = "cpu") -> None:
        self.shape = tuple(shape)
        self.memory = memory or ctypes.create_string_buffer(max(1, 4 * prod(shape)))
        self.dtype = type("dtype", (), {"__str__": lambda _: dtype})()
        self.device = SimpleNamespace(type=device, index=None)
        self.detached = 0

    def stride(self) -> tuple[int, ...]:
        return tuple(prod(self.shape[d + 1:]) for d in range(len(self.shape)))

    def data_ptr(self) -> int:
        return ctypes.addressof(self.memory) if prod(self.shape) else 0

    def detach(self) -> Tensor:
        self.detached += 1
        return self


class Ranks:
    """A tensor of ranks: what a mesh has."""

    def __init__(self, shape: Sequence[int], ranks: Sequence[int]) -> None:
        self.shape, self._ranks = tuple(shape), list(ranks)

    def reshape(self, *_: int) -> Ranks:
        return self

    def tolist(self) -> list[int]:
        return self._ranks


class Replicate:
    pass


class Shard:
    def __init__(self, dim: int) -> None:
        self.dim = dim


class _StridedShard:
    """No subclass of Shard, as in newer releases."""

    def __init__(self, dim: int, split_factor: int) -> None:
        self.dim, self.split_factor = dim, split_factor


class Partial:
    def __init__(self, reduce_op: Any = "sum") -> None:
        self.reduce_op = reduce_op


class _MaskPartial(Partial):
    pass


class OldStridedShard(Shard):
    """A subclass of Shard, as in older releases."""

    def __init__(self, dim: int, split_factor: int) -> None:
        super().__init__(dim)
        self.split_factor = split_factor


OldStridedShard.__name__ = "_StridedShard"


class DTensor:
    def __init__(self, shape: Sequence[int], sizes: Sequence[int], placements: Sequence[Any],
                 local: Any, ranks: Sequence[int] | None = None, **spec: Any) -> None:
        self.shape = tuple(shape)
        self.device_mesh = SimpleNamespace(mesh=Ranks(sizes, ranks or range(prod(sizes))))
        self.placements = tuple(placements)
        self.dtype = getattr(local, "dtype", None)
        self._spec = SimpleNamespace(**spec) if spec else None
        self._local = local

    def to_local(self) -> Any:
        return self._local
