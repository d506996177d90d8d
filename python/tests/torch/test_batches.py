"""Updates in batches between actors and rollouts, without a host."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.6")

import sluice  # noqa: E402
from ranks import ranks_end  # noqa: E402
from sluice.integrations._batches import Batches  # noqa: E402
from torch_ranks import SESSION_SECONDS, run_job, same_bytes  # noqa: E402
from weights import BUCKET, TENSORS, weights  # noqa: E402

ACTORS, ROLLOUTS = 2, 2
MEMBERS = ACTORS + ROLLOUTS


class Member:
    """One of the ranks, as a member of a world of both roles."""

    def __init__(self, actors: int = ACTORS, bucket: int = BUCKET) -> None:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.sends = rank < actors
        sizes = {"actor": actors, "rollout": size - actors}
        role = "actor" if self.sends else "rollout"
        self.rank = rank if self.sends else rank - actors
        self.world = sluice.World.join(role=role, roles=sizes, rank=self.rank, size=sizes[role])
        self.session = self.world.session(join_timeout=200, timeout=SESSION_SECONDS)
        self.batches = Batches(self.session, bucket, "actor")
        self.gathers = 0
        gather = self.session._all_gather

        def counted(*args: Any, **named: Any) -> list[bytes]:
            self.gathers += 1
            return gather(*args, **named)

        self.session._all_gather = counted  # type: ignore[method-assign]

    def update(self, seed: int, tensors: int = TENSORS, device: Any = "cpu") -> list[str]:
        """What was wrong. Actors send, and rollouts compare: each batch twice, the second time when
        the next one may have come."""
        if self.sends:
            asyncio.run(self.batches.send(weights(seed, tensors)))
            return []
        return asyncio.run(self._receive(seed, tensors, device))

    async def _receive(self, seed: int, tensors: int, device: Any) -> list[str]:
        problems: list[str] = []
        expected = weights(seed, tensors)
        async for batch in self.batches.receive(device):
            own = []
            for name, tensor in batch:
                wanted = next(expected, ("", None))
                if name != wanted[0] or not same_bytes(tensor, wanted[1]):
                    problems.append(f"{name} where {wanted[0]} was sent")
                own.append((name, tensor, wanted[1]))
            await asyncio.sleep(0.002)
            problems += [f"{name} is overwritten" for name, tensor, wanted in own
                         if not same_bytes(tensor, wanted)]
        return problems + [f"{name} is missing" for name, _ in expected]

    def error_of(self, weights_of: Callable[[], Iterator[Any]], load: Any = None) -> list[str]:
        """What an update raises, its type and text. Actors send the former, and rollouts load."""
        try:
            asyncio.run(self.batches.send(weights_of()) if self.sends else
                        load or self._receive(1, TENSORS, "cpu"))
        except Exception as error:  # noqa: BLE001 - the tests look at its type
            return [type(error).__name__, str(error)]
        return ["nothing", ""]

    def close(self) -> None:
        self.session.close()
        self.world.close()


def rank_updates() -> list[Any]:
    """[problems, bytes sent, gathers of each update]"""
    member = Member(bucket=BUCKET if int(os.environ["RANK"]) else 2 * BUCKET)
    problems: list[str] = []
    gathers: list[int] = []
    # Three of one kind, one of other batches, and two as the first ones.
    for seed, tensors in enumerate((TENSORS, TENSORS, TENSORS, 77, 77, TENSORS)):
        before = member.gathers
        problems += member.update(seed, tensors)
        gathers.append(member.gathers - before)
    sent = member.session.metrics()["sent_bytes"]
    plans = len(member.batches._plans)
    member.close()
    return [problems, sent, gathers, plans]


def test_all_bytes_come() -> None:
    ends = run_job(MEMBERS, rank_updates)
    size = sum(tensor.numel() * tensor.element_size() for _, tensor in weights(0))
    for problems, _, gathers, plans in ends:
        assert problems == []
        # A header is sent once, and again where it has changed.
        assert gathers[0] > 4 and gathers[0] > gathers[3] == gathers[5] > 0, gathers
        assert gathers[1:3] == [0, 0] and gathers[4] == 0, gathers
        assert 1 <= plans <= 64
    sent = [end[1] for end in ends[:ACTORS]]
    assert max(sent) - min(sent) <= 0.05 * max(sent), sent
    # Each byte goes to each rollout once, and few that are none of any tensor.
    assert 4 * size * ROLLOUTS < sum(sent) < 1.5 * 5 * size * ROLLOUTS


def rank_of_three_actors() -> list[Any]:
    member = Member(actors=3, bucket=1000)
    problems = member.update(1, 40) + member.update(2, 1) + member.update(3, 0)
    sent = member.session.metrics()["sent_bytes"]
    member.close()
    return [problems, sent]


def test_small_batches_and_none() -> None:
    ends = run_job(5, rank_of_three_actors)
    assert [problems for problems, _ in ends] == [[]] * 5
    assert ends[0][1] == ends[1][1] == ends[2][1] > 0


def rank_with_faults() -> dict[str, Any]:
    """Of each fault what this rank has raised. Between them come updates that have to be whole."""
    member = Member()
    problems = member.update(2)
    errors: dict[str, Any] = {}
    sound: list[bool] = []
    is_second = member.rank == 1

    def walk(fault: str = "") -> Iterator[Any]:
        for i, (name, tensor) in enumerate(weights(1)):
            if i == 200 and fault == "raises":
                raise KeyError("no such layer")
            if i == 200 and fault == "is shorter":
                return
            if i == 200 and fault == "has another dtype":
                tensor = tensor.to(torch.int64 if tensor.dtype != torch.int64 else torch.int8)
            yield name, None if i == 200 and fault == "has no tensor" else tensor
        walked.append(fault)

    for fault in ("raises", "is shorter", "has another dtype", "has no tensor"):
        walked: list[str] = []
        errors[fault] = member.error_of(lambda own=fault if is_second else "": walk(own))
        errors[fault].append(walked)
        sound.append(member.batches.sound)
        problems += member.update(3)

    async def load(batches: int) -> None:
        async with aclosing(member.batches.receive("cpu")) as received:
            async for batch in received:
                batches -= 1
                if batches == 0 or batch[-1][0] == f"layers.{TENSORS - 1}.weight":
                    raise ArithmeticError("the engine is broken")

    for batches in (1, 4, TENSORS):
        errors[f"stops at {batches}"] = member.error_of(
            weights_of, load(batches) if is_second and not member.sends else None)
        sound.append(member.batches.sound)
        problems += member.update(4)

    errors["nothing"] = member.error_of(weights_of)
    fails = not member.sends and not is_second
    errors["memory"] = member.error_of(
        weights_of, member._receive(1, TENSORS, "cuda:77" if fails else "cpu"))
    errors["sound"] = [*sound, member.batches.sound]
    member.close()
    return {"problems": problems, **errors}


def weights_of() -> Iterator[Any]:
    return weights(1)


def test_faults_are_told() -> None:
    for rank, end in enumerate(run_job(MEMBERS, rank_with_faults)):
        assert end["problems"] == []
        is_actor, is_second = rank < ACTORS, rank % 2 == 1
        # Whoever raises does so with what the generator has raised. All generators are walked.
        kind, text, walked = end["raises"]
        assert walked == ([""] if is_actor and not is_second else [])
        if is_actor and is_second:
            assert (kind, text) == ("KeyError", "'no such layer'")
        else:
            assert kind == "Error" and "actor 1 (process" in text and "batch " in text
            assert "KeyError: 'no such layer'" in text
        kind, text, walked = end["is shorter"]
        assert kind == "Disagreement" and "actor 0 has 'layers.200.weight'" in text
        assert "actor 1 ends" in text and walked == ([""] if is_actor and not is_second else [])
        kind, text, walked = end["has another dtype"]
        assert kind == "Disagreement" and "actor 1 has 'layers.200.weight' (int64" in text
        assert len(walked) == is_actor
        kind, text, walked = end["has no tensor"]
        assert kind == ("TypeError" if is_actor and is_second else "Error")
        assert "'layers.200.weight' is a NoneType" in text and len(walked) == is_actor
        for batches in (1, 4, TENSORS):
            kind, text = end[f"stops at {batches}"]
            if is_second and not is_actor:
                assert (kind, text) == ("ArithmeticError", "the engine is broken")
            else:
                assert kind == "Error" and "rollout 1 (process" in text, text
                assert "stopped loading" in text
        assert end["nothing"] == ["nothing", ""]
        kind, text = end["memory"]
        assert f"rank {ACTORS}" in text and "no memory for a batch" in text, text
        assert end["sound"] == [True] * 7 + [False]


def rank_that_may_die() -> list[Any]:
    member = Member()
    member.update(1)
    walked: list[bool] = []

    def walk() -> Iterator[Any]:
        yield from weights(2)
        walked.append(True)

    async def die() -> None:
        async for _ in member.batches.receive("cpu"):
            os._exit(3)

    try:
        if member.sends:
            asyncio.run(member.batches.send(walk()))
        else:
            asyncio.run(die() if member.rank == 1 else member._receive(2, TENSORS, "cpu"))
    except sluice.PeerLost as error:
        member.close()
        return [str(error), walked, member.batches.sound]
    return ["nothing was raised", walked, True]


def test_a_rollout_dies() -> None:
    environment = {"OMP_NUM_THREADS": "1"}
    ends = ranks_end(MEMBERS, rank_that_may_die, session=False, environment=environment)
    assert [end.returncode for end in ends] == [0, 0, 0, 3]
    for rank, end in enumerate(ends[:3]):
        text, walked, sound = end.result
        assert "rollout 1" in text, end.output
        assert walked == ([True] if rank < ACTORS else []) and not sound
