"""Batches of a stream: items as tensors, in memory that is lent."""

from __future__ import annotations

import ctypes
import sys
import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from . import _sluice
from ._dtypes import TORCH_NAMES
from ._errors import InvalidSpec, Unsupported
from ._streams import DEFAULT_STREAM, NO_STREAM, current_stream, handle_of
from ._streams import Stream as StreamLike

_CUDA = 2  # DLPack's kCUDA

_TORCH_NAMES = {"i4x2": "uint8", **{ours: theirs for theirs, ours in TORCH_NAMES.items()
                                    if theirs != "bool_"}}
_ML_DTYPES = ("bf16", "f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz", "f8e8m0")


def _buffer(address: int, nbytes: int, lease: Any, item: int) -> Any:
    # A class of its own, so that it can have attributes, and be in sets.
    kind: Any = type("_LentBytes", (ctypes.c_uint8 * nbytes,), {"__hash__": object.__hash__})
    memory = kind.from_address(address)
    memory.lease = lease
    memory.item = item
    return memory


@dataclass
class ItemBytes:
    """An item in host memory, for those who know what it consists of."""

    number: int  # in the source
    data: memoryview
    _flat: Any  # the same as a tensor

    def view(self, begin: int, end: int, dtype: str = "u8", shape: Any = None) -> Any:
        """A part of the item as a tensor, in its memory.

        PyTorch takes elements at multiples of their size alone: others are copied.
        """
        part = self._flat[begin:end]
        if dtype != "u8":
            torch = sys.modules.get("torch")
            name = _TORCH_NAMES[dtype]
            if torch is None:
                part = part.view(name)
            elif not hasattr(torch, name):
                raise Unsupported(f"this PyTorch has no {name}")
            else:
                size = _sluice.dtype_bytes(dtype)
                is_aligned = begin % size == 0 and self._flat.data_ptr() % size == 0
                part = (part if is_aligned else part.clone()).view(getattr(torch, name))
        return part if shape is None else part.reshape(shape)


#: Takes an item apart. DataLoss: it is not of the format.
Decode = Callable[[ItemBytes], dict[str, Any]]


class Batch:
    """Items of a stream, in memory that is lent.

    It is given back when the loop asks for the next batch: unless `keep` was called, or somebody
    else still refers to the tensor. A stream has two buffers (`buffers`). With all of them held,
    the next batch is an error. Thread: the stream's.
    """

    def __init__(self, lease: _sluice.Lease, mapped: bool = False,
                 decode: Decode | None = None) -> None:
        self._lease: _sluice.Lease | None = lease
        self._tensors: list[Any] | None = None
        self._lent: weakref.WeakSet[Any] = weakref.WeakSet()  # to tensors of host memory
        self._kept = False
        self._mapped = mapped  # of a file: writing ends the process
        self._decode = decode

    def __len__(self) -> int:
        """How many items it has."""
        return int(self._held().items)

    @property
    def items(self) -> list[int]:
        """The items' numbers in the source."""
        lease = self._held()
        return [int(lease.item(i)) for i in range(lease.items)]

    @property
    def epochs(self) -> list[int]:
        """The epoch of each item."""
        lease = self._held()
        return [int(lease.epoch(i)) for i in range(lease.items)]

    @property
    def tensor(self) -> Any:
        """All items in one tensor: (items, *shape of an item).

        A tensor of PyTorch where that is loaded, else an array of NumPy. InvalidSpec: the items
        have several shapes; see `tensors`. Items of "mmap:" may only be read.
        """
        lease = self._held()
        if not lease.is_batch:
            raise InvalidSpec("the items of this batch have several shapes: take batch.tensors")
        if self._tensors is None:
            self._tensors = [self._tensor(lease.batch(), -1)]
        return self._tensors[0]

    @property
    def tensors(self) -> list[Any]:
        """A tensor of each item."""
        lease = self._held()
        return [self._tensor(lease.view(i), i) for i in range(lease.items)]

    @property
    def samples(self) -> list[dict[str, Any]]:
        """What each item consists of, where format is "webdataset" or "mds".

        Bytes are tensors of u8 in the memory of the batch, for which the rules of `tensors` hold.
        docs/streaming.md has the other values. DataLoss: an item is not of the format.
        """
        lease = self._held()
        if self._decode is None:
            raise InvalidSpec('batch.samples is of streams with format="webdataset" or "mds"; '
                              "take batch.tensor or batch.tensors")
        return [self._decode(self._bytes_of(lease, i)) for i in range(lease.items)]

    def _bytes_of(self, lease: _sluice.Lease, i: int) -> ItemBytes:
        address, shape, _, dtype, device, _ = lease.view(i)
        if device == _CUDA:
            raise InvalidSpec("batch.samples takes items apart in host memory: open the stream "
                              'with device="cpu"')
        if dtype != "u8":
            raise InvalidSpec(f"batch.samples takes items of bytes apart, and those of the index "
                              f"have dtype {dtype}")
        memory = self._memory(address, prod(shape), i)
        flat = self._in_host(memory, shape, None, dtype)
        return ItemBytes(lease.item(i), memoryview(memory or b"").cast("B"), flat)

    def keep(self) -> Batch:
        """Holds the memory beyond the next batch, until `release` or until nobody refers to it."""
        self._held()
        self._kept = True
        return self

    def release(self, stream: StreamLike = None) -> None:
        """Gives the memory back now, or as soon as nobody else refers to its tensors.

        Device memory is filled again once `stream` has got past what it holds when the memory is
        given back. None: the current stream of PyTorch or CuPy, or else CUDA's default stream.
        sluice.NO_STREAM: what reads the memory has ended. Streams that tensors of the batch were
        made for come before in the same way.

        Warns of the latter, and names these tensors. Their memory is not filled again before they
        are gone. Until then the batch counts as not consumed, so `state_dict` leaves it out, and
        it comes again after a resume.
        """
        handle_of(stream)
        self._tensors = None
        holders = self._holders()
        self._give_back(stream)
        if holders:
            warnings.warn(f"batch.release: {holders}. The memory stays lent, and the batch out of "
                          "state_dict, until they are dropped, as by `del`", stacklevel=2)

    def _holders(self) -> str:
        """Which tensors of it are still referred to, in words; "": none."""
        lease = self._lease
        if lease is None:
            return ""
        counts = Counter(lease.exports)
        counts.update(memory.item for memory in self._lent)
        if not counts:
            return ""
        names = [f"{count} of batch.tensor" if i < 0 else
                 f"{count} of item {lease.item(i)} (batch.tensors[{i}])"
                 for i, count in sorted(counts.items())]
        more = f", and those of {len(names) - 4} more items" if len(names) > 5 else ""
        names = names[:4] if more else names
        return (f"{sum(counts.values())} tensor(s) of this batch of {lease.items} items are still "
                f"referred to: {', '.join(names)}{more}")

    def _give_back(self, stream: StreamLike = None) -> None:
        lease, self._lease = self._lease, None
        self._tensors = None
        if lease is not None and lease.held and (gpu := _gpu_of(lease)) is not None:
            handle = handle_of(stream)
            if handle is None and stream is not NO_STREAM:
                handle = current_stream(gpu)
            lease.release(handle)

    def __dlpack__(self, *, stream: int | None = None, **options: Any) -> Any:
        """A capsule of all items, for other frameworks. The memory is then theirs to give back.

        `stream`: the consumer's, as DLPack numbers it. What it gets from now on comes after the
        items, and the memory is filled again after what it holds when the tensor is dropped.
        """
        lease = self._held()
        handle = None
        if _gpu_of(lease) is not None and stream != -1:
            handle = DEFAULT_STREAM if stream is None else int(stream)
        capsule = lease.dlpack(-1, handle)
        self._lease = self._tensors = None
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        view = self._held().batch()
        return int(view[4]), int(view[5])

    def _held(self) -> _sluice.Lease:
        if self._lease is None:
            raise InvalidSpec("the batch has been given back: call batch.keep() to hold it longer")
        return self._lease

    def _tensor(self, view: tuple[Any, ...], item: int) -> Any:
        address, shape, strides, dtype, device, gpu = view
        lease = self._held()
        torch = sys.modules.get("torch")
        if device == _CUDA:
            if torch is None:
                raise Unsupported("a batch in device memory needs PyTorch, or batch.__dlpack__")
            return torch.from_dlpack(lease.dlpack(item, current_stream(gpu)))
        memory = self._memory(address, prod(shape) * _sluice.dtype_bytes(dtype), item)
        return self._in_host(memory, shape, strides, dtype)

    def _memory(self, address: int, nbytes: int, item: int) -> Any:
        """Of an item, or of all with -1; None where there is none."""
        if nbytes == 0:
            return None
        memory = _buffer(address, nbytes, self._held(), item)
        self._lent.add(memory)
        return memory

    def _in_host(self, memory: Any, shape: Any, strides: Any, dtype: str) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None:
            return _torch_tensor(torch, memory, shape, strides, dtype)
        try:
            import numpy
        except ImportError:
            raise Unsupported("batch.tensor needs PyTorch or NumPy") from None
        array = _numpy_array(numpy, memory, shape, dtype)
        if self._mapped:
            array.flags.writeable = False
        return array

    def _next_is_asked_for(self) -> None:
        if not self._kept:
            self._give_back()

    def __repr__(self) -> str:
        if self._lease is None:
            return "<sluice.Batch, given back>"
        return f"<sluice.Batch of {len(self)} items>"


def _gpu_of(lease: _sluice.Lease) -> int | None:
    """The number of the GPU that has the items; None where the host has them."""
    view = lease.view(0) if lease.items else (0,) * 6
    return int(view[5]) if view[4] == _CUDA else None


def _torch_tensor(torch: Any, memory: Any, shape: Any, strides: Any, dtype: str) -> Any:
    kind = getattr(torch, _TORCH_NAMES[dtype], None)
    if kind is None:
        raise Unsupported(f"this PyTorch has no {_TORCH_NAMES[dtype]}")
    if memory is None:
        return torch.empty(shape, dtype=kind)
    flat = torch.frombuffer(memory, dtype=torch.uint8).view(kind)
    return flat.reshape(shape) if strides is None else flat.as_strided(shape, strides)


def _numpy_array(numpy: Any, memory: Any, shape: Any, dtype: str) -> Any:
    name = _TORCH_NAMES[dtype]
    if dtype in _ML_DTYPES:
        try:
            import ml_dtypes
        except ImportError:
            raise Unsupported(f"NumPy needs ml_dtypes for {dtype}") from None
        kind = numpy.dtype(getattr(ml_dtypes, name))
    else:
        kind = numpy.dtype(name if hasattr(numpy, name) else "uint8")
    if memory is None:
        return numpy.empty(shape, kind)
    return numpy.frombuffer(memory, numpy.uint8).view(kind).reshape(shape)
