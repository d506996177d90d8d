"""verl's checkpoint engine, as its manager and workers call it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.6")

import sluice  # noqa: E402
from host_ranks import RANK, gather, use_stubs  # noqa: E402
from ranks import ranks_end  # noqa: E402
from torch_ranks import run_job, same_bytes  # noqa: E402
from weights import BUCKET, weights  # noqa: E402

ACTORS, ROLLOUTS = 2, 2
MEMBERS = ACTORS + ROLLOUTS
TENSORS = 60


class Worker:
    """One of verl's workers, and its part of CheckpointEngineManager.update_weights."""

    def __init__(self) -> None:
        use_stubs()
        import sluice.integrations.verl  # noqa: F401 - registers
        from verl.checkpoint_engine.base import CheckpointEngineRegistry

        self.is_actor = RANK < ACTORS
        more = {"is_master": RANK == 0} if self.is_actor else {}
        self.registry = CheckpointEngineRegistry
        self.engine = CheckpointEngineRegistry.new("sluice", bucket_size=BUCKET, timeout=120,
                                                   **more)
        self.round = 0

    def build(self, rollouts: int) -> None:
        """Prepare, topology and init. The manager is in every rank here."""
        self.round += 1
        there = range(ACTORS + rollouts)
        metadata = gather(f"prepare {self.round}", self.engine.prepare(), there)
        kwargs = self.registry.get("sluice").build_topology(ACTORS, rollouts, metadata)
        for each, size in zip(kwargs, (ACTORS, rollouts)):
            assert all(len(values) == size for values in each.values())
        place = RANK if self.is_actor else RANK - ACTORS
        own = json_copy({name: values[place] for name, values in kwargs[not self.is_actor].items()})
        self.engine.init_process_group(**own)

    def update(self, seed: int, rollouts: int = ROLLOUTS, tensors: int = TENSORS,
               pairs: Any = None) -> list[str]:
        """A whole update; what was wrong."""
        self.build(rollouts)
        try:
            if self.is_actor:
                sent = asyncio.run(self.engine.send_weights(pairs or weights(seed, tensors), seed))
                assert sent["checkpoint_engine/sluice_bytes"] > 0
                return []
            return asyncio.run(self._load(seed, tensors))
        finally:
            self.engine.finalize()

    async def _load(self, seed: int, tensors: int) -> list[str]:
        problems = []
        expected = weights(seed, tensors)
        async for name, tensor in self.engine.receive_weights(global_steps=seed):
            wanted, value = next(expected, ("", None))
            # Of a tensor that is a view, SGLang's adapter makes a copy.
            if name != wanted or not same_bytes(tensor, value) or tensor._base is None:
                problems.append(f"{name} where {wanted} was sent")
        return problems + [f"{name} is missing" for name, _ in expected]

    @property
    def session(self) -> Any:
        return self.engine._endpoint._fleet and self.engine._endpoint._fleet.session


def json_copy(value: Any) -> Any:
    import json
    return json.loads(json.dumps(value))


class Lines(logging.Handler):
    """What the package has logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        logging.getLogger("sluice").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def rank_of_verl() -> list[Any]:
    """[problems, whether sessions were kept, lines that were logged, bytes sent, the error of an
    actor's generator]"""
    lines = Lines()
    worker = Worker()
    problems = worker.update(1)
    first = worker.session
    buffers = worker.engine._endpoint._batches._buffers
    if buffers:
        problems.append("finalize keeps memory")
    problems += worker.update(2) + worker.update(3, tensors=31)
    kept = [worker.session is first]
    sent = first.metrics()["sent_bytes"]

    def failing() -> Iterator[Any]:
        yield from islice(weights(4, TENSORS), 20)
        raise OSError("the disk is full")

    error = ""
    try:
        worker.update(4, pairs=failing() if RANK == 1 else None)
    except Exception as raised:  # noqa: BLE001 - the test looks at its text
        error = f"{type(raised).__name__}: {raised}"
    problems += worker.update(5)
    kept.append(worker.session is first)
    # One rollout less, and again more.
    if RANK != MEMBERS - 1:
        problems += worker.update(6, rollouts=ROLLOUTS - 1)
        kept.append(worker.session is first)
        kept.append(worker.session.size == MEMBERS - 1)
    else:
        worker.round += 1
    problems += worker.update(7)
    kept.append(worker.session.size == MEMBERS)
    if "token" in repr(vars(worker.engine._endpoint)).replace("token_", ""):
        problems.append("a token is shown")
    return [problems, kept, lines.lines, sent, error]


def test_updates() -> None:
    ends = run_job(MEMBERS, rank_of_verl)
    for rank, (problems, kept, lines, _, error) in enumerate(ends):
        assert problems == []
        assert kept == ([True, True, False, True, True] if rank < MEMBERS - 1 else
                        [True, True, True]), (rank, kept)
        shown = [line for line in lines if "verl" in line]
        assert shown == ["sluice: verl of an unknown version was not tried with this Sluice, which "
                         "was with 0.9.1"]
        # Of each session that begins, the first of each role says what carries the bytes.
        told = [line for line in lines if "actors and" in line]
        assert len(told) == (3 if rank in (0, ACTORS) else 0), lines
        assert all("rank" in line and "shared memory" in line for line in told)
        if rank == 1:
            assert error == "OSError: the disk is full"
        else:
            assert "actor 1 (process" in error and "OSError: the disk is full" in error
    sent = [end[3] for end in ends[:ACTORS]]
    assert sent[0] > 0 and max(sent) - min(sent) <= 0.05 * max(sent)


def rank_whose_rollout_dies() -> list[Any]:
    """The last rollout ends in the second update. The others go on without it."""
    worker = Worker()
    problems = worker.update(1)
    error = ""
    try:
        if RANK == MEMBERS - 1:
            worker.build(ROLLOUTS)

            async def die() -> None:
                async for _ in worker.engine.receive_weights():
                    os._exit(3)

            asyncio.run(die())
        problems += worker.update(2)
    except sluice.Error as raised:
        error = f"{type(raised).__name__}: {raised}"
    problems += worker.update(3, rollouts=ROLLOUTS - 1)
    return [problems, error]


def test_a_rollout_dies() -> None:
    ends = ranks_end(MEMBERS, rank_whose_rollout_dies, session=False,
                     environment={"OMP_NUM_THREADS": "1"})
    assert [end.returncode for end in ends] == [0, 0, 0, 3], ends[0].output
    for end in ends[:-1]:
        problems, error = end.result
        assert problems == []
        assert error.startswith("PeerLost") and "rollout 1" in error, error


def test_what_is_wrong_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from sluice.integrations._endpoint import Endpoint

    def engine(bucket_size: Any = 1, **options: Any) -> Endpoint:
        return Endpoint(bucket_size, None, 1.0, "", options)

    with pytest.raises(sluice.InvalidSpec, match="bucket_size is 0"):
        engine(0)
    with pytest.raises(sluice.InvalidSpec, match="no_option"):
        engine(no_option=1)
    first = engine()
    card, other = first.prepare(serves=True), engine().prepare(serves=False)
    assert first.prepare(serves=True)["sluice"]["card"] == card["sluice"]["card"]
    for metadata, text in (([card], "1 processes have prepared"),
                           ([card, {}], "rollout 0 has prepared another engine"),
                           ([other, other], "no actor serves a store")):
        with pytest.raises(sluice.InvalidSpec, match=text):
            Endpoint.topology(1, 1, metadata)
    topology = Endpoint.topology(1, 1, [card, other])
    with pytest.raises(sluice.Timeout, match="rollout 0"):
        first.join("actor", 0, topology)
    topology["card"]["sluice"] = "0.0"
    with pytest.raises(sluice.Disagreement, match="actor 0 has Sluice 0.0"):
        engine().join("rollout", 0, topology)
    with pytest.raises(sluice.InvalidSpec, match="before this process was told whom to meet"):
        asyncio.run(first.send(weights(1, 2)))
    first.close()
