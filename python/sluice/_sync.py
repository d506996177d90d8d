"""One call that brings a state dict to another: planned once, and again when something changes."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _agree
from ._errors import InvalidSpec
from ._halves import Halves, read_halves
from ._transfer import Renames, Transfer, _rename_map, _version_number, connect_halves

if TYPE_CHECKING:
    from ._session import Session

# Plans that a session keeps for `sync`. The one that was used longest ago goes first.
_PLANS_KEPT = 8


@dataclass
class _Plan:
    transfer: Transfer
    signature: Any
    views: list[Any]


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


def sync(src: Any = None, dst: Any = None, *, session: Session, rename: Renames = None,
         version: int | str | None = None, timeout: float | None = None,
         progress: bool = True) -> None:
    """Collective; blocks. Carries `src` into `dst`: a transfer, its run, and the wait for it.

    Takes what `Session.transfer` takes. The plan is kept with the session: the next call with equal
    names, shapes, dtypes and layouts uses it again, also where memory is other memory. Ranks agree
    on that by a number each. So a change on one rank makes a new plan on all of them. Eight plans
    are kept. Memory is referred to until the call ends.

    Errors are those of `Session.transfer` and `Run.wait`, on all ranks. No other run may be in
    flight where a plan is made. `progress`: a first call shows its progress in a terminal.
    """
    if session._synced is None:
        session._synced = _Plans()
    plans: _Plans = session._synced
    halves = Halves()
    renames: dict[str, str] = {}
    fitting = 0  # a bit for each plan that fits on this rank
    wanted: int | None = None
    signature: Any = None
    failure: Exception | None = None
    try:
        wanted = _version_number(version)
        halves = read_halves(session, src, dst, windows=None)
        renames = {**_rename_map(rename, halves.targets), **halves.renames}
        if (name := halves.first_without_memory()) is not None:
            raise InvalidSpec(f"destination '{name}' has no memory", tensor=name)
        signature = _signature(halves, renames)
        for place in plans.find(signature):
            _bind(plans.at(place), halves, wanted)
            fitting |= 1 << place
    except Exception as error:
        failure = error
        fitting = 0
    for vote in _agree.vote(session, fitting):
        fitting &= vote
    first = fitting == 0
    if first:
        transfer = connect_halves(session, halves, renames, failure)
        plan = _Plan(transfer, signature, _views(halves))
        plans.add(plan)
    else:
        plan = plans.use((fitting & -fitting).bit_length() - 1)
    transfer = plan.transfer
    transfer._halves = halves
    try:
        run = transfer._begin(wanted, None, False)
        run.wait(timeout, progress=first and progress and session.rank == 0)
    finally:
        transfer._halves = Halves(aliases=halves.aliases)


def _signature(halves: Halves, renames: dict[str, str]) -> Any:
    return (tuple(entry.signature for entry in halves.sources),
            tuple(entry.signature for entry in halves.targets), tuple(sorted(renames.items())))


def _views(halves: Halves) -> list[Any]:
    return [entry.native_view for entry in (*halves.sources, *halves.targets)]


def _bind(plan: _Plan, halves: Halves, version: int | None) -> None:
    """Gives the plan the memory of now. An error leaves it as it was."""
    before = plan.transfer.version
    if version is not None and before is not None and version <= before:
        raise InvalidSpec(f"version {version} is to follow version {before}")
    views = _views(halves)
    if views == plan.views:
        return
    plan.transfer._native.rebind(*halves.bindings())
    plan.views = views
