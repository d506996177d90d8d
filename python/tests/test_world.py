"""Worlds: jobs that are started apart, their epochs, and who is lost."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import numpy as np
import pytest
import sluice
from ranks import SESSION_SECONDS, error_of, free_port, hear, meet, ranks_end, run_ranks, tell

TRAINERS = 2


def join() -> sluice.World:
    """Ranks below TRAINERS are trainers, and the others are servers."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    roles = {"trainer": TRAINERS, "server": size - TRAINERS}
    if rank < TRAINERS:
        return sluice.World.join(role="trainer", rank=rank, size=TRAINERS, roles=roles)
    return sluice.World.join(os.environ["SLUICE_WORLD"], role="server", rank=rank - TRAINERS,
                             size=size - TRAINERS, roles=roles, timeout=240)


def rank_meets() -> Any:
    with join() as world:
        session = world.session(roles=["trainer", "server"], timeout=SESSION_SECONDS)
        found = [world.role, world.rank, world.size, world.epoch, session.epoch,
                 [str(member).split(" (")[0] for member in session.members],
                 len(world.members()), world.missing(), world.joiners(), session.rank, repr(world)]
        session.allocate(0)  # trainer 0 serves the store, which others ask until here
        return found


def test_roles() -> None:
    for rank, found in enumerate(run_ranks(4, rank_meets, session=False)):
        role, number = ("trainer", rank) if rank < TRAINERS else ("server", rank - TRAINERS)
        assert found[:5] == [role, number, 2, 1, 1]
        assert found[5] == ["trainer 0", "trainer 1", "server 0", "server 1"]
        assert found[6:9] == [4, [], []]
        assert found[9] == rank and found[10] == f"<sluice.World, {role} {number} of 2>"


def rank_moves() -> Any:
    """Each role says ranks of its own in its layouts' meshes, through stand-ins of DTensor."""
    from stand_ins import DTensor, Shard  # of the tests

    with join() as world:
        session = world.session(timeout=SESSION_SECONDS)
        whole = np.arange(20, dtype=np.float32).reshape(10, 2)
        mine = whole[world.rank * 5:world.rank * 5 + 5]
        if world.role == "trainer":
            state = {"w": DTensor((10, 2), [2], [Shard(0)], mine.copy())}
            session.transfer(state, None).run(1)
            return None
        target = np.zeros((5, 2), np.float32)
        state = {"w": DTensor((10, 2), [2], [Shard(0)], target)}
        session.transfer(None, state).run(1)
        return target.tolist() == mine.tolist()


def test_mesh_ranks_are_those_of_the_role() -> None:
    assert run_ranks(4, rank_moves, session=False)[TRAINERS:] == [True, True]


def rank_survives() -> Any:
    world = join()
    session = world.session(timeout=SESSION_SECONDS)
    open_yet = error_of(world.session)
    value = np.zeros(4, np.float32)

    def transfer() -> sluice.Transfer:
        if world.role == "trainer":
            return session.transfer({"w": np.ones(4, np.float32)} if world.rank == 0 else None)
        return session.transfer(None, {"w": value})

    transfer().run(1)
    meet("the end of its first run")  # else the loss may end that
    if session.rank == 3:
        os._exit(9)
    try:
        moving = transfer()
        while True:
            moving.run()
    except sluice.Error as error:
        lost = [type(error).__name__, list(error.ranks), str(error)]
    error_of(session.close)
    value = np.zeros(4, np.float32)
    session = world.session(min={"server": 1}, timeout=SESSION_SECONDS)
    transfer().run(2)
    session.close()
    world.close()
    return [lost, open_yet, session.epoch, session.size, float(value[0])]


def test_a_lost_member() -> None:
    ends = ranks_end(4, rank_survives, session=False)
    assert ends[3].returncode == 9
    for rank, end in enumerate(ends[:3]):
        assert end.result is not None, end.output
        lost, open_yet, epoch, size, value = end.result
        # Who tells of it may be named, too.
        assert lost[0] == "PeerLost" and 3 in lost[1], lost
        assert "server 1 (rank 3) is lost" in lost[2], lost
        assert "close it before" in open_yet["text"]
        assert epoch >= 2 and size == 3
        assert value == (1.0 if rank >= TRAINERS else 0.0)


def rank_ends_epochs() -> Any:
    rank = int(os.environ["RANK"])
    roles = {"trainer": 1, "server": 2}
    if rank == 0:
        world = sluice.World.join(role="trainer", rank=0, size=1, roles=roles)
    else:
        if rank == 2:
            hear("a session without rank 2")
        world = sluice.World.join(role="server", rank=rank - 1, size=2, roles=roles)
    sizes = []
    version = 0
    while version < 6:
        with world.session(min={"server": 1}, timeout=SESSION_SECONDS) as session:
            sizes.append(session.size)
            tell("a session without rank 2")
            value = np.zeros(1, np.float32)
            source = np.zeros(1, np.float32)
            transfer = (session.transfer({"w": source}) if rank == 0
                        else session.transfer(None, {"w": value}))
            end = None
            while version < 6:
                if rank == 0:
                    if session.size == 2 and not sizes[1:]:
                        while not world.joiners():
                            time.sleep(0.05)
                        world.end_epoch(version + 1)
                    source[0] = version + 1
                next_version = (transfer.version or version) + 1
                transfer.run(next_version)
                version = next_version if rank == 0 else int(value[0])
                end = world.epoch_ends_after()
                if end is not None and version >= end:
                    break
    meet("its last question to the store")  # which ends with rank 0
    world.close()
    return [sizes, version]


def test_a_joiner() -> None:
    trainer, first, joiner = run_ranks(3, rank_ends_epochs, session=False)
    assert trainer == [[2, 3], 6] and first == [[2, 3], 6]
    assert joiner == [[3], 6]


def test_bad_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLUICE_WORLD", "SLUICE_RANK", "SLUICE_SIZE", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    url = f"tcp://127.0.0.1:{free_port()}"
    for bad, text in (({"url": url}, "SLUICE_RANK"), ({"rank": 0, "size": 1}, "SLUICE_WORLD"),
                      ({"url": url, "rank": 3, "size": 2}, "rank is 3"),
                      ({"url": url, "rank": 0, "size": 1, "role": "x", "roles": ["a", "b"]},
                       "role is 'x'"),
                      ({"url": url, "rank": 0, "size": 2, "role": "a", "roles": {"a": 1, "b": 2}},
                       "size is 2, and roles says 1 of 'a'"),
                      ({"url": url, "rank": 0, "size": 2, "roles": {"a": 1}},
                       "size is 2, and roles says 1 of 'a'"),
                      ({"url": url, "rank": "any", "size": 3, "role": "b", "roles": {"b": 2}},
                       "size is 3, and roles says 2 of 'b'")):
        with pytest.raises(sluice.InvalidSpec, match=text):
            sluice.World.join(**bad)  # type: ignore[arg-type]
    monkeypatch.setenv("SLUICE_ROLES", "a:many")
    with pytest.raises(sluice.InvalidSpec, match="SLUICE_ROLES"):
        sluice.World.join(url, rank=0, size=1, role="a")
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(sluice.InvalidSpec, match="RANK is 'first'"):
        sluice.World.join(url, size=1)


def test_the_store_gives_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLUICE_RANK", "SLUICE_SIZE", "SLUICE_ROLES", "SLUICE_ROLE", "RANK"):
        monkeypatch.delenv(name, raising=False)
    url = f"tcp://127.0.0.1:{free_port()}"
    roles = {"trainer": 1, "server": 2}
    with sluice.World.join(url, role="trainer", rank=0, size=1, roles=roles, token=lambda: "t"):
        join = partial(sluice.World.join, url, role="server", rank="any", token="t", timeout=5.0)
        with join(roles=roles) as first, join(roles=roles) as second:
            assert (first.rank, first.size, second.rank) == (0, 2, 1)
            first.close()
            with join(size=2, roles=["trainer", "server"]) as third:
                assert third.rank == 0
                with pytest.raises(sluice.InvalidSpec, match="2 members, and all of them"):
                    join(roles=roles)
        with pytest.raises(sluice.InvalidSpec, match="how many members"):
            join(roles=["trainer", "server"])
    with pytest.raises(sluice.InvalidSpec, match="'all'.* or \"any\""):
        sluice.World.join(url, role="server", rank="all", roles=roles)
    with pytest.raises(sluice.InvalidSpec, match="token gave int"):
        sluice.World.join(url, rank=0, size=1, token=lambda: 7)  # type: ignore


def test_wrong_role_of_session() -> None:
    url = f"tcp://127.0.0.1:{free_port()}"
    with sluice.World.join(url, rank=0, size=1, role="a", token="t") as world:
        with pytest.raises(sluice.InvalidSpec, match="'b'"):
            world.session(min={"b": 1})
        with pytest.raises(sluice.InvalidSpec, match="joined with"):
            world.session(roles=["b"])
        with pytest.raises(sluice.InvalidSpec, match="no option 'color'"):
            world.session(color="red")
        assert world.store_address == url


def rank_differs() -> Any:
    rank = int(os.environ["RANK"])
    roles = {"trainer": 1, "server": 1} if rank < 2 else {"trainer": 2, "server": 1}
    role, number = ("trainer", 0) if rank in (0, 3) else ("server", 0)
    if rank in (0, 1):
        with sluice.World.join(role=role, rank=0, size=1, roles=roles) as world:
            tell(f"{rank} has joined")
            hear("2 is done", "3 is done")
            return world.size
    hear("0 has joined", "1 has joined")
    if rank == 3:  # as rank 0
        error = error_of(sluice.World.join, role="trainer", rank=0, size=1,
                         roles={"trainer": 1, "server": 1}, serve=False)
    else:
        error = error_of(sluice.World.join, role="trainer", rank=1, size=2, roles=roles)
    tell(f"{rank} is done")
    return error


def test_members_that_do_not_fit() -> None:
    first, second, other_roles, same_member = run_ranks(4, rank_differs, session=False)
    assert first == second == 1
    assert other_roles["types"][0] == "Disagreement" and "declares" in other_roles["text"]
    assert same_member["types"][0] == "InvalidSpec" and "already" in same_member["text"]


def test_what_is_not_given_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLUICE_WORLD", "SLUICE_RANK", "SLUICE_SIZE", "SLUICE_ROLES", "SLUICE_ROLE"):
        monkeypatch.delenv(name, raising=False)
    port = free_port()
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                        "MASTER_PORT": str(port - 1)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SLUICE_WORLD_TIMEOUT", "5s")
    with sluice.World.join() as world:
        assert (world.role, world.rank, world.size) == ("member", 0, 2)
        assert world.store_address.endswith(f":{port}")
        with pytest.raises(sluice.Timeout, match="member 1"):
            world.session()
    # What is given counts before it, and the rest is still taken from it.
    monkeypatch.setenv("SLUICE_ROLES", "trainer:1,server:1")
    url = f"tcp://127.0.0.1:{free_port()}"
    with sluice.World.join(url, role="trainer", rank=0, size=1) as world:
        assert world.missing() == ["server 0"]
        with pytest.raises(sluice.Timeout, match="server 0"):
            world.session()
    monkeypatch.setenv("SLUICE_SERVE", "0")
    monkeypatch.setenv("SLUICE_WORLD_TIMEOUT", "100h")
    with pytest.raises((sluice.PeerLost, sluice.Timeout), match="127.0.0.1"):
        sluice.World.join(url, role="trainer", rank=0, size=1, timeout=0.5)


def test_no_store() -> None:
    with pytest.raises((sluice.PeerLost, sluice.Timeout), match="127.0.0.1"):
        sluice.World.join(f"tcp://127.0.0.1:{free_port()}", rank=1, size=2, store_timeout=0.5)


def rank_has_wrong_token() -> Any:
    rank = int(os.environ["RANK"])
    if rank == 1:
        hear("the store is there")
        error = error_of(sluice.World.join, rank=1, size=2, token="guess", store_timeout=240)
        tell("1 is done")
        return error
    with sluice.World.join(rank=0, size=2, token="secret"):
        tell("the store is there")
        hear("1 is done")
    return None


def test_wrong_token() -> None:
    _, error = run_ranks(2, rank_has_wrong_token, session=False)
    assert "Error" in error["types"] and "token" in error["text"]
