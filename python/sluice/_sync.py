"""One call that brings a state dict to another: planned once, and again when something changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ._errors import InvalidSpec
from ._group import Group
from ._halves import Halves, read_halves
from ._same import Seen, memories_of, storages_of
from ._state import is_captured, state_dict_of
from ._streams import Places, Stream, handle_of
from ._transfer import Renames, Run, Transfer, _rename_map, _version_number, connect_halves

# Plans that a session keeps for `sync`. The one that was used longest ago goes first.
_PLANS_KEPT = 8


@dataclass
class _Plan:
    transfer: Transfer
    signature: Any
    views: list[Any]
    aliases: dict[str, str]
    renames: Renames = None
    #: Both sides of the call that gave `views`, where they can be recognised.
    seen: tuple[Seen, Seen] | None = None

    def keeps(self, src: Any, dst: Any, rename: Renames) -> list[Any] | None:
        """The tensors, if they are those of this plan by all that can be told quickly."""
        if self.seen is None or rename != self.renames:
            return None
        sources = self.seen[0].keeps(src)
        if sources is None:
            return None
        targets = self.seen[1].keeps(dst)
        return None if targets is None else [*sources, *targets]

    def note(self, src: Any, dst: Any, rename: Renames) -> None:
        """The next call with these is to be recognised."""
        self.seen = None
        if rename is not None and not isinstance(rename, dict):
            return
        sides = Seen.of(src), Seen.of(dst)
        if sides[0] is not None and sides[1] is not None:
            self.seen = sides[0], sides[1]
            self.renames = None if rename is None else dict(rename)


class _Plans:
    """The plans of a session. Their numbers, and the order of their use, are equal on all ranks."""

    def __init__(self) -> None:
        self.plans: OrderedDict[int, _Plan] = OrderedDict()
        self._next = 0

    def find(self, signature: Any) -> list[int]:
        """Which plans have this signature, by their places in the order of numbers.

        There may be several: they differ on other ranks.
        """
        return [i for i, number in enumerate(sorted(self.plans))
                if self.plans[number].signature == signature]

    def at(self, place: int) -> _Plan:
        return self.plans[sorted(self.plans)[place]]

    def use(self, place: int) -> _Plan:
        number = sorted(self.plans)[place]
        self.plans.move_to_end(number)
        return self.plans[number]

    def add(self, plan: _Plan) -> None:
        """Collective."""
        self.plans[self._next] = plan
        self._next += 1
        while len(self.plans) > _PLANS_KEPT:
            _, oldest = self.plans.popitem(last=False)
            oldest.transfer.drop()


def sync(src: Any = None, dst: Any = None, *, session: Group, rename: Renames = None,
         ignore_unused: bool = False, version: int | str | None = None,
         timeout: float | None = None, progress: bool = True, stream: Stream = None) -> None:
    """Collective; blocks. Carries `src` into `dst`: a transfer, its run, and the wait for it.

    Takes what `Session.transfer` takes. The plan is kept with the session: the next call with equal
    names, shapes, dtypes and layouts uses it again, also where memory is other memory. Ranks agree
    on that by a number each. So a change on one rank makes a new plan on all of them. Eight plans
    are kept. `ignore_unused`: sources that nobody asks for are no error. Memory is referred to
    until the run is over, and not by plans. During the call no other thread may give a tensor other
    memory.

    Errors are those of `Session.transfer` and `Run.wait`, on all ranks. No other run may be in
    flight where a plan is made. `progress`: a first call shows its progress in a terminal.
    `stream`: as in `Transfer.start`.
    """
    handle_of(stream)
    if session._synced is None:
        session._synced = _Plans()
    plans: _Plans = session._synced
    call = _Call(session, plans, bool(ignore_unused))
    call.read(src, dst, rename, version)
    fitting = call.fitting
    for vote in session._vote("sync", fitting):
        fitting &= vote
    first = fitting == 0
    if first:
        plan = call.make_plan()
    else:
        plan = plans.use((fitting & -fitting).bit_length() - 1)
    try:
        call.start(plan, stream).wait(timeout, progress=first and progress and session.rank == 0)
    except BaseException:
        call.keep_memory()
        raise


class _Call:
    """What one call gives, and which plans fit it on this rank."""

    def __init__(self, session: Group, plans: _Plans, ignore_unused: bool) -> None:
        self._session = session
        self._ignore_unused = ignore_unused
        self._plans = plans
        self._halves = Halves()
        self._renames: dict[str, str] = {}
        self._aliases: dict[str, str] = {}
        self._finish: Callable[[], None] | None = None
        self._signature: Any = None
        self._given: tuple[Any, Any, Renames] = (None, None, None)
        self._failure: Exception | None = None
        self.fitting = 0  # a bit for each plan that fits on this rank
        self.version: int | None = None
        self.keep: list[Any] = []  # refers to the memory
        self._tensors: list[Any] = []  # that may be given other memory

    def read(self, src: Any, dst: Any, rename: Renames, version: int | str | None) -> None:
        """What is wrong is kept for `make_plan`, which every rank calls where one finds no plan."""
        try:
            self.version = _version_number(version)
            self._given = (state_dict_of(src), state_dict_of(dst), rename)
            if not self._recognise():
                self._read()
        except Exception as error:
            self._failure = error
            self.fitting = 0

    def _recognise(self) -> bool:
        """Whether this call is as one before, so that nothing has to be read."""
        plans = self._plans
        for last in reversed(plans.plans.values()):
            keep = last.keeps(*self._given)
            if keep is None or last.signature[0] != self._ignore_unused:
                continue
            fitting = 0
            for place in plans.find(last.signature):
                plan = plans.at(place)
                if plan is not last and plan.views != last.views:
                    return False
                _check_version(plan, self.version)
                fitting |= 1 << place
            self.fitting, self._aliases = fitting, last.aliases
            self.keep, self._tensors = [keep], keep
            if is_captured(self._given[1]):
                self._finish = self._given[1].finish
            return True
        return False

    def _read(self) -> None:
        src, dst, rename = self._given
        self._halves = halves = read_halves(self._session, src, dst, windows=None)
        self.keep, self._tensors = [halves], []
        self._aliases, self._finish = halves.aliases, halves.finish
        self._renames = {**_rename_map(rename, halves.targets), **halves.renames}
        if (name := halves.first_without_memory()) is not None:
            raise InvalidSpec(f"destination '{name}' has no memory (it is on meta, was freed, or "
                              "has no view): give it memory before, or use "
                              "session.transfer(late=True)", tensor=name)
        self._signature = _signature(halves, self._renames, self._ignore_unused)
        for place in self._plans.find(self._signature):
            plan = self._plans.at(place)
            _check_version(plan, self.version)
            views = _views(halves)
            if views != plan.views:
                plan.transfer._native.rebind(*halves.bindings())
                plan.transfer._native.disown()
                plan.views = views
            plan.aliases = self._aliases
            plan.note(*self._given)
            self.fitting |= 1 << place

    def make_plan(self) -> _Plan:
        """Collective; blocks. A plan for what the ranks have given, or what is wrong with that."""
        if self._failure is None and self._signature is None:
            try:
                self._read()  # another rank has given something else
            except Exception as error:
                self._failure = error
        failure, self._failure = self._failure, None
        try:
            transfer = connect_halves(self._session, self._halves, self._renames, failure,
                                      ignore_unused=self._ignore_unused)
        finally:
            del failure  # its traceback has this frame
        transfer._let_go()
        plan = _Plan(transfer, self._signature, _views(self._halves), self._aliases)
        plan.note(*self._given)
        self._plans.add(plan)
        return plan

    def keep_memory(self) -> None:
        """For a run that may go on after the call, where tensors may be given other memory."""
        self.keep += storages_of(self._tensors)

    def start(self, plan: _Plan, stream: Stream) -> Run:
        """Collective. The run of a plan that fits on all ranks."""
        transfer = plan.transfer
        transfer._halves = Halves(aliases=self._aliases, finish=self._finish)
        try:
            if self._session._native.gpu is None:
                places = Places(())
            elif self._tensors:
                places = Places(plan.views, memories_of(self._tensors))
            else:
                places = self._halves.places()
            return transfer._begin(self.version, stream, False, places, keep=self.keep)
        finally:
            transfer._halves = Halves(aliases=self._aliases)


def _signature(halves: Halves, renames: dict[str, str], ignore_unused: bool) -> Any:
    return (ignore_unused, tuple(entry.signature for entry in halves.sources),
            tuple(entry.signature for entry in halves.targets), tuple(sorted(renames.items())))


def _views(halves: Halves) -> list[Any]:
    return [entry.native_view for entry in (*halves.sources, *halves.targets)]


def _check_version(plan: _Plan, version: int | None) -> None:
    before = plan.transfer.version
    if version is not None and before is not None and version <= before:
        raise InvalidSpec(f"version {version} is to follow version {before}")
