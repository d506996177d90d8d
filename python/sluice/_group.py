"""The group of ranks below a session: what ranks tell each other, and which runs are in flight."""

from __future__ import annotations

import ctypes
import json
import time
from typing import TYPE_CHECKING, Any, Callable, cast

from . import _sluice
from ._errors import Code, Disagreement, Error, InvalidSpec, Unsupported

if TYPE_CHECKING:
    from ._options import Metrics

_HOST = 1  # DLPack's kCPU

#: Calls in which ranks vote. A vote carries its call's place here, as votes of other calls meet it
#: where ranks differ.
_CALLS = ("from_env", "sync", "load", "save", "allocate", "share", "checksums", "stream",
          "Stream.load_state_dict", "Stream.close", "trace", "the end of trace", "World.versions",
          "a round of World.versions", "a batch of weights", "the end of a version")
_CODES = {call: code for code, call in enumerate(_CALLS)}
_BALLOT = "sluice.ballot"


def host_view(address: int, shape: tuple[int, ...], dtype: str) -> tuple[Any, ...]:
    """The extension's view of dense host memory."""
    return (address, shape, None, dtype, _HOST, 0)


class Ballot:
    """An all-gather of two numbers of each rank: of its call, and what it votes for.

    Made by the first vote; thread: the session's.
    """

    def __init__(self, native: _sluice.Session) -> None:
        size, rank = native.size, native.rank
        self._own = (ctypes.c_int64 * 2)()
        self._all = (ctypes.c_int64 * (2 * size))()
        ranks = list(range(size))
        own_view = host_view(ctypes.addressof(self._own), (2,), "i64")
        all_view = host_view(ctypes.addressof(self._all), (2 * size,), "i64")
        # A run that Ctrl-C has left alone still goes into them, whoever has let go of the ballot.
        source = (_BALLOT, (2 * size,), "i64", _sluice.Layout([size], ranks, ["S(0)"]), own_view,
                  None, self._own)
        target = (_BALLOT, (2 * size,), "i64", _sluice.Layout([size], ranks, ["R"]), all_view,
                  None, self._all)
        self._size = size
        self._last: _sluice.Run | None = None  # a vote that a Ctrl-C has left in flight
        self._connection = native.connect([source], [target], priority=0)

    def vote(self, call: str, number: int) -> list[int]:
        """Collective; blocks. `begin` and `end`."""
        self.begin(call, number)
        return self.end(call)

    def begin(self, call: str, number: int) -> _sluice.Run:
        """Collective; does not block. A vote, whose outcome `end` has once the run is done."""
        if self._last is not None:
            self._last.wait()
        self._own[0] = _CODES[call]
        self._own[1] = number
        self._last = self._connection.start()
        return self._last

    def end(self, call: str) -> list[int]:
        """Waits. The numbers of all ranks, by rank.

        Disagreement, on all ranks: `call` is another one on some.
        """
        if self._last is not None:
            self._last.wait()
        self._last = None
        both = self._all[:]
        codes = both[::2]
        if codes.count(_CODES[call]) < self._size:
            raise other_calls([_CALLS[each] for each in codes])
        return both[1::2]


class Group:
    """A session as the modules below it see it, which import this one and no session.

    Thread: the session's.
    """

    def __init__(self, native: _sluice.Session, *, epoch: int = 0,
                 rank_of: Callable[[int], int] | None = None) -> None:
        self._native = native
        self._rank = int(native.rank)
        self._size = int(native.size)
        self._epoch = epoch
        self._rank_of = rank_of
        self._ballot: Ballot | None = None
        self._in_flight: dict[int, Any] = {}  # of _transfer, by the run's number
        self._synced: Any = None  # of _sync
        self._told_of_host = False  # by Transfer, in a warning
        self._say: Callable[[str], None] | None = None  # of a world, to those who look at it
        self._runs = 0
        self._run_seconds = 0.0
        self._sent_bytes = 0
        self._received_bytes = 0
        self._exported = False  # by `prometheus`
        self._snapshot: dict[str, Any] = {}
        self._snapshot_time = 0.0

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def size(self) -> int:
        return self._size

    def _vote(self, call: str, number: int) -> list[int]:
        """Collective; blocks. The numbers of all ranks, by rank.

        `call`: one of _CALLS. Disagreement, on all ranks: other ranks make another call. Any other
        error is the session's.
        """
        if self._size == 1:
            self._native.poll()
            return [number]
        return self._made_ballot(call).vote(call, number)

    async def _vote_awaited(self, call: str, number: int) -> list[int]:
        """As `_vote`, for asyncio: other tasks run meanwhile, which leave the session alone."""
        if self._size == 1:
            return self._vote(call, number)
        import asyncio  # whoever awaits has it already
        ballot = self._made_ballot(call)
        run = ballot.begin(call, number)
        pause = 0.0
        while not run.wait(0):
            await asyncio.sleep(pause)
            pause = min(0.005, pause + 0.0001)
        return ballot.end(call)

    def _made_ballot(self, call: str) -> Ballot:
        if self._ballot is None:
            try:
                self._ballot = Ballot(self._native)
            except InvalidSpec as error:
                raise met_ballot(error, self._rank, call) or error from None
        return self._ballot

    def _exchange(self, call: str, make: Callable[[], Any]) -> list[Any]:
        """Collective; blocks. The values that `make` returns, by rank; each has to fit into JSON.

        Where `make` raises on a rank, every rank raises: this one what `make` raised, the others
        InvalidSpec or Unsupported, which names the rank and has the text. `call` and Disagreement:
        as in `_vote`.
        """
        mine: dict[str, Any] = {}
        failure: Exception | None = None
        try:
            mine["value"] = make()
            text = json.dumps(mine)
        except Exception as error:
            failure = error
            text = json.dumps({"error": described(error)})
        try:
            try:
                gathered = self._all_gather(call, text.encode())
            except Disagreement as error:
                raise error from failure
            if failure is not None:
                raise failure
        finally:
            del failure  # its traceback has this frame
        answers = [json.loads(answer) for answer in gathered]
        errors = [(rank, answer["error"])
                  for rank, answer in enumerate(answers) if "error" in answer]
        if errors:
            raise error_told(errors, f"{call}: ")
        return [answer["value"] for answer in answers]

    def _all_gather(self, call: str, payload: bytes, *, only_on: int | None = None) -> list[bytes]:
        """Collective; blocks. The bytes of all ranks, by rank. No run may be in flight.

        `call` and Disagreement: as in `_vote`. `only_on`: the one rank that gets them; the others
        get no more than their own.
        """
        sizes = self._vote(call, len(payload))
        native = self._native
        if native.size == 1:
            return [payload]
        ranks = list(range(native.size))
        gets_all = only_on in (None, native.rank)
        buffers = [ctypes.create_string_buffer(max(n, 1)) for n in (sizes if gets_all else ())]
        own = ctypes.create_string_buffer(payload, max(len(payload), 1))
        if only_on is not None:
            ranks = [only_on]
        everywhere = _sluice.Layout([len(ranks)], ranks, ["R"])
        sources = []
        if payload:
            here = _sluice.Layout([1], [native.rank], ["R"])
            own_view = host_view(ctypes.addressof(own), (len(payload),), "u8")
            sources.append((f"blob.{native.rank}", (len(payload),), "u8", here, own_view, None,
                            own))
        targets = [
            (f"blob.{rank}", (n,), "u8", everywhere,
             host_view(ctypes.addressof(buffers[rank]), (n,), "u8"), None, buffers[rank])
            for rank, n in enumerate(sizes) if n and gets_all
        ]
        if not any(sizes):
            return [b""] * native.size
        connection = native.connect(sources, targets, priority=0)
        connection.start().wait()
        connection.drop()
        if not gets_all:
            return [payload if rank == native.rank else b"" for rank in range(native.size)]
        return [buffer.raw[:n] for buffer, n in zip(buffers, sizes)]

    def wires(self) -> list[dict[str, Any]]:
        """The wires that carry bytes, as `report` says: one entry for each other rank."""
        return [dict(wire) for wire in self._native.wires()]

    def metrics(self) -> Metrics:
        """Counters of this rank since the session began, or since `reset_metrics`."""
        values = {"rank": self._rank, "size": self._size, "epoch": self._epoch, **self._counted(),
                  **self._native.counters()}
        self._snapshot = values
        self._snapshot_time = time.monotonic()
        return cast("Metrics", dict(values))

    def _counted(self) -> dict[str, Any]:
        """The counters that are Python's. Thread: any."""
        return {"runs": self._runs, "run_seconds": self._run_seconds,
                "runs_in_flight": len(self._in_flight), "sent_bytes": self._sent_bytes,
                "received_bytes": self._received_bytes}

    def reset_metrics(self) -> None:
        """Counts from now on."""
        self._native.reset_counters()
        self._runs = 0
        self._run_seconds = 0.0
        self._sent_bytes = self._received_bytes = 0

    def _prune(self) -> None:
        """Lets go the memory of runs that are over and that nobody waits for."""
        for flight in list(self._in_flight.values()):
            if flight.native.is_done():
                try:
                    flight.step(self, 0)
                except Error:
                    pass  # whoever waits for the run gets it

    def _take_events(self) -> None:
        """Hands the native session's events to their runs."""
        while (event := self._native.next_event()) is not None:
            kind, number, tensor, _ = event
            flight = self._in_flight.get(number)
            if flight is not None:
                flight.take(kind, tensor)

    def _note(self, flight: Any, failed: bool) -> None:
        """A run is over."""
        self._runs += 1
        seconds = time.monotonic() - flight.begin
        self._run_seconds += seconds
        sent, received = flight.bytes_moved
        if not failed:
            self._sent_bytes += sent
            self._received_bytes += received
        if self._exported:
            self.metrics()
        if self._say is not None:
            self._say(json.dumps({"version": flight.version, "sent": sent, "received": received,
                                  "runs": self._runs, "at": time.time(), "seconds": seconds}))


def other_calls(calls: list[str]) -> Disagreement:
    """What ranks hear that make these calls, by rank. The first rank of each call is named."""
    return _different([(calls.index(call), call) for call in dict.fromkeys(calls)])


def _different(calls: list[tuple[int, str]], more: str = "") -> Disagreement:
    told = ", ".join(f"rank {rank} {call}" for rank, call in calls)
    return Disagreement(f"ranks call different things: {told}{more}: all ranks make the same calls "
                        "in the same order", ranks=[rank for rank, _ in calls])


def met_ballot(error: Error, rank: int, call: str) -> Disagreement | None:
    """What it means that tensors of a transfer have met a ballot: that calls differ."""
    if error.tensor != _BALLOT:
        return None
    other = "transfer" if call != "transfer" else "a call such as sync, load or save"
    return _different([(rank, call)], f", another rank {other}")


Description = tuple[str, "str | None", int]


def described(error: BaseException) -> Description:
    """The text of an exception for other ranks, the tensor that it is about, and its code."""
    # An attribute of others may be anything, such as a tensor itself.
    tensor = error.tensor if isinstance(error, Error) else None
    code = Code.UNIMPLEMENTED if isinstance(error, Unsupported) else Code.INVALID_ARGUMENT
    return describe(error), tensor and _printable(tensor), int(code)


def error_told(errors: list[tuple[int, Description]], before: str = "") -> Error:
    """The error of other ranks, each with its description, as this rank raises it."""
    kinds = {code for _, (*_, code) in errors}
    kind = Unsupported if kinds == {Code.UNIMPLEMENTED} else InvalidSpec
    return kind(before + "; ".join(f"rank {rank}: {text}" for rank, (text, *_) in errors),
                ranks=tuple(rank for rank, _ in errors), tensor=errors[0][1][1])


def describe(error: BaseException) -> str:
    """The text of an exception for other ranks: with its type, where it is not one of Sluice's."""
    text = _printable(str(error))
    if type(error).__module__.startswith("sluice") and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _printable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
