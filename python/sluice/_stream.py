"""Data shards from storage as an iterator of batches, ahead of who consumes them."""

from __future__ import annotations

import base64
import ctypes
import os
import sys
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from math import prod
from typing import Any

from . import _sluice
from ._dtypes import TORCH_NAMES, dtype_name
from ._errors import Error, InvalidSpec, Unsupported
from ._group import Group
from ._paths import place_of
from ._streams import DEFAULT_STREAM, NO_STREAM, current_stream, handle_of
from ._streams import Stream as StreamLike
from ._tables import Stats
from ._texts import INT64_MAX

_CUDA = 2  # DLPack's kCUDA
_STATE_FORMAT = 1

_TORCH_NAMES = {"i4x2": "uint8", **{ours: theirs for theirs, ours in TORCH_NAMES.items()
                                    if theirs != "bool_"}}
_ML_DTYPES = ("bf16", "f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz", "f8e8m0")


@dataclass(frozen=True)
class Transform:
    """value * scale + bias of each element, in f32; see docs/transforms.md for the fields.

    `src`, `dst`: dtypes, as "u8" or torch.uint8.
    """

    scale: float = 1.0
    bias: float = 0.0
    src: Any = "u8"
    dst: Any = "f32"
    channel_scale: Sequence[float] = ()
    channel_bias: Sequence[float] = ()
    shape: Sequence[int] = ()
    planar: bool = False
    crop: Sequence[int] = field(default=())  # top, left, height, width

    def _native(self) -> dict[str, Any]:
        try:
            values = asdict(self)
            for name in ("channel_scale", "channel_bias"):
                values[name] = [float(value) for value in values[name]]
            for name in ("shape", "crop"):
                values[name] = [int(value) for value in values[name]]
            values.update(scale=float(self.scale), bias=float(self.bias),
                          planar=bool(self.planar))
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidSpec(f"transform: {error}") from None
        if max(map(abs, (*values["shape"], *values["crop"])), default=0) > INT64_MAX:
            raise InvalidSpec("transform: 64 bits do not hold its shape or crop")
        for name in ("src", "dst"):
            values[name] = dtype_name(values[name])
        if len(values["crop"]) not in (0, 4):
            raise InvalidSpec("transform: crop is (top, left, height, width)")
        values["crop"] = values["crop"] or None
        return values


def scale(factor: float, bias: float = 0.0, *, src: Any = "u8", dst: Any = "f32") -> Transform:
    """The transform of elements to value * factor + bias, from dtype `src` to `dst`."""
    return Transform(scale=factor, bias=bias, src=src, dst=dst)


def _buffer(address: int, nbytes: int, lease: Any, item: int) -> Any:
    # A class of its own, so that it can have attributes, and be in sets.
    kind: Any = type("_LentBytes", (ctypes.c_uint8 * nbytes,), {"__hash__": object.__hash__})
    memory = kind.from_address(address)
    memory.lease = lease
    memory.item = item
    return memory


class Batch:
    """Items of a stream, in memory that is lent.

    It is given back when the loop asks for the next batch: unless `keep` was called, or somebody
    else still refers to the tensor. A stream has two buffers (`buffers`). With all of them held,
    the next batch is an error. Thread: the stream's.
    """

    def __init__(self, lease: _sluice.Lease, mapped: bool = False) -> None:
        self._lease: _sluice.Lease | None = lease
        self._tensors: list[Any] | None = None
        self._lent: weakref.WeakSet[Any] = weakref.WeakSet()  # to tensors of host memory
        self._kept = False
        self._mapped = mapped  # of a file: writing ends the process

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
        memory = None
        if count := prod(shape):
            memory = _buffer(address, count * _sluice.dtype_bytes(dtype), lease, item)
            self._lent.add(memory)
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


class Stream:
    """Batches of one rank, in order and read ahead. An iterator; `Session.stream` makes it.

    The order of an epoch follows from the seed and the epoch, for any number of ranks. Ranks that
    need the same items read them once between them. A stream fails alone: its session goes on.
    Thread: the session's; with a progress thread, the one that takes the first batch.
    """

    def __init__(self, session: Group, options: dict[str, Any],
                 generator: Callable[..., Any] | None) -> None:
        self._session = session
        self._options = options
        self._generator = generator
        self._batch: Batch | None = None
        self._native: _sluice.Stream = session._native.open_stream(options, generator)
        self._over = False  # closed, or ended by an error
        self._taken = 0  # items, since it was opened

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        """The next batch; waits for it. The batch before is given back."""
        if self._batch is not None:
            self._batch._next_is_asked_for()
            self._batch = None
        try:
            lease = self._native.next()
        except Error:
            self._over = True
            raise
        if lease is None:
            raise StopIteration
        self._taken += lease.items
        self._batch = Batch(lease, self._options["uri"].startswith("mmap:"))
        return self._batch

    @property
    def items(self) -> int:
        """How many items this rank gets, of all epochs."""
        return int(self._native.items)

    @property
    def ready(self) -> bool:
        """True if the next batch would not be waited for."""
        return bool(self._native.ready())

    @property
    def stats(self) -> dict[str, Any]:
        """Since the stream was opened, on this rank: bytes, requests, waiting, and so on."""
        return Stats(self._native.stats())

    def end_update(self) -> None:
        """The trainer's update has ended, and a generator may see it (`generate_order`)."""
        self._native.end_update()

    def state_dict(self) -> dict[str, Any]:
        """Where to go on, as plain data. What is not given back yet comes again.

        So call `batch.release()` before, where the batch in hand is done with. Each rank has a
        state of its own; `merge_states` makes one for any number of ranks.
        """
        cursor = base64.b64encode(self._native.cursor()).decode()
        return {"sluice_stream": _STATE_FORMAT, "cursor": cursor}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Collective; blocks. Goes on from there: opens the stream anew.

        Each rank gives the state that it had, or all give the same merged one. Better give it to
        `Session.stream` at once, as `state`.
        """
        def read() -> None:
            self._options["cursor"] = _cursor_of(state)

        self._session._exchange("Stream.load_state_dict", read)
        self._give_up_batch()
        self._native.close()
        self._native = self._session._native.open_stream(self._options, self._generator)
        self._taken = 0

    def dataset(self, take: Callable[[Batch], Any] | None = None) -> Any:
        """The stream as an IterableDataset of PyTorch, for a DataLoader of no workers.

        DataLoader(stream.dataset(), batch_size=None) yields what `take` makes of each batch: its
        tensor, if nothing is given.
        """
        return _dataset_kind()(self, take)

    def close(self) -> None:
        """Collective; blocks until all ranks have called. Ends the stream.

        Ranks read for each other, so one that parted early would end the stream for all. After an
        error of the stream it waits for nobody.
        """
        self._part(together=True)

    def _part(self, together: bool) -> None:
        self._give_up_batch()
        try:
            if together and not self._over:
                self._session._vote("Stream.close", 0)
        finally:
            self._over = True
            self._native.close()

    def _give_up_batch(self) -> None:
        if self._batch is not None:
            self._batch._next_is_asked_for()
            self._batch = None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        # The others hear of an exception of this rank as of an error of the stream.
        self._part(together=kind is None)

    def __repr__(self) -> str:
        if self._over:
            return "<sluice.Stream, closed>"
        batch_items = self._options.get("batch_items", 1)
        return f"<sluice.Stream of {self.items} items, {batch_items} a batch, {self._taken} taken>"


@cache
def _dataset_kind() -> Any:
    """The class of `Stream.dataset`, which is not made before PyTorch is asked for.

    Of each dataset a class of its own would keep the stream, as classes refer to themselves.
    """
    from torch.utils.data import IterableDataset, get_worker_info

    def refusal() -> InvalidSpec:
        return InvalidSpec("a stream's dataset stays in the process of its session: give the "
                           "DataLoader num_workers=0, as the stream reads ahead by itself")

    class Dataset(IterableDataset[Any]):
        def __init__(self, stream: Stream, take: Callable[[Batch], Any] | None) -> None:
            self._stream = stream
            self._take = take

        def __reduce__(self) -> Any:
            raise refusal()  # a loader sends it to workers that are spawned

        def __iter__(self) -> Iterator[Any]:
            if get_worker_info() is not None:
                raise refusal()
            for batch in self._stream:
                yield batch.tensor if self._take is None else self._take(batch)
                batch._give_back()

        def state_dict(self) -> dict[str, Any]:
            return self._stream.state_dict()

        def load_state_dict(self, state: Mapping[str, Any]) -> None:
            self._stream.load_state_dict(state)

    return Dataset


def _cursor_of(state: Mapping[str, Any] | None) -> bytes:
    if state is None:
        return b""
    try:
        if state["sluice_stream"] != _STATE_FORMAT:
            raise InvalidSpec(f"the stream's state has format {state['sluice_stream']}; this is "
                              f"{_STATE_FORMAT}")
        return base64.b64decode(state["cursor"], validate=True)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidSpec):
            raise
        raise InvalidSpec("this is not what Stream.state_dict returned") from None


def merge_states(states: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One state out of those of all ranks of a stream, to go on with any number of ranks.

    InvalidSpec: one is no state, or they are of different streams.
    """
    merged = _sluice.merge_cursors([_cursor_of(state) for state in states])
    return {"sluice_stream": _STATE_FORMAT, "cursor": base64.b64encode(merged).decode()}


def open_stream(session: Group, uri: str | os.PathLike[str], *,
                generator: Callable[..., Any] | None,
                transform: Transform | None, state: Mapping[str, Any] | None,
                **options: Any) -> Stream:
    """`Session.stream`."""
    checked: dict[str, Any] = {}

    def check() -> None:
        checked.update(first=session.rank, step=session.size)
        checked.update(_sluice.check_stream_options(options))
        checked["uri"] = "" if uri == "" else place_of("uri", uri)
        if (generator is None) == (not uri):
            raise InvalidSpec("a stream needs a uri or a generator, and not both")
        if checked.get("format") == "raw" and not checked.get("item_bytes"):
            raise InvalidSpec('format="raw" takes item_bytes, the size of an item')
        if generator is not None and not callable(generator):
            raise InvalidSpec(f"generator is {generator!r}, which cannot be called")
        if transform is not None:
            if not isinstance(transform, Transform):
                raise InvalidSpec(f"transform is {transform!r}; it has to be a sluice.Transform")
            checked["transform"] = transform._native()
        if state is not None:
            checked["cursor"] = _cursor_of(state)

    session._exchange("stream", check)
    return Stream(session, checked, generator)
