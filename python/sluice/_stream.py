"""Data shards from storage as an iterator of batches, ahead of who consumes them."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from . import _sluice
from ._batch import Batch, Decode
from ._dtypes import dtype_name
from ._errors import Error, InvalidSpec
from ._group import Group
from ._paths import place_of
from ._tables import Stats
from ._texts import INT64_MAX

_STATE_FORMAT = 1
_PARSED_FORMATS = ("webdataset", "mds")  # of _shard_formats, which most streams do without


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


class Stream:
    """Batches of one rank, in order and read ahead. An iterator; `Session.stream` makes it.

    The order of an epoch follows from the seed and the epoch, for any number of ranks. Ranks that
    need the same items read them once between them. A stream fails alone: its session goes on.
    Thread: the session's; with a progress thread, the one that takes the first batch.
    """

    def __init__(self, session: Group, options: dict[str, Any],
                 generator: Callable[..., Any] | None, decode: Decode | None) -> None:
        self._session = session
        self._options = options
        self._generator = generator
        self._decode = decode
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
        self._batch = Batch(lease, self._options["uri"].startswith("mmap:"), self._decode)
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

    parsed = options.get("format") in _PARSED_FORMATS

    def check() -> Any:
        checked.update(first=session.rank, step=session.size)
        native = {**options, "format": "index"} if parsed else options
        checked.update(_sluice.check_stream_options(native))
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
        if not parsed:
            return None
        from ._shard_formats import find_index
        return find_index(session, options["format"], checked)

    answers = session._exchange("stream", check)
    decode = None
    if any(answers):
        from ._shard_formats import decoder_of
        decode = decoder_of(session.rank, answers)
    return Stream(session, checked, generator, decode)
