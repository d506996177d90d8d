"""Streams of a GPU: which one a call takes part in, and what else it comes after."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ._errors import InvalidSpec

if TYPE_CHECKING:
    from . import _sluice

#: A torch.cuda.Stream, an object with __cuda_stream__, the address of one, NO_STREAM, or None.
Stream = Any

_CUDA = 2  # DLPack's kCUDA
DEFAULT_STREAM = 1  # cudaStreamLegacy, as DLPack and __cuda_array_interface__ name it


class NoStream:
    """The type of `sluice.NO_STREAM`."""

    def __repr__(self) -> str:
        return "sluice.NO_STREAM"


NO_STREAM = NoStream()


def current_stream(gpu: int) -> int:
    """That of PyTorch or CuPy, whichever is loaded; else CUDA's default stream."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda") and torch.cuda.is_initialized():
        return int(torch.cuda.current_stream(gpu).cuda_stream)
    cupy = sys.modules.get("cupy")
    if cupy is not None and hasattr(cupy, "cuda"):
        with cupy.cuda.Device(gpu):
            return int(cupy.cuda.get_current_stream().ptr)
    return DEFAULT_STREAM


def handle_of(stream: Stream) -> int | None:
    """The address of a stream that a caller has named; None for none."""
    if stream is None or stream is NO_STREAM:
        return None
    if isinstance(stream, int) and 0 <= stream < 1 << 64:
        return int(stream)
    if hasattr(stream, "cuda_stream"):
        return int(stream.cuda_stream)
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    raise InvalidSpec(f"stream is a {type(stream).__name__}; it has to be a CUDA stream, or "
                      "sluice.NO_STREAM")


class Places:
    """Where the memory of one call is on this rank, and who made it. Refers to that memory."""

    def __init__(self, views: Iterable[Any], memories: Iterable[Any] = (),
                 late: bool = False) -> None:
        kinds = {view[4] for each in views if each is not None
                 for view in (each if isinstance(each, list) else [each])}
        self.on_gpu = _CUDA in kinds or late
        self.on_host = bool(kinds - {_CUDA}) or late
        # Of DLPack an owner is the object with its capsule.
        self.memories = [one[0] if isinstance(one, tuple) else one
                         for one in memories] if self.on_gpu else []
        self.foreign = [memory for memory in self.memories if not hasattr(memory, "data_ptr")
                        and (hasattr(memory, "__cuda_array_interface__")
                             or hasattr(memory, "__dlpack_device__"))]


def foreign_stream(memory: Any) -> int | None:
    """The stream that an array's interface says to wait for; None: none."""
    interface = getattr(memory, "__cuda_array_interface__", None)
    stream = None if interface is None else interface.get("stream")
    return None if stream is None else int(stream)


class Order:
    """Of one call on this rank: the stream that it takes part in, and those that it meets.

    `handle` is None where the call takes part in no stream. Then it neither waits for streams nor
    do they wait for it.
    """

    def __init__(self, native: _sluice.Session, stream: Stream, places: Places) -> None:
        self._native = native
        self._gpu = native.gpu
        self._places = places
        self._others: list[int] = []
        self._end: _sluice.Mark | None = None
        self.handle = handle_of(stream)
        if self._gpu is None or not places.on_gpu:
            return
        if stream is not NO_STREAM:
            self._others = list(dict.fromkeys(
                found for memory in places.foreign
                if (found := foreign_stream(memory)) is not None))
            if self.handle is None:
                self.handle = self._default()

    def _default(self) -> int:
        assert self._gpu is not None
        if self._others and len(self._places.foreign) == len(self._places.memories):
            return self._others[0]  # no tensor is of a framework that has a current stream
        return current_stream(self._gpu)

    def begin(self, after: Iterable[_sluice.Mark] = ()) -> None:
        """What the stream gets from now on comes after the work of those who made the memory.

        And after the marks. Without a stream the host waits for them.
        """
        for mark in after:
            self._come_after(mark)
        for other in self._others:
            if other != self.handle:
                self._come_after(self._native.mark(other))
        self._ask_makers(self._places)

    def _come_after(self, mark: _sluice.Mark) -> None:
        if self.handle is None:
            wait_for(mark)
        else:
            mark.hold_back(self.handle)

    def _ask_makers(self, places: Places) -> None:
        for memory in places.foreign:
            if not hasattr(memory, "__cuda_array_interface__"):
                ask_for_order(memory, self.handle)

    def record(self) -> None:
        """Tells PyTorch that the stream uses the memory, which is not to be used again before."""
        torch = sys.modules.get("torch")
        if self.handle is None or self._gpu is None or torch is None:
            return
        stream = None
        for memory in self._places.memories:
            record = getattr(memory, "record_stream", None)
            if record is None or getattr(memory.device, "type", "") != "cuda":
                continue
            if stream is None:
                handle = 0 if self.handle == DEFAULT_STREAM else self.handle
                stream = torch.cuda.ExternalStream(handle, device=self._gpu)
            record(stream)

    def meet(self, other: Order) -> None:
        """Memory that the call gets later, with an order of its own."""
        own = [other.handle] if other.handle is not None and other._gpu is not None and \
            other._places.on_gpu else []
        for stream in (*own, *other._others):
            if stream != self.handle:
                self._come_after(self._native.mark(stream))
        if self.handle is not None:
            self._others += other._others
        self._ask_makers(other._places)
        other.handle = self.handle
        other.record()

    def end(self) -> None:
        """Once all the call's work is in its stream: the streams that it has met come after it."""
        if self.handle is None or self._gpu is None or not self._places.on_gpu:
            return
        if self._places.on_host:
            self._end = self._native.mark(self.handle)  # the host is about to use its memory
        others = [other for other in self._others if other != self.handle]
        if others:
            mark = self._end or self._native.mark(self.handle)
            for other in others:
                mark.hold_back(other)

    @property
    def is_over(self) -> bool:
        """False while the stream has not done what the host has to wait for. Thread: any."""
        return self._end is None or bool(self._end.passed())


def ask_for_order(memory: Any, handle: int | None) -> None:
    """Has whoever made a DLPack tensor put its work before what `handle` gets; None: not at all."""
    from ._dlpack import capsule_of
    capsule_of(memory, -1 if handle is None else handle or DEFAULT_STREAM)


def wait_for(mark: _sluice.Mark) -> None:
    """Blocks until the mark's stream has got past it. Ctrl-C ends the waiting."""
    pause = 0.0
    while not mark.passed():
        time.sleep(pause)
        pause = min(0.001, pause + 0.00002)


def wait_for_stream(native: _sluice.Session, stream: Stream, places: Places) -> Order:
    """For a call that blocks, and works in streams of its own: waits for what comes before it."""
    order = Order(native, stream, places)
    order.begin()
    if order.handle is not None and native.gpu is not None and places.on_gpu:
        wait_for(native.mark(order.handle))
    return order
