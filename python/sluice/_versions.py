"""`World.versions`: a loop over a world's sessions, and over the versions that they carry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ._errors import Disagreement, InvalidSpec, PeerLost, Timeout
from ._log import inform, warn

if TYPE_CHECKING:
    from ._options import SessionOptions
    from ._session import Session
    from ._world import World

_ROUND = "a round of World.versions"  # of the vote before each version

# What a member votes for there, in place of the number of its last one.
_ENDS = -1  # it leaves
_JOINED = -2  # others wait for the next session

# So often a member that leaves looks whether there are others that have to hear it.
_LOOK_SECONDS = 10.0


#: Carries one version in a session, and is collective. The last argument: the session lacks a role.
Carry = Callable[["Session", int, bool], None]


class Versions(Iterator[int]):
    """One member's end of the loop. Thread: one.

    `bears`: whether the loop goes on in another session after an error of this one. None: after
    PeerLost, and after a Timeout where ranks wait without end.
    """

    def __init__(self, world: World, carry: Carry, least: Mapping[str, int] | None,
                 join_timeout: float | None, options: SessionOptions,
                 bears: Callable[[Session, Exception], bool] | None = None) -> None:
        self._world = world
        self._carry = carry
        self._least = least
        self._join_timeout = join_timeout
        self._options = options
        self._bears = bears or self._is_borne
        self._session: Session | None = None
        self.last = 0  #: the version that this member had last
        self._is_over = False

    def __next__(self) -> int:
        if not self._is_over and self._world._versions is not self:
            raise InvalidSpec("this loop is over: its world has another one, or has ended")
        while not self._is_over:
            session = self._session
            is_new = session is None
            if session is None:
                session = self._session = self._world.session(
                    min=self._least, join_timeout=self._join_timeout, **self._options)
            try:
                if is_new:
                    self._compare_least(session)
                version = self._agree(session)
                if version is not None:
                    # Nobody asks for the sources of a trainer whose servers are all gone.
                    is_whole = {each.role for each in session.members} >= set(self._world._roles)
                    self._carry(session, version, not is_whole)
                    self.last = version
                    return version
            except Exception as error:
                if not self._bears(session, error):
                    self._is_over, self._session = True, None
                    session._close_after(True)
                    raise
                self._recover(error)
        raise StopIteration

    def _is_borne(self, session: Session, error: Exception) -> bool:
        return isinstance(error, PeerLost) or (
            isinstance(error, Timeout) and self._options.get("patience") is None)

    @property
    def is_open(self) -> bool:
        return self._session is not None

    def leave(self) -> None:
        """Tells the others that this member has come to its end. Waits for them to hear it."""
        session, self._session = self._session, None
        if session is None or self._is_over or session.closed:
            return
        self._is_over = True
        while session is not None:
            try:
                session._vote(_ROUND, _ENDS)
            except (PeerLost, Timeout) as error:
                inform(f"{_first_line(error)}; the others hear in the next session that this "
                       "member leaves")
                session._close_after(True)
                session = self._session_of_hearers()
            else:
                session._close_after(True)
                return

    def _session_of_hearers(self) -> Session | None:
        """The next session, which the others wait for; None: there are no others."""
        while True:
            try:
                if len(self._world.members()) < 2:
                    return None
            except PeerLost:
                return None
            try:
                session = self._world.session(min=self._least, join_timeout=_LOOK_SECONDS,
                                              **self._options)
            except (PeerLost, Timeout):
                continue
            try:
                self._compare_least(session)
                return session
            except (PeerLost, Timeout):
                session._close_after(True)

    def _compare_least(self, session: Session) -> None:
        """Collective. Members with another `min` would wait for others that have ended."""
        given = session._exchange("World.versions", lambda: self._least and dict(self._least))
        for member, least in zip(session.members, given):
            if least != given[0]:
                raise Disagreement(f"{session.members[0].name} has min={given[0]} in "
                                   f"World.versions, and {member.name} has min={least}")

    def _agree(self, session: Session) -> int | None:
        """Collective. The next version's number; None: the session is over."""
        votes = session._vote(_ROUND, _JOINED if self._has_joiners(session) else self.last)
        leavers = [member for member, vote in zip(session.members, votes) if vote == _ENDS]
        self._is_over = bool(leavers) and not self._is_enough_without(session, leavers)
        if leavers or _JOINED in votes:
            self._session = None
            session.close()
            return None
        return max(votes) + 1

    def _has_joiners(self, session: Session) -> bool:
        """Asks the store, on one member. Where all members have to be there, nobody can join."""
        if self._least is None or session.rank != 0:
            return False
        try:
            return bool(self._world.joiners())
        except PeerLost:
            return False  # sessions go on without the store

    def _is_enough_without(self, session: Session, leavers: list[Any]) -> bool:
        if self._least is None:
            return False
        left = Counter(member.role for member in session.members)
        needed = {**left, **self._least}
        left.subtract(member.role for member in leavers)
        return all(left[role] >= count for role, count in needed.items())

    def _recover(self, error: Exception) -> None:
        """Has the next session made. Raises where memory of this one is still in use."""
        warn(f"{_first_line(error)}; the next session begins after version {self.last}")
        session, self._session = self._session, None
        if session is not None:
            session.close()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
