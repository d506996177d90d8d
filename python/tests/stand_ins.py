"""Objects with the attributes of PyTorch's tensors and DTensors, for tests without PyTorch."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod
from types import SimpleNamespace
from typing import Any

from sluice import _dlpack


class Tensor:
    """A dense f32 tensor of the host, with memory of its own, or somewhere in `memory`.

    `pointer`: where it says that its memory is. `more`: further attributes.
    """

    def __init__(self, shape: Sequence[int] = (2, 3), memory: Any = None,
                 dtype: str = "torch.float32", device: str = "cpu", *, index: int | None = None,
                 strides: tuple[int, ...] | None = None, pointer: int | None = None,
                 **more: Any) -> None:
        self.shape = tuple(shape)
        self._strides, self._pointer = strides, pointer
        self.memory = memory or ctypes.create_string_buffer(max(1, 4 * prod(shape)))
        self.dtype = type("dtype", (), {"__str__": lambda _: dtype})()
        self.device = SimpleNamespace(type=device, index=index)
        self.__dict__.update(more)

    def stride(self) -> tuple[int, ...]:
        return self._strides or tuple(prod(self.shape[d + 1:]) for d in range(len(self.shape)))

    def data_ptr(self) -> int:
        if self._pointer is not None:
            return self._pointer
        return ctypes.addressof(self.memory) if prod(self.shape) else 0

    def detach(self) -> Tensor:
        return self


class Ranks:
    """A tensor of ranks: what a mesh has."""

    def __init__(self, shape: Sequence[int], ranks: Sequence[int]) -> None:
        self.shape, self._ranks = tuple(shape), list(ranks)

    def reshape(self, *_: int) -> Ranks:
        return self

    def tolist(self) -> list[int]:
        return self._ranks


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


ENDED: list[int] = []  # capsules
_END = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ENDED.append)


class Pack:
    """An object with DLPack, made here by hand. `pointer`: of memory that is not its own."""

    def __init__(self, dtype: tuple[int, int, int] = (2, 32, 1), shape: tuple[int, ...] = (2, 3),
                 strides: tuple[int, ...] | None = None, device: int = 1, flags: int = 0,
                 major: int = 1, versioned: bool = True, offset: int = 0,
                 pointer: int | None = None) -> None:
        self.data = ctypes.create_string_buffer(64)
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        self._strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.asked: list[dict[str, Any]] = []
        self.device, self.versioned = device, versioned
        tensor = _dlpack.DLTensor(
            ctypes.addressof(self.data) if pointer is None else pointer,
            _dlpack.DLDevice(device, 0), len(shape), _dlpack.DLDataType(*dtype), self._shape,
            self._strides, offset)
        self._made = _dlpack.DLVersioned(major, 0, None, None, flags,
                                         tensor) if versioned else tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 0)

    def __dlpack__(self, **asked: Any) -> Any:
        self.asked.append(asked)
        if not self.versioned and "max_version" in asked:
            raise TypeError("unexpected keyword argument 'max_version'")
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self._made),
                   b"dltensor_versioned" if self.versioned else b"dltensor", _END)


def values_of(tensor: Any) -> Any:
    """An array of NumPy of what a loader gets whole, which is memory alone without PyTorch."""
    if not hasattr(tensor, "ptr"):
        return tensor
    import numpy as np

    memory = (ctypes.c_float * prod(tensor.shape)).from_address(tensor.ptr)
    return np.frombuffer(memory, np.float32).reshape(tensor.shape)
