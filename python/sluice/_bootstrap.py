"""How the ranks of one job meet: through an all-gather of theirs, or by the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Union

from . import _sluice
from ._errors import Disagreement, Error, InvalidSpec, PeerLost, Unsupported
from ._group import described, error_told

AllGather = Callable[[bytes], "list[bytes]"]
Token = Union[str, Callable[[], str], None]

_ROLE = "member"
_PROBE_SECONDS = 3.0
_RANKS = ("SLUICE_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_PLACE = (*_RANKS, "SLUICE_WORLD", "SLUICE_WORLD_NAME", "MASTER_ADDR", "MASTER_PORT")


def text_of(token: Token) -> str | None:
    """The secret itself. InvalidSpec: a function gave something else; it is not shown."""
    if not callable(token):
        return token
    text = token()
    if not isinstance(text, str) or not text:
        raise InvalidSpec(f"token gave {'an empty text' if text == '' else type(text).__name__}; "
                          "it has to give a str")
    return text


def _number(*names: str) -> int | None:
    for name in names:
        text = os.environ.get(name)
        if text:
            try:
                return int(text)
            except ValueError:
                raise InvalidSpec(f"{name} is '{text}'; it has to be a number") from None
    return None


def rank_from_environment() -> int | None:
    """This process's rank in its job, as its launcher says; None where nothing says it."""
    return _number(*_RANKS)


def size_from_environment() -> int | None:
    """How many processes its job has, as its launcher says; None where nothing says it."""
    return _number("SLUICE_SIZE", "WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                   "SLURM_NTASKS")


def place_in_environment() -> tuple[str | None, ...]:
    """What the environment says of this process's job and of its rank there."""
    return (str(os.getpid()), *map(os.environ.get, _PLACE))  # a child of fork has none


def by_environment(options: Mapping[str, Any], overrides: Mapping[str, Any],
                   timeout: float | None
                   ) -> tuple[_sluice.World, _sluice.Session,
                              InvalidSpec | Unsupported | Disagreement | None]:
    """Joins the world that the environment names, and makes a session of all its members.

    What is wrong with this rank's options, or with its options beside those of others, comes back
    as an error. The others have yet to hear of the former: a rank that left now would let them
    wait.
    """
    failure: InvalidSpec | Unsupported | Disagreement | None = None
    checked: dict[str, Any] = {}
    try:
        checked = _sluice.check_session_options(options, devices=True)
    except (InvalidSpec, Unsupported) as error:
        failure = error
    world = _sluice.World.from_environment({}, **overrides)
    try:
        try:
            native = world.session(False, [], timeout, checked)
        except Disagreement as error:
            # All ranks have this error. It may come of what stands for wrong options, which only
            # their rank knows of. So all meet again, without options, and hear of it.
            failure = failure or error
            native = world.session(False, [], timeout, {})
        return world, native, failure
    except BaseException as error:
        world.close()
        if failure is not None and isinstance(error, Error):
            raise failure from error
        raise
    finally:
        del failure  # its traceback has this frame


def gather_of(pg: Any) -> AllGather:
    """An all-gather over a process group of torch.distributed; None: the default one."""
    import torch.distributed as dist

    size = dist.get_world_size(pg)
    # all_gather_object takes NumPy, which PyTorch does not bring.
    on_cpu = "cpu:" in str(dist.get_backend_config(pg))

    def allgather(payload: bytes) -> list[bytes]:
        if on_cpu:
            return _gather_bytes(payload, size, pg)
        gathered: list[Any] = [None] * size
        dist.all_gather_object(gathered, payload, group=pg)
        return gathered

    return allgather


def _gather_bytes(payload: bytes, size: int, pg: Any) -> list[bytes]:
    """Those of all ranks of a process group that takes tensors of the host."""
    import torch
    import torch.distributed as dist

    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(size)]
    dist.all_gather(lengths, torch.tensor([len(payload)]), group=pg)
    longest = max(int(length) for length in lengths)
    padded = bytearray(payload.ljust(longest, b"\0"))
    gathered = [torch.empty(longest, dtype=torch.uint8) for _ in range(size)]
    dist.all_gather(gathered, torch.frombuffer(padded, dtype=torch.uint8), group=pg)
    return [bytes(part[:int(length)].tolist()) for part, length in zip(gathered, lengths)]


class Meeting:
    """Rounds of an exchange. Each rank takes part in all of them, whatever has failed on it."""

    def __init__(self, rank: int, size: int, allgather: AllGather) -> None:
        self._rank = rank
        self._size = size
        self._allgather = allgather

    def round(self, what: str, card: dict[str, Any], failure: Exception | None) -> list[Any]:
        """The cards of all ranks. Raises on every rank where one of them has failed."""
        card = {**card, "rank": self._rank, "size": self._size, "what": what}
        if failure is not None:
            card["error"] = described(failure)
        try:
            gathered = self._allgather(json.dumps(card).encode())
            if failure is not None:
                raise failure
        finally:
            del failure  # its traceback has this frame
        return self._read(what, gathered)

    def _read(self, what: str, gathered: Any) -> list[Any]:
        answers = list(gathered)
        if len(answers) != self._size:
            raise InvalidSpec(f"allgather gave {len(answers)} answers for {self._size} ranks")
        cards = []
        for rank, answer in enumerate(answers):
            try:
                card = json.loads(bytes(answer))
                known = isinstance(card, dict) and card.get("what") == what
            except (TypeError, ValueError):
                known = False
            if not known:
                raise Disagreement(f"what allgather gave for rank {rank} is not from Sluice's "
                                   f"{what}; all ranks have to make the session at once",
                                   ranks=(rank,))
            cards.append(card)
        self._compare(cards)
        return cards

    def _compare(self, cards: list[dict[str, Any]]) -> None:
        errors = [(rank, card["error"]) for rank, card in enumerate(cards) if "error" in card]
        if errors:
            raise error_told(errors)
        for rank, card in enumerate(cards):
            if card["rank"] != rank or card["size"] != self._size:
                raise Disagreement(f"allgather gave the answer of rank {card['rank']} of "
                                   f"{card['size']} in the place of rank {rank} of {self._size}",
                                   ranks=(rank,))
            if card.get("version") != cards[0].get("version"):
                raise Disagreement(f"rank 0 has Sluice {cards[0].get('version')}, and rank {rank} "
                                   f"has {card.get('version')}", ranks=(0, rank))


def by_exchange(rank: int, size: int, allgather: AllGather, options: Mapping[str, Any],
                wires: str, bind: str, timeout: float | None,
                check: Callable[[], None] | None = None,
                ) -> tuple[_Owned, list[dict[str, Any]], _sluice.Session]:
    """Makes a session of ranks that can gather bytes. Returns what has to be closed with it, too,
    and who takes part.

    Rank 0 serves a store with a random token. An error of one rank reaches all.
    """
    meeting = Meeting(rank, size, allgather)
    failure: Exception | None = None
    card: dict[str, Any] = {"version": _sluice.version()}
    checked: dict[str, Any] = {}
    server: _sluice.StoreServer | None = None
    world: _sluice.World | None = None
    try:
        try:
            if check is not None:
                check()
            checked = _sluice.check_session_options(options, devices=True)
            if rank == 0:
                server, card["stores"], card["token"] = serve_store(bind)
        except Exception as error:
            failure = error
        first = meeting.round("first round", card, failure)[0]
        try:
            store = card["stores"][-1] if rank == 0 else reachable(first["stores"])
            world = _sluice.World.join(
                store=store, token=first["token"], token_file="", name="sluice", role=_ROLE,
                rank=rank, size=size, roles=[(_ROLE, size)], serve=False, timeout=timeout,
                store_timeout=60.0, lease=10.0, wires=wires, bind=bind)
        except Exception as error:
            failure = error
        meeting.round("second round", {"version": _sluice.version()}, failure)
        assert world is not None
        # All have come, and none can leave before it has the session.
        members = world.members()
        session = world.session(False, [], timeout, checked)
        return _Owned(world, server), members, session
    except BaseException:
        _Owned(world, server).close()
        raise
    finally:
        failure = None  # its traceback has this frame


class _Owned:
    """What a session of an exchange leaves behind: its membership, and on rank 0 the store."""

    def __init__(self, world: _sluice.World | None, server: _sluice.StoreServer | None) -> None:
        self.world = world
        self._server = server

    def close(self) -> None:
        for owned in (self.world, self._server):
            if owned is not None:
                try:
                    owned.close()
                except Error:
                    pass  # the store may have ended before
        self.world = self._server = None


def serve_store(bind: str) -> tuple[_sluice.StoreServer, list[str], str]:
    """A store of this process: with its addresses, and a random token."""
    token = os.urandom(32).hex()
    server = _sluice.StoreServer(bind, 0, token)
    hosts = [bind] if bind else [*_sluice.host_addresses(), "127.0.0.1"]
    return server, [store_address(host, server.port) for host in hosts], token


def store_address(host: str, port: int) -> str:
    host = host.strip("[]")
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


def reachable(addresses: list[str]) -> str:
    """The first address at which somebody listens. Two hosts may know different ones of a third."""
    import socket
    from urllib.parse import urlsplit

    reasons = []
    for address in addresses:
        parts = urlsplit(address)
        try:
            socket.create_connection((parts.hostname or "", parts.port or 0),
                                     _PROBE_SECONDS).close()
            return address
        except OSError as error:
            reasons.append(f"{address} ({error})")
    raise PeerLost("cannot reach rank 0's store at " + ", ".join(reasons), ranks=(0,))


def check_rank(rank: int, size: int) -> None:
    """InvalidSpec unless `rank` is one of `size`."""
    if size < 1 or not 0 <= rank < size:
        raise InvalidSpec(f"rank is {rank} and size {size}; rank has to be 0 to size - 1")
