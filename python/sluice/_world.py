"""Worlds: jobs that are launched apart meet, and make sessions of those that are there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Union

from . import _bootstrap, _options, _sluice
from ._errors import InvalidSpec
from ._session import Member, Session

Roles = Union[Mapping[str, int], Iterable[str], None]


class World:
    """One process's membership of a world. It outlives sessions, of which each is an epoch.

    `World.join` makes it. Thread: any, one call at a time.
    """

    def __init__(self, native: _sluice.World, role: str, rank: int, size: int,
                 roles: list[tuple[str, int]]) -> None:
        self._native = native
        self._role = role
        self._rank = rank
        self._size = size
        self._roles = roles
        self._session: Session | None = None

    @classmethod
    def join(cls, url: str | None = None, *, role: str | None = None, token: str | None = None,
             token_file: str | None = None, roles: Roles = None, rank: int | None = None,
             size: int | None = None, name: str | None = None, serve: bool | None = None,
             timeout: float | None = None, store_timeout: float = 300.0, lease: float = 10.0,
             wires: str | None = None, bind: str | None = None) -> World:
        """Registers this process. Waits for the store, and for no other member.

        `url`: where the store is, "tcp://HOST:PORT". Rank 0 of the first role serves it, if nobody
        does and HOST is its own. `roles`: all roles in one order on all members, with their sizes
        or without. `rank` and `size` of this role come from the launcher's environment. What is
        not given comes from SLUICE_WORLD, SLUICE_ROLE, SLUICE_ROLES, SLUICE_TOKEN and the others
        of docs/joining.md. Times are in seconds; no `timeout`: waits for members for ever.

        InvalidSpec: an argument or a variable. PeerLost or Timeout: no store. Disagreement:
        another member declares other roles, or another process is this member.
        """
        url = url or os.environ.get("SLUICE_WORLD") or ""
        role = role or os.environ.get("SLUICE_ROLE") or "member"
        rank = _bootstrap.rank_from_environment() if rank is None else rank
        size = _bootstrap.size_from_environment() if size is None else size
        if rank is None or size is None:
            raise InvalidSpec("which member this is, nobody says: give rank= and size=, or set "
                              "SLUICE_RANK and SLUICE_SIZE")
        _bootstrap.check_rank(rank, size)
        declared = _declared(roles, role, size)
        if not token and not token_file:
            token = os.environ.get("SLUICE_TOKEN")
            token_file = os.environ.get("SLUICE_TOKEN_FILE")
        if not url:
            raise InvalidSpec("where the world meets, nobody says: give its url, or set "
                              "SLUICE_WORLD=tcp://HOST:PORT")
        native = _sluice.World.join(
            store=url, token=token or "", token_file=token_file or "",
            name=name or os.environ.get("SLUICE_WORLD_NAME") or "sluice", role=role, rank=rank,
            size=size, roles=declared, serve=serve, timeout=timeout, store_timeout=store_timeout,
            lease=lease, wires=wires or os.environ.get("SLUICE_WIRES") or "auto",
            bind=bind or os.environ.get("SLUICE_BIND") or "")
        return cls(native, role, rank, size, declared)

    @property
    def role(self) -> str:
        return self._role

    @property
    def rank(self) -> int:
        """Of this member in its role."""
        return self._rank

    @property
    def size(self) -> int:
        """How many members this role has."""
        return self._size

    @property
    def epoch(self) -> int:
        """The number of this member's last epoch, equal on all its members; 0: none yet."""
        return int(self._native.epoch)

    @property
    def store_address(self) -> str:
        return str(self._native.store_address)

    def members(self) -> list[Member]:
        """Those that have come and have not left. Asks the store."""
        return [Member(**member) for member in self._native.members()]

    def missing(self) -> list[str]:
        """Those that are waited for, such as "server 1". Asks the store."""
        return list(self._native.missing())

    def joiners(self) -> list[Member]:
        """Members that take part in the next epoch, and not in this one. Asks the store."""
        return [Member(**member) for member in self._native.joiners()]

    def wait_for_all(self, timeout: float | None = None) -> None:
        """Waits until nobody is missing. Timeout names who has not come."""
        self._native.wait_for_all(timeout)

    def session(self, roles: Iterable[str] | None = None, *, min: Mapping[str, int] | None = None,
                timeout: float | None = None, **options: Any) -> Session:
        """Collective among those present; blocks. The next epoch, and its session.

        `min`: how many members of a role are enough; of other roles all have to be there. `roles`:
        checked against those that were declared. `options`: as Session.from_env has them.
        Close this world's session before, also where it has failed. Ranks of a DTensor's mesh are
        ranks of this member's role.

        Timeout names members that have not come. PeerLost: one was lost meanwhile.
        """
        known = [name for name, _ in self._roles]
        if roles is not None and list(roles) != known:
            raise InvalidSpec(f"roles are {list(roles)}; this world was joined with {known}")
        options = _options.check(options, _options.SESSION)
        at_least = list((min or {}).items())
        for name, _ in at_least:
            if name not in known:
                raise InvalidSpec(f"min has role '{name}'; this world has {known}")
        if self._session is not None and not self._session.closed:
            raise InvalidSpec(f"the session of epoch {self.epoch} is open; close it before the "
                              "next one")
        native = self._native.session(True, at_least, timeout, options)
        members = [Member(**member) for member in self._native.epoch_members()]
        self._session = Session(native, members=members, epoch=self.epoch,
                                rank_of=_RanksOfRole(members, self._role, self.epoch))
        return self._session

    def end_epoch(self, after_version: int) -> None:
        """Ends this epoch for all its members once they have run `after_version`.

        The word ends nothing by itself: members ask by `epoch_ends_after` between versions.
        """
        self._native.end_epoch(after_version)

    def epoch_ends_after(self) -> int | None:
        """The version that `end_epoch` has named; None: nobody has called it. Asks the store."""
        return self._native.epoch_ends_after()

    def close(self) -> None:
        """Says farewell: this member is no longer missed. Sessions stay."""
        self._native.close()

    def __enter__(self) -> World:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._session is not None:
            self._session._close_after(kind is not None)
        self.close()

    def __repr__(self) -> str:
        return f"<sluice.World, {self._role} {self._rank} of {self._size}>"


def _declared(roles: Roles, role: str, size: int) -> list[tuple[str, int]]:
    if roles is None:
        text = os.environ.get("SLUICE_ROLES")
        roles = _read_roles(text) if text else {role: size}
    sizes = dict(roles) if isinstance(roles, Mapping) else {name: 0 for name in roles}
    if role not in sizes:
        raise InvalidSpec(f"role is '{role}', and roles are {list(sizes)}")
    for name, count in sizes.items():
        if not isinstance(count, int) or count < 0:
            raise InvalidSpec(f"roles says {count!r} members of '{name}'")
    sizes[role] = sizes[role] or size
    return list(sizes.items())


def _read_roles(text: str) -> dict[str, int]:
    sizes = {}
    for part in text.split(","):
        name, _, count = part.strip().partition(":")
        if not name or (count and not count.isdigit()):
            raise InvalidSpec(f"SLUICE_ROLES is '{text}'; it has to be as trainer:2,server:4")
        sizes[name] = int(count or 0)
    return sizes


class _RanksOfRole:
    """Session ranks of the members of one role."""

    def __init__(self, members: list[Member], role: str, epoch: int) -> None:
        self._ranks = {member.rank: i for i, member in enumerate(members) if member.role == role}
        self._role = role
        self._epoch = epoch

    def __call__(self, job_rank: int) -> int:
        rank = self._ranks.get(job_rank)
        if rank is None:
            raise InvalidSpec(f"{self._role} {job_rank} takes no part in epoch {self._epoch}")
        return rank
