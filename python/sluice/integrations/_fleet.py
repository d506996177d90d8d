"""Fleets: senders and receivers of weights meet in a world that one of the senders serves."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from .. import _bootstrap, _sluice
from .._errors import Disagreement, Error, InvalidSpec
from .._versions import Carry, Versions
from .._world import World

if TYPE_CHECKING:
    from .._options import SessionOptions
    from .._session import Session


#: How many receivers a fleet may have, where the store gives their ranks.
RECEIVERS_MAX = 1 << 14

# So long a member waits for the others after one was lost: longer than a dead one is missed.
_RECOVER_SECONDS = 15.0


@dataclass(frozen=True)
class Card:
    """Says where a fleet meets. A host carries it as JSON; whoever can read it can join.

    `urls`: the store, as different machines may reach it. `token`: a random secret.
    """

    urls: list[str]
    token: str = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        return {"urls": self.urls, "token": self.token, "sluice": _sluice.version()}

    @classmethod
    def from_json(cls, value: Any, sender: str) -> Card:
        """The card that `sender` has sent.

        InvalidSpec: it is no card; its content is not shown. Disagreement: its version of Sluice
        is another one.
        """
        if not isinstance(value, Mapping) or not isinstance(value.get("token"), str) or not (
                isinstance(value.get("urls"), list) and value["urls"]):
            raise InvalidSpec(f"what {sender} has sent is not where a fleet of Sluice meets: "
                              "it has no urls, or no token")
        if value.get("sluice") != _sluice.version():
            raise Disagreement(f"{sender} has Sluice {value.get('sluice')}, and this process has "
                               f"{_sluice.version()}: install the same version")
        return cls([str(url) for url in value["urls"]], value["token"])


class Meeting:
    """The store that a fleet meets at, in the process of its first sender."""

    def __init__(self, bind: str = "") -> None:
        self._server, urls, token = _bootstrap.serve_store(bind)
        self.card = Card(urls, token)

    def close(self) -> None:
        with suppress(Error):
            self._server.close()


class Fleet:
    """One process's place in a fleet, and the versions that the fleet carries. Thread: one.

    `sizes`: how many members each role has, in one order on all members; the first role sends. A
    rank of "any" is given by the store, and the role's size then says how many there can be.
    `timeout`: seconds that calls wait for other members. `options`: those of sessions. `name`:
    tells fleets apart that meet at one store.

    PeerLost: nobody listens where the card says. Other errors are those of `World.join`.
    """

    def __init__(self, card: Card, role: str, rank: int | str, sizes: Mapping[str, int], *,
                 timeout: float, options: Mapping[str, Any], bind: str = "",
                 name: str = "fleet") -> None:
        self._sender, *others = sizes
        # As many receivers as there are, and at least one, make an epoch.
        self._least = dict.fromkeys(others, 1)
        self._timeout = timeout
        self._options = cast("SessionOptions", {"patience": timeout, **options})
        self._versions: Versions | None = None
        self.world = World.join(_bootstrap.reachable(card.urls), token=card.token, role=role,
                                rank=rank, size=sizes[role], roles=sizes, serve=False, name=name,
                                timeout=timeout, bind=bind or None)

    @property
    def session(self) -> Session | None:
        """The one that is open, or None."""
        session = self.world._session
        return None if session is None or session.closed else session

    def session_of(self) -> Session:
        """Collective; blocks. A session of all members."""
        return self.world.session(**self._options)

    def next(self, carry: Carry, last: int = 0) -> int:
        """Collective; blocks. Carries the next version, and returns its number.

        `carry` is called in a session of all that are there, and once more in a new session where
        receivers fail meanwhile. `last`: the newest version that this member knows of. PeerLost: a
        sender is lost. Other errors are those of `carry`. After an error the next call begins anew.
        """
        if self._versions is None:
            self._versions = self.world._loop(Versions(
                self.world, carry, self._least, self._timeout, self._options,
                bears=self._bears))

        def carry_whole(session: Session, version: int, ignore_unused: bool) -> None:
            carry(session, version, ignore_unused)
            # Nobody goes on before all have it: those that had gone would not come to a second try.
            session._vote("the end of a version", version)

        self._versions._carry = carry_whole
        self._versions._join_timeout = self._timeout
        self._versions.last = max(last, self._versions.last)
        try:
            return next(self._versions)
        except BaseException:
            self._leave_loop()
            raise

    def _bears(self, session: Session, error: Exception) -> bool:
        """Whether a receiver has failed, and not this one: it leaves, and the others go on.

        A sender takes its sources with it, and the first one its store.
        """
        if not isinstance(error, Error) or session.rank in error.ranks:
            return False
        # Word of a receiver may come by way of a sender, which is named, too.
        if not any(0 <= rank < session.size and session.members[rank].role != self._sender
                   for rank in error.ranks):
            return False
        try:
            there = {(one.role, one.rank, one.pid) for one in self.world.members() if one.alive}
        except Error:
            return False
        if any((one.role, one.rank, one.pid) not in there
               for one in session.members if one.role == self._sender):
            return False
        if self._versions is not None:  # those that are left are there already
            self._versions._join_timeout = min(self._timeout, _RECOVER_SECONDS)
        return True

    def _leave_loop(self) -> None:
        self._versions = self.world._versions = None
        if (session := self.session) is not None:
            session._close_after(True)

    def close(self) -> None:
        """Leaves, without waiting for others."""
        self._leave_loop()
        with suppress(Error):
            self.world.close()
