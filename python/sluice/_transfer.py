"""Transfers between two sets of tensors, and their runs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, Union
from weakref import proxy

from . import _sluice
from ._errors import Error, InvalidSpec, Timeout
from ._group import Group, described, met_ballot
from ._halves import Entry, Halves, as_views, read_halves
from ._log import caution
from ._progress import Display
from ._state import check_name
from ._streams import Order, Places, Stream, handle_of
from ._tables import Stats
from ._texts import INT64_MAX, check_names_map, listed
from ._watch import Watch

_OF_GPUS = ("nccl", "cuda_ipc")  # wires that take device memory
_PRIORITIES = 4  # kPriorityClasses of sluice/transfer.h

Renames = Union[Mapping[str, str], Callable[[str], str], None]
Windows = Union[Mapping[str, int], Callable[[str], "int | None"], None]


class Progress(NamedTuple):
    """How far a run is on this rank."""

    buckets: int
    buckets_total: int
    bytes: int  # that have moved on this rank, as the share of its buckets says
    bytes_total: int
    seconds: float  # since start


@dataclass(frozen=True)
class Event:
    """Something that a run says about one of its tensors, by the destination's name."""

    tensor: str


@dataclass(frozen=True)
class NeedsMemory(Event):
    """The tensor's destination has to be given, by `Run.supply`."""


@dataclass(frozen=True)
class TensorDone(Event):
    """This rank's part is done: a destination is complete, a source may change."""


class Transfer:
    """Tensors of the session's ranks, matched by name and planned once: see `Session.transfer`.

    Thread: the session's. Memory stays bound, and referred to, until `rebind` or `drop`.
    """

    def __init__(self, session: Group, native: _sluice.Connection, halves: Halves,
                 late: bool) -> None:
        self._session = session
        self._native = native
        self._names: list[str] = list(native.names())
        self._index = {name: i for i, name in enumerate(self._names)}
        stats = native.stats()
        self._bytes_moved = int(stats["sent_bytes"]), int(stats["received_bytes"])  # of each run
        self._halves = halves
        self._late = late
        self._watch = Watch([*halves.sources, *halves.targets])
        self._places: Places | None = None  # of what is bound, once it is asked for
        self._bound: list[_sluice.Mark] = []  # places in streams that the next run comes after

    @property
    def names(self) -> list[str]:
        """The tensors by their destinations' names, in the order of the plan."""
        return list(self._names)

    @property
    def stats(self) -> dict[str, Any]:
        """What this rank's part comes to: buckets, bytes sent, received and copied, and so on."""
        return Stats(self._native.stats())

    @property
    def version(self) -> int | None:
        """That of the newest run which had one, on this rank."""
        return self._native.version()

    @property
    def aliases(self) -> dict[str, str]:
        """Destinations that share the memory of another one: tied weights. They move once."""
        return dict(self._halves.aliases)

    def start(self, version: int | str | None = None, *, stream: Stream = None,
              events: bool = False) -> Run:
        """Collective; does not block. Begins a run of what is bound.

        `version`: what the caller calls the content; it has to grow. `events`: keep events for
        `Run.events`.

        `stream`: where a tensor of this rank is in device memory, the stream in whose order the run
        takes part. None: the current stream of PyTorch or CuPy, or else CUDA's default stream. The
        run comes after what the stream holds. What the stream gets after `wait` comes after the
        run. The stream that an array's interface names, and whoever made a DLPack tensor, come
        before in the same way. sluice.NO_STREAM: memory is ready now, and complete after `wait`.

        InvalidSpec, and nothing begins: a bound tensor was freed, moved or resized, or the version
        is no number or does not grow. Where it is a bound tensor, the other ranks get an error that
        names it, too. If the transfer has had a run before, this ends the session. So give other
        memory by `rebind` before.
        """
        number = _version_number(version)
        handle_of(stream)
        if (change := self._moved()) is not None:
            self._refuse(change)
        if self._places is None:
            self._places = self._halves.places(late=self._late and
                                               self._session._native.gpu is not None)
        return self._begin(number, stream, bool(events), self._places)

    def _moved(self) -> InvalidSpec | None:
        """Says which bound tensor was freed, moved or resized, or None."""
        for moved in self._halves.moved:
            if moved is not None and (change := moved()) is not None:
                return change
        return self._watch.changed()

    def _let_go(self) -> None:
        """Refers to no memory from now on, and does not keep its session, which may then keep it.

        Who starts a run keeps the memory, or binds other memory.
        """
        self._session = proxy(self._session)
        self._native.disown()
        self._halves = Halves(aliases=self._halves.aliases)
        self._watch = Watch([])
        self._places = None

    def _begin(self, version: int | None, stream: Stream, events: bool, places: Places,
               keep: Any = None) -> Run:
        session = self._session
        session._prune()
        order = Order(session._native, stream, places)
        order.begin(self._bound)
        native = self._native.start(stream=order.handle, events=events, late=self._late,
                                    version=version, keep=keep)
        self._bound = []
        order.record()
        if places.on_gpu:
            self._warn_of_host()
        flight = Flight(self, native, order, bool(events or self._late))
        session._in_flight[flight.number] = flight
        if session._say is not None:
            flight.version = self.version
        return Run(self, flight)

    def _warn_of_host(self) -> None:
        """Once a session: tensors of a GPU are slow without a transport that reaches them."""
        session = self._session
        if session._told_of_host or session._native.gpu is None:
            return
        session._told_of_host = True
        slow = [wire for wire in session.wires() if wire["wire"] not in _OF_GPUS]
        if slow and self.stats["sent_bytes"] + self.stats["received_bytes"]:
            caution(f"rank {session.rank}: device memory goes through the host to rank "
                    f"{slow[0]['rank']} ({slow[0]['wire']}), which is slow. Make the session with "
                    'transport="cuda_ipc" within a node, or "nccl"')

    def run(self, version: int | str | None = None, *, timeout: float | None = None,
            stream: Stream = None) -> None:
        """Collective; blocks. `start` and `Run.wait`."""
        self.start(version, stream=stream).wait(timeout)

    def rebind(self, src: Any = None, dst: Any = None, *, stream: Stream = None) -> None:
        """Other memory for tensors of this rank, by name, from the next run on.

        Takes what `Session.transfer` takes. Of each tensor the shape, dtype and layout stay as they
        were. All or none is bound: InvalidSpec names the tensor. `stream`: as in `start`. The next
        run comes after what this stream holds now, too.
        """
        handle_of(stream)
        halves = read_halves(self._session, src, dst, windows=None)
        sources = _same_specs(self._halves.sources, halves.sources, "source")
        targets = _same_specs(self._halves.targets, halves.targets, "destination")
        self._native.rebind(*halves.bindings())
        self._halves = Halves(sources, targets, self._halves.aliases, self._halves.renames,
                              halves.finish or self._halves.finish,
                              tuple(new or old for new, old in
                                    zip(halves.moved, self._halves.moved)))
        self._watch = Watch([*sources, *targets])
        self._places = None
        native = self._session._native
        order = Order(native, stream, halves.places())
        if order.handle is not None and native.gpu is not None:
            self._bound.append(native.mark(order.handle))

    def checksums(self, side: str) -> dict[str, int]:
        """Collective; blocks. A number for each tensor of `side`, "src" or "dst", on all ranks.

        The number depends on the whole tensor's elements and their places, and not on the layout.
        So equal numbers of both sides say that all bytes have come, where dtypes are equal. The
        replicas of a tensor are compared: DataLoss names ranks that differ. No run may be in
        flight. Unsupported: memory of a device, Partial placements.
        """
        from ._checksums import checksums
        return checksums(self._session, self._halves, side)

    def drop(self) -> None:
        """Collective; blocks. Ends the transfer, and lets go of memory. No run may be in flight."""
        self._native.drop()
        self._halves = Halves()
        self._places = None
        self._bound = []
        self._watch = Watch([])

    def __enter__(self) -> Transfer:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.drop()

    def __repr__(self) -> str:
        return f"<sluice.Transfer of {len(self._names)} tensors, rank {self._session.rank}>"

    def _refuse(self, change: InvalidSpec) -> NoReturn:
        # The others are in this run already, or will be. They hear of it as of wrong memory.
        failure = _of_rank(change, self._session.rank)
        cause: Error | None = None
        try:
            if self._session.size > 1:
                self._native.start(refusal=described(change)).wait()
        except Error as error:
            cause = error
        try:
            raise failure from cause
        finally:
            del cause, failure  # their tracebacks have this frame


def _version_number(version: int | str | None) -> int | None:
    try:
        number = None if version is None else int(version)
    except (TypeError, ValueError, OverflowError):
        raise InvalidSpec(f"version is {version!r}; it has to be a number") from None
    if number is not None and not -INT64_MAX - 1 <= number <= INT64_MAX:
        raise InvalidSpec(f"version is {number}, which 64 bits do not hold")
    return number


def _same_specs(bound: list[Entry], given: list[Entry], side: str) -> list[Entry]:
    entries = {entry.name: entry for entry in bound}
    for entry in given:
        old = entries.get(entry.name)
        if old is None:
            raise InvalidSpec(f"this rank has bound no {side} '{entry.name}'", tensor=entry.name)
        for what in ("shape", "dtype", "layout"):
            before, now = getattr(old, what), getattr(entry, what)
            if before != now:
                raise InvalidSpec(f"{side} '{entry.name}' was bound with {what} {before}, "
                                  f"and now has {now}", tensor=entry.name)
        entries[entry.name] = entry
    return [entries[entry.name] for entry in bound]


class Flight:
    """What a session keeps of a run until it is over, whoever has let go of the `Run`.

    It does not refer to the session, which is closed as soon as nobody else refers to it.
    """

    def __init__(self, transfer: Transfer, native: _sluice.Run, order: Order,
                 events: bool) -> None:
        self.native = native
        self.number = int(native.number)
        self.order = order
        self.names = transfer._names
        self.bytes_moved = transfer._bytes_moved
        self.events: deque[Event] | None = deque() if events else None
        self.whole: list[str] = []  # where there are events
        self.begin = time.monotonic()
        self.version: int | None = None  # where somebody is to be told
        self.over = False
        self._failure: BaseException | None = None  # of `_finish`
        self._ordered = False  # streams come after the run, which has ended well
        self._keep: list[Any] = [transfer._halves]
        self._finish = transfer._halves.finish

    def step(self, session: Group, timeout: float | None) -> bool:
        """Waits; True if the run is over. Then memory is let go."""
        end = None if timeout is None else time.monotonic() + timeout
        try:
            over = bool(self.native.wait(timeout))
            if over and not self._ordered:
                self._ordered = True
                self.order.end()
            pause = 0.0
            while over and not self.order.is_over:
                if end is not None and time.monotonic() >= end:
                    return False
                time.sleep(pause)
                pause = min(0.001, pause + 0.00002)
        except Error:
            self._end(session, failed=True)
            raise
        if over:
            self._end(session, failed=False)
        return over

    def take(self, kind: str, tensor: int) -> None:
        """An event of the native session that is about this run."""
        if self.events is None or kind == "failed":
            return
        name = self.names[tensor]
        if kind == "needs_memory":
            self.events.append(NeedsMemory(name))
        else:
            self.events.append(TensorDone(name))
            self.whole.append(name)

    def raise_failure(self) -> None:
        """How the run that is over has failed, to everyone who asks."""
        self.native.wait(0)
        failure = self._failure
        if failure is not None:
            self._failure = _without_frames(failure)
            try:
                raise failure
            finally:
                del failure  # its traceback has this frame

    def _end(self, session: Group, failed: bool) -> None:
        if self.over or not self.native.is_done():
            return
        self.over = True
        if self.events is not None:
            session._take_events()
        session._in_flight.pop(self.number, None)
        session._note(self, failed)
        self._keep = []
        finish, self._finish = self._finish, None
        if not failed and finish is not None:
            try:
                finish()
            except Exception as error:  # whoever waits for the run gets it
                own = error.__traceback__
                self._failure = error.with_traceback(own and own.tb_next)
                del own  # it has this frame
            except BaseException as error:
                self._failure = _without_frames(error)
                raise


def _without_frames(error: BaseException) -> BaseException:
    """The same exception again. The frames that the first one comes to refer to may refer to who
    keeps it."""
    try:
        again = copy(error)
    except Exception:
        return error
    return again.with_traceback(None)


class Run:
    """A run that `Transfer.start` has begun. It refers to all its memory until it is done.

    Thread: the session's; `done` may be asked from any.
    """

    def __init__(self, transfer: Transfer, flight: Flight) -> None:
        self._transfer = transfer
        self._session = transfer._session
        self._flight = flight
        self._native = flight.native
        self._finished_before = int(self._session._native.counters().get("buckets_finished", 0))

    @property
    def number(self) -> int:
        """From 1 on, equal on all ranks: what errors call the run."""
        return self._flight.number

    @property
    def done(self) -> bool:
        """True once `wait` would not wait. Does not make progress by itself. Thread: any."""
        if self._flight.over:
            return True
        return bool(self._native.is_done()) and self._flight.order.is_over

    def wait(self, timeout: float | None = None, *, progress: bool = False) -> None:
        """Blocks until this rank's part is done: destinations are complete, sources may change.

        Of a run in a stream, they are so for what the stream gets from now on. Memory of the host
        is complete in any case.

        Timeout after `timeout` seconds: the run goes on, and may be waited for again. Otherwise the
        error that ended the run. Ctrl-C ends the waiting, and not the run. `progress`: show it in
        the terminal.
        """
        if self._flight.over:
            self._flight.raise_failure()
        elif progress:
            self._wait_shown(timeout)
        elif not self._step(timeout):
            raise Timeout(f"run {self.number} is not done after {timeout} s; it goes on")

    def _wait_shown(self, timeout: float | None) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        total = self.progress.bytes_total
        with Display(f"sluice: run {self.number}", total) as display:
            while not self._step(0.2 if end is None else min(0.2, end - time.monotonic())):
                display.show(self.progress.bytes)
                if end is not None and time.monotonic() >= end:
                    raise Timeout(f"run {self.number} is not done after {timeout} s; it goes on")
            display.show(total)

    def _step(self, timeout: float | None) -> bool:
        over = self._flight.step(self._session, timeout)
        if over:
            self._flight.raise_failure()
        return over

    def __await__(self) -> Generator[Any, None, None]:
        """As `wait`, for asyncio: other tasks run meanwhile. In the session's thread."""
        import asyncio  # whoever awaits has it already
        pause = 0.0
        while not (self._flight.over or self._step(0)):
            yield from asyncio.sleep(pause).__await__()
            pause = min(0.005, pause + 0.0001)
        self._flight.raise_failure()

    def cancel(self) -> None:
        """Collective; does not block. Gives the run up: `wait` for it then raises Cancelled.

        What other ranks wait for is still carried out. Destinations without TensorDone are
        undefined.
        """
        self._native.cancel()

    @property
    def progress(self) -> Progress:
        """How far the run is. Where several runs are in flight, they count together."""
        stats = self._transfer._native.stats()
        buckets = int(stats.get("buckets", 0))
        total = int(stats.get("received_bytes", 0)) + int(stats.get("local_bytes", 0))
        total = total or int(stats.get("sent_bytes", 0))
        seconds = time.monotonic() - self._flight.begin
        if self._flight.over or self._native.is_done():
            return Progress(buckets, buckets, total, total, seconds)
        finished = int(self._session._native.counters().get("buckets_finished", 0))
        finished = max(0, min(buckets, finished - self._finished_before))
        share = finished / buckets if buckets else 0.0
        return Progress(finished, buckets, int(total * share), total, seconds)

    def events(self) -> Iterator[Event]:
        """What happens, until the run is done. Waits for the next event.

        Of a run that was started with events=True, or of a transfer with late=True. NeedsMemory
        has to be answered by `supply`, or the run waits. Raises the error that ended the run.
        """
        events = self._flight.events
        if events is None:
            raise InvalidSpec(f"run {self.number} was started without events=True")
        pause = 0.0
        while True:
            self._session._take_events()
            while events:
                yield events.popleft()
                self._session._take_events()
                pause = 0.0
            if self._flight.over:
                self._flight.raise_failure()
                return
            self._step(pause)
            pause = min(0.001, pause + 0.0001)

    @property
    def whole(self) -> list[str]:
        """The tensors of which this rank's part is done, also where the run has failed.

        Of a run with events: of others it is not known. Other destinations are then undefined.
        """
        if self._flight.events is None:
            raise InvalidSpec(f"run {self.number} was started without events=True")
        with suppress(Error):  # the session may be closed, and has taken all before
            self._session._take_events()
        return list(self._flight.whole)

    def supply(self, tensor: str, memory: Any, *, stream: Stream = None) -> None:
        """Destination memory for one tensor of a transfer with late=True, by its name.

        `memory`: this rank's local tensor; where the rank holds boxes, a list with one for each.
        `stream`: as in `Transfer.start`. Device memory is touched after what this stream holds now.
        InvalidSpec: it does not fit, and may be supplied again.
        """
        handle_of(stream)
        index = self._transfer._index.get(tensor)
        if index is None:
            raise InvalidSpec(f"run {self.number} has no tensor '{tensor}'", tensor=tensor)
        view, owner = as_views(memory, tensor, writable=True)
        memories = list(memory) if isinstance(memory, (list, tuple)) else [memory]
        self._flight.order.meet(Order(self._session._native, stream, Places([view], memories)))
        self._native.supply(index, view, owner)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.wait()

    def __repr__(self) -> str:
        state = "done" if self.done else "in flight"
        return f"<sluice.Run {self.number}, {state}>"


def connect(session: Group, src: Any, dst: Any, *, rename: Renames, window_of: Windows,
            late: bool, ignore_unused: bool, priority: int | None) -> Transfer:
    """`Session.transfer`. Where one rank finds something wrong, all ranks hear of it."""
    halves = Halves()
    renames: dict[str, str] = {}
    failure: Exception | None = None
    try:
        halves = read_halves(session, src, dst, windows=window_of)
        renames = _rename_map(rename, halves.targets)
        renames.update(halves.renames)
        if not late and (name := halves.first_without_memory()) is not None:
            raise InvalidSpec(f"tensor '{name}': its destination has no memory; give late=True "
                              "to supply it for each run", tensor=name)
    except Exception as error:
        failure = error
        halves = Halves()
    try:
        return connect_halves(session, halves, renames, failure, late=late,
                              ignore_unused=ignore_unused, priority=priority)
    finally:
        del failure  # its traceback has this frame


def connect_halves(session: Group, halves: Halves, renames: dict[str, str],
                   failure: Exception | None, *, late: bool = False, ignore_unused: bool = False,
                   priority: int | None = None) -> Transfer:
    """Collective. Plans what ranks have read. With a `failure`, every rank raises it."""
    sources: list[Any] = []
    targets: list[Any] = []
    if failure is None:
        try:
            sources = [entry.native for entry in halves.sources]
            targets = [entry.native for entry in halves.targets]
            for name in (*renames, *renames.values()):
                check_name(name)
            if priority is not None and (
                    not isinstance(priority, int) or not 0 <= priority < _PRIORITIES):
                raise InvalidSpec(f"priority is {priority!r}; it has to be 0 to 3, or None")
        except Exception as error:
            failure = error
    try:
        if failure is not None:
            halves, sources, targets = Halves(), [], []  # nothing is kept by the traceback
            session._native.refuse("Connect", described(failure))
        native = session._native.connect(
            sources, targets, renames, ignore_unused=bool(ignore_unused or halves.aliases),
            late_targets=bool(late), priority=priority)
    except Error as error:
        if isinstance(failure, Error):
            raise _of_rank(failure, session.rank) from error
        if failure is not None:
            raise error from failure
        if (other := met_ballot(error, session.rank, "transfer")) is not None:
            raise other from error
        if nones := _given_none(str(error), halves, renames):
            text = f"{error}; rank {session.rank} gives None for {nones}"
            raise type(error)(text, code=error.code, ranks=(*error.ranks, session.rank),
                              tensor=error.tensor) from None
        raise
    finally:
        del failure  # its traceback has this frame
    transfer = Transfer(session, native, halves, late)
    if not transfer.names:
        caution("no rank gives a tensor as src= or dst=, so nothing moves")
    return transfer


def _given_none(text: str, halves: Halves, renames: dict[str, str]) -> str:
    """The tensors that an error finds on one side alone, and that are None here on the other."""
    lacking, _, unused = text.partition("no target asks for source ")
    if "no rank has a source for target " not in lacking:
        lacking = ""
    found = [name for name in halves.sources_none if f"'{name}'" in lacking]
    found += [name for name in halves.targets_none if f"'{renames.get(name, name)}'" in unused]
    return listed([f"'{name}'" for name in found], 3)


def _of_rank(failure: Error, rank: int) -> Error:
    """The same, as the other ranks hear of it."""
    return type(failure)(f"rank {rank}: {failure}", code=failure.code, ranks=(rank,),
                         tensor=failure.tensor)


def _rename_map(rename: Renames, targets: Iterable[Entry]) -> dict[str, str]:
    check_names_map("rename", rename)
    if rename is None:
        return {}
    if isinstance(rename, Mapping):
        given = dict(rename)
        for target, source in given.items():
            if not isinstance(target, str) or not isinstance(source, str):
                raise InvalidSpec(f"rename has {target!r}: {source!r}; it maps names of "
                                  "destinations to names of sources")
        return given
    renames = {}
    for entry in targets:
        source = rename(entry.name)
        if not isinstance(source, str):
            raise InvalidSpec(f"rename('{entry.name}') gave {source!r}; it has to give the name of "
                              "a source", tensor=entry.name)
        if source != entry.name:
            renames[entry.name] = source
    return renames
