"""Worlds: jobs that are launched apart meet, and make sessions of those that are there."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Union

from . import _bootstrap, _sluice
from ._errors import Error, InvalidSpec
from ._log import inform
from ._session import Member, Session
from ._texts import check_made, listed
from ._transfer import Renames
from ._versions import Versions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import SessionOptions

Roles = Union[Mapping[str, int], Iterable[str], None]


class World:
    """One process's membership of a world. It outlives sessions, of which each is an epoch.

    `World.join` makes it. Thread: any, one call at a time.
    """

    def __init__(self, native: Any = None) -> None:
        check_made(native, _sluice.World, "a World", "World.join(...)")
        self._native: _sluice.World = native
        self._role = str(native.role)
        self._rank = int(native.rank)
        self._size = int(native.size)
        self._roles = list(native.roles)
        self._session: Session | None = None
        self._versions: Versions | None = None

    @classmethod
    def join(cls, url: str | None = None, *, role: str | None = None,
             token: _bootstrap.Token = None, token_file: str | None = None, roles: Roles = None,
             rank: int | str | None = None, size: int | None = None, name: str | None = None,
             serve: bool | None = None, timeout: float | None = None,
             store_timeout: float | None = None, lease: float = 10.0, wires: str | None = None,
             bind: str | None = None) -> World:
        """Registers this process. Waits for the store, and for no other member.

        `url`: where the store is, "tcp://HOST:PORT". Rank 0 of the first role serves it, if nobody
        does and HOST is its own. `roles`: all roles in one order on all members, with their sizes
        or without. Name the role first that lives longest: its rank 0 takes the store with it.
        `rank` and `size` of this role come from the launcher. `rank="any"`: the store gives the
        lowest one that nobody has, and `size` is how many there can be. What is not given comes
        from the environment, as docs/joining.md says: SLUICE_WORLD, SLUICE_ROLE and others.

        `token`: a secret that all members know, or a function that returns one. `token_file`: where
        it is written. Times are in seconds. `timeout`: how long calls wait for members; None:
        SLUICE_WORLD_TIMEOUT, or no limit. `store_timeout`: how long to wait for the store; None:
        `timeout`, and at most 300.

        InvalidSpec: an argument or a variable; or another process is this member. PeerLost or
        Timeout: no store. Disagreement: another member declares other roles. Error: a wrong token.
        """
        token = _bootstrap.text_of(token)
        overrides: dict[str, Any] = {"lease": lease}
        for option, value in (("name", name), ("serve", serve), ("timeout", timeout),
                              ("store_timeout", store_timeout), ("wires", wires), ("bind", bind),
                              ("token", token), ("token_file", token_file)):
            if value not in (None, ""):
                overrides[option] = value
        variables = _identity(role, roles, rank, size)
        if url:
            variables["SLUICE_WORLD"] = url
        if token or token_file:
            variables.update(SLUICE_TOKEN="", SLUICE_TOKEN_FILE="")
        return cls(_sluice.World.from_environment(variables, **overrides))

    @property
    def role(self) -> str:
        return self._role

    @property
    def rank(self) -> int:
        """Of this member in its role. One that the store gave may be another one after a `session`
        that has waited for a store that was started anew.
        """
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
                join_timeout: float | None = None, **options: Unpack[SessionOptions]) -> Session:
        """Collective among those present; blocks. The next epoch, and its session.

        `min`: how many members of a role are enough; of other roles all have to be there. `roles`:
        checked against those that were declared. `join_timeout`: seconds to wait for members; None:
        as long as `join` was told. `options`: those of `SessionOptions`.
        Close this world's session before, also where it has failed. Ranks of a DTensor's mesh are
        ranks of this member's role.

        A store that is gone is waited for, too. At one that was started anew this member registers
        again, and epochs go on.

        Timeout names members that have not come. PeerLost: one was lost meanwhile.
        """
        known = self._roles
        if roles is not None and list(roles) != known:
            raise InvalidSpec(f"roles are {list(roles)}; this world was joined with {known}")
        checked = _sluice.check_session_options(options)
        if min is not None and not isinstance(min, Mapping):
            raise InvalidSpec(f"min is {min!r}; it has to say how many of which role")
        at_least = list((min or {}).items())
        for name, count in at_least:
            if name not in known:
                raise InvalidSpec(f"min has role '{name}'; this world has {known}")
            if type(count) is not int or not 0 <= count < 1 << 31:
                raise InvalidSpec(f"min says {count!r} members of '{name}'")
        if self._session is not None and not self._session.closed:
            raise InvalidSpec(f"the session of epoch {self.epoch} is open; close it before the "
                              "next one")
        try:
            native = self._native.session(epoch=True, at_least=at_least, timeout=join_timeout,
                                          options=checked)
        finally:
            self._rank = int(self._native.rank)
        members = [Member(**member) for member in self._native.epoch_members()]
        self._session = Session(native, members=members, epoch=self.epoch,
                                rank_of=_RanksOfRole(members, self._role, self.epoch))
        inform(f"epoch {self.epoch} of {listed([str(member) for member in members], 8)}")
        world = weakref.ref(self)  # which may end before its session

        def say(text: str) -> None:
            if (told := world()) is not None:
                with suppress(Error):
                    told._native.say(text)

        self._session._say = say
        return self._session

    def versions(self, src: Any = None, dst: Any = None, *, min: Mapping[str, int] | None = None,
                 rename: Renames = None, join_timeout: float | None = None,
                 **options: Unpack[SessionOptions]) -> Iterator[int]:
        """A loop that carries one version of `src` into `dst` in each round, and yields its number.

            for version in world.versions(src=model):     # the trainer: the body trains
                train_one_step(model)
            for version in world.versions(dst=engine):    # the server: the body serves
                answer_requests(engine)

        All members are in the loop. Each round begins when all have come to it, and the body runs
        after it: the first round carries what the sources hold at the start. Numbers are equal on
        all members and grow. `src`, `dst` and `rename`: as `Session.transfer` has them; a module
        is looked at anew in each round. `min`, `join_timeout` and `options`: as `session`.

        A member that is lost costs the version that was on its way: what `dst` holds is undefined
        until the next round. The loop then waits for the member's successor, or goes on without it
        where `min` allows that. It does so after a Timeout, too, unless `patience` is given. With
        `min`, members that join take part from the next round on.

        The loop ends on all members when one of them closes its world after leaving the loop, or
        comes to the end of the world's `with` without an exception. With `min`, the others go on if
        they are enough. The member that leaves waits until the others have come to their next
        round. A member that leaves by an exception is waited for as a lost one.

        Raises what `session` and `Session.sync` raise otherwise; then the loop is over. Timeout of
        the session's end: a member is stopped that may still use this one's memory.
        """

        def carry(session: Session, version: int, ignore_unused: bool) -> None:
            session.sync(src, dst, rename=rename, version=version, ignore_unused=ignore_unused,
                         progress=False)

        return self._loop(Versions(self, carry, min, join_timeout, options))

    def _loop(self, versions: Versions) -> Versions:
        if self._versions is not None and self._versions.is_open:
            raise InvalidSpec("this world is in a loop of versions already: go on with that one")
        self._versions = versions
        return versions

    def end_epoch(self, after_version: int) -> None:
        """Ends this epoch for all its members once they have run `after_version`.

        The word ends nothing by itself: members ask by `epoch_ends_after` between versions.
        """
        self._native.end_epoch(after_version)

    def epoch_ends_after(self) -> int | None:
        """The version that `end_epoch` has named; None: nobody has called it. Asks the store."""
        return self._native.epoch_ends_after()

    def close(self) -> None:
        """Says farewell: this member is no longer missed. Sessions stay, but that of `versions`."""
        if self._versions is not None:
            self._versions.leave()
        self._native.close()

    def __enter__(self) -> World:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            self._versions = None  # the others wait for a successor
        elif self._versions is not None:
            self._versions.leave()
        if self._session is not None:
            self._session._close_after(kind is not None)
        self.close()

    def __repr__(self) -> str:
        return f"<sluice.World, {self._role} {self._rank} of {self._size}>"


def _identity(role: str | None, roles: Roles, rank: int | str | None,
              size: int | None) -> dict[str, str]:
    """What says which member this is, as variables of the environment. InvalidSpec."""
    variables: dict[str, str] = {}
    if rank is None and os.environ.get("SLUICE_RANK") == "any":
        rank = "any"
    if rank == "any":
        if size is None and isinstance(roles, Mapping):
            size = roles.get(role or os.environ.get("SLUICE_ROLE", ""))
        variables["SLUICE_RANK"] = "any"
        if size is not None:
            variables["SLUICE_SIZE"] = str(size)
    elif isinstance(rank, str):
        raise InvalidSpec(f"rank is {rank!r}; it has to be a number, or \"any\"")
    elif rank is not None or size is not None:
        rank = _bootstrap.rank_from_environment() if rank is None else rank
        size = _bootstrap.size_from_environment() if size is None else size
        if rank is None or size is None:
            raise InvalidSpec("which member this is, nobody says: give rank= and size=, or set "
                              "SLUICE_RANK and SLUICE_SIZE")
        _bootstrap.check_rank(rank, size)
        variables.update(SLUICE_RANK=str(rank), SLUICE_SIZE=str(size))
    if role:
        variables["SLUICE_ROLE"] = role
    if roles is not None:
        sizes = dict(roles) if isinstance(roles, Mapping) else {name: 0 for name in roles}
        own = role or os.environ.get("SLUICE_ROLE")
        if own and own not in sizes:
            raise InvalidSpec(f"role is '{own}', and roles are {list(sizes)}")
        for name, count in sizes.items():
            if not isinstance(name, str) or not name or set(name) & set(":, "):
                raise InvalidSpec(f"roles has {name!r}, which is no name")
            if not isinstance(count, int) or count < 0:
                raise InvalidSpec(f"roles says {count!r} members of '{name}'")
        own = own or (next(iter(sizes)) if len(sizes) == 1 else None)
        if size is not None and own and sizes[own] not in (0, size):
            raise InvalidSpec(f"size is {size}, and roles says {sizes[own]} of '{own}'")
        variables["SLUICE_ROLES"] = ",".join(f"{name}:{count}" if count else name
                                             for name, count in sizes.items())
    return variables


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
