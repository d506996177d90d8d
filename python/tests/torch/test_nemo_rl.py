"""NeMo-RL's checkpoint engine, as policy and rollout workers call it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.6")

from host_ranks import RANK, gather, use_stubs  # noqa: E402
from torch_ranks import run_job, same_bytes  # noqa: E402
from weights import BUCKET, weights  # noqa: E402

POLICY, ROLLOUTS = 2, 2
TENSORS = 60


def rank_of_nemo_rl() -> list[Any]:
    """[problems, whether each part of the metadata has had a store]"""
    use_stubs()
    from nemo_rl.utils.checkpoint_engines.base import create_checkpoint_engine

    engine = create_checkpoint_engine("sluice.integrations.nemo_rl:CheckpointEngine",
                                      bucket_size_bytes=BUCKET, engine_kwargs={"timeout": 120})
    is_policy = RANK < POLICY
    own = RANK if is_policy else RANK - POLICY
    problems: list[str] = []
    served = []

    def init(number: int) -> None:
        # Each side has a process group of its own.
        from sluice.integrations import nemo_rl
        nemo_rl._group_rank = lambda: own
        prepared = engine.prepare()
        assert isinstance(prepared, dict)
        metadata = gather(f"prepare {number}", {**prepared, "rank": own})
        served.extend("card" in each["sluice"] for each in metadata)
        sizes = {"train_world_size": POLICY, "rollout_world_size": ROLLOUTS, "metadata": metadata}
        if is_policy:
            engine.init_policy_process_group(worker_rank=own, **sizes)
        else:
            engine.init_rollout_process_group(rollout_rank=own, **sizes)

    async def load(seed: int, tensors: int) -> None:
        expected = weights(seed, tensors)
        async for batch in engine.receive_weight_batches():
            assert isinstance(batch, list)
            for name, tensor in batch:
                wanted, value = next(expected, ("", None))
                if name != wanted or not same_bytes(tensor, value):
                    problems.append(f"{name} where {wanted} was sent")
        problems.extend(f"{name} is missing" for name, _ in expected)

    def refit(seed: int, tensors: int = TENSORS) -> None:
        asyncio.run(engine.send_weights(weights(seed, tensors)) if is_policy else
                    load(seed, tensors))

    init(1)
    for seed, tensors in ((1, TENSORS), (2, TENSORS), (3, 31)):
        refit(seed, tensors)
    engine.finalize()
    # As after each refit with release_after_refit.
    for number in (2, 3):
        init(number)
        refit(number)
        engine.finalize()
    engine.finalize()
    return [problems, served]


def test_refits() -> None:
    for problems, served in run_job(POLICY + ROLLOUTS, rank_of_nemo_rl):
        assert problems == []
        assert served == [True, False] * 2 * 3
