"""One process of a host that makes its checkpoint engines of a class: an actor or a rollout."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

from .. import _sluice
from .._errors import Error, InvalidSpec, Unsupported
from .._log import warn
from ._batches import Batches, Named
from ._fleet import Card, Fleet, Meeting
from ._hosts import warn_once

_KEY = "sluice"  # of what `prepare` returns

ACTOR = "actor"
ROLLOUT = "rollout"


class Endpoint:
    """Meets the others, and keeps the session for as long as all of them have it. Thread: one.

    `bucket_size`: bytes of a batch; a rollout holds two. `device`: where rollouts get tensors;
    None: their GPU if the session takes that, or else the host. `timeout`: seconds to wait for
    others. `bind`: the one address at which others reach this process. `options`: those of
    sessions.
    InvalidSpec, Unsupported: one of these.
    """

    def __init__(self, bucket_size: int, device: Any, timeout: float, bind: str,
                 options: Mapping[str, Any]) -> None:
        if type(bucket_size) is not int or bucket_size < 1:
            raise InvalidSpec(f"bucket_size is {bucket_size!r}; it has to be a number of bytes")
        _sluice.check_session_options(options)
        self._bucket_size = bucket_size
        self._device = device
        self._timeout = float(timeout)
        self._bind = bind
        self._options = dict(options)
        self._meeting: Meeting | None = None
        self._fleet: Fleet | None = None
        self._batches: Batches | None = None
        self._world: str | None = None  # the name of what this process has joined

    def prepare(self, serves: bool) -> dict[str, Any]:
        """The part of this process in what `topology` takes; JSON.

        `serves`: the fleet may meet at a store of this process. Whoever reads it can join.
        """
        if self._fleet is not None:
            try:
                session = self._fleet.session
                if session is None:
                    self.leave()
                else:
                    session.poll()
            except Error:
                self.leave()
        size = 0 if self._batches is None else self._batches.size
        entry: dict[str, Any] = {"world": self._world, "size": size}
        if serves:
            self._meeting = self._meeting or Meeting(self._bind)
            entry.update(card=self._meeting.card.to_json(), next=secrets.token_hex(8))
        return {_KEY: entry}

    @staticmethod
    def topology(actors: int, rollouts: int, metadata: Sequence[Any]) -> dict[str, Any]:
        """What `join` takes, of what `prepare` has returned on all: actors', then rollouts'; JSON.

        InvalidSpec: somebody is missing, or has another engine.
        """
        if len(metadata) != actors + rollouts:
            raise InvalidSpec(f"{len(metadata)} processes have prepared, and there are {actors} "
                              f"actors and {rollouts} rollouts")
        entries = []
        for i, each in enumerate(metadata):
            name = f"{ACTOR} {i}" if i < actors else f"{ROLLOUT} {i - actors}"
            entry = each.get(_KEY) if isinstance(each, Mapping) else None
            if not isinstance(entry, Mapping):
                raise InvalidSpec(f"{name} has prepared another engine than Sluice's; configure "
                                  "the same one on both sides")
            entries.append(entry)
        first = next((entry for entry in entries[:actors] if "card" in entry), None)
        if first is None:
            raise InvalidSpec("no actor serves a store: its first one has to")
        # A session is kept where these are its members, all of them and no others.
        kept = {(entry.get("world"), entry.get("size")) for entry in entries} == {
            (first.get("world"), len(entries))}
        return {"card": first["card"], "world": first["world" if kept else "next"],
                "sizes": [actors, rollouts]}

    def join(self, role: str, rank: int, topology: Mapping[str, Any]) -> None:
        """Collective; blocks. Makes the session of all members, or keeps the one that all have.

        Timeout names who has not come.
        """
        actors, rollouts = topology["sizes"]
        world = str(topology["world"])
        if world == self._world:
            return
        self.leave()
        card = Card.from_json(topology["card"], f"{ACTOR} 0")
        if self._meeting is not None and self._meeting.card != card:
            self._meeting.close()  # of a process that is first elsewhere
            self._meeting = None
        try:
            self._fleet = Fleet(card, role, rank, {ACTOR: actors, ROLLOUT: rollouts},
                                timeout=self._timeout, options=_with_gpu(self._options),
                                bind=self._bind, name=world)
            session = self._fleet.session_of()
            self._batches = Batches(session, self._bucket_size, ACTOR)
        except BaseException:
            self.leave()
            raise
        self._world = world
        if rank == 0:
            warn(f"{role} 0 of {actors} actors and {rollouts} rollouts: {session.report()}")

    async def send(self, weights: Any) -> dict[str, float]:
        """`Batches.send`."""
        batches = self._joined("send_weights")
        try:
            return await batches.send(weights)
        finally:
            self._leave_unless_sound(batches)

    async def receive(self) -> AsyncGenerator[list[Named], None]:
        """`Batches.receive`."""
        batches = self._joined("receive_weights")
        try:
            async with aclosing(batches.receive(self._device or batches.device)) as received:
                async for batch in received:
                    yield batch
        finally:
            self._leave_unless_sound(batches)

    def release(self) -> None:
        """Lets go of the memory of batches. The session stays."""
        if self._batches is not None:
            self._batches.release()

    def leave(self) -> None:
        """Ends the session. The store stays."""
        fleet, self._fleet = self._fleet, None
        self._batches = self._world = None
        if fleet is not None:
            with suppress(Error):
                fleet.close()

    def close(self) -> None:
        """Ends all of it. `prepare` begins anew."""
        self.leave()
        if self._meeting is not None:
            self._meeting.close()
            self._meeting = None

    def _joined(self, call: str) -> Batches:
        if self._batches is None:
            raise InvalidSpec(f"{call} was called before this process was told whom to meet, or "
                              "after an error that ended the session: prepare again")
        return self._batches

    def _leave_unless_sound(self, batches: Batches) -> None:
        if not batches.sound and batches is self._batches:
            self.leave()


def _with_gpu(options: Mapping[str, Any]) -> dict[str, Any]:
    """With this process's GPU, where there is one and this build takes it."""
    import torch

    if "accelerator" in options or not torch.cuda.is_available():
        return dict(options)
    with_gpu = {**options, "accelerator": f"cuda:{torch.cuda.current_device()}"}
    try:
        _sluice.check_session_options(with_gpu, devices=True)
    except (InvalidSpec, Unsupported) as error:
        warn_once(f"weights of GPUs go through the host: {error}")
        return dict(options)
    return with_gpu
