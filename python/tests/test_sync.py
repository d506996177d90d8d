"""sluice.sync: one plan for equal calls, a new one for all ranks when one rank has changed."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import sluice
from ranks import error_of, run_ranks


def sync(session: sluice.Session, step: int, target: Any, given: Any = None, **how: Any) -> None:
    """From rank 0 to `target` of the others, which may give something else."""
    if session.rank == 0:
        sluice.sync({"w": np.full(target.shape, step, np.float32)}, session=session, **how)
    else:
        sluice.sync(None, given or {"w": target}, session=session, **how)


def plans(session: sluice.Session) -> int:
    return len(session._synced.plans)


def rank_syncs(session: sluice.Session) -> Any:
    target = np.zeros((8, 4), np.float32)
    for step in range(1, 4):
        sync(session, step, target)
        assert session.rank == 0 or (target == step).all()
        if step == 2:
            target = np.zeros((8, 4), np.float32)  # other memory, the same plan
    return plans(session)


def test_one_plan() -> None:
    assert run_ranks(3, rank_syncs) == [1, 1, 1]


def rank_changes(session: sluice.Session) -> Any:
    """Each time another rank alone has another layout, dtype or set of tensors."""
    kinds = [(np.float32, False), (np.float16, False), (np.float32, False), (np.float32, True)]
    counts = []
    for step, (kind, fortran) in enumerate(kinds, 1):
        given = kind if session.rank == 1 else np.float32
        target = np.zeros((8, 4), given, order="F" if fortran else "C")
        sync(session, step, target)
        assert session.rank == 0 or (target == step).all()
        counts.append(plans(session))
    return counts


def test_one_rank_changes() -> None:
    # A dtype of rank 1 makes a plan on all ranks. The first plan is found again. Strides are
    # memory, and no matter of the plan.
    assert run_ranks(3, rank_changes) == [[1, 2, 2, 2]] * 3


def rank_alternates(session: sluice.Session) -> Any:
    """More signatures than plans are kept: old ones go, in one order on all ranks."""
    for step in range(1, 31):
        target = np.zeros((4 + step % 11, 4), np.float32)
        sync(session, step, target)
        assert session.rank == 0 or (target == step).all()
    return plans(session)


def test_plans_are_bounded() -> None:
    assert run_ranks(2, rank_alternates) == [8, 8]


def rank_errs(session: sluice.Session, first: bool) -> Any:
    target = np.zeros((8, 4), np.float32)
    if not first:
        sync(session, 1, target)
    error = error_of(sync, session, 2, target, {"w": "a text"} if session.rank == 1 else None)
    sync(session, 3, target)
    return [error, session.rank == 0 or bool((target == 3).all())]


@pytest.mark.parametrize("first", [True, False])
def test_one_rank_errs(first: bool) -> None:
    for error, good in run_ranks(3, rank_errs, first):
        assert good
        assert "Error" in error["types"] and "'w'" in error["text"], error
        assert "InvalidSpec" in error["types"], error


def rank_has_versions(session: sluice.Session) -> Any:
    target = np.zeros((8, 4), np.float32)
    sync(session, 1, target, version=5)
    error = error_of(sync, session, 2, target, version=5 if session.rank == 1 else 6)
    sync(session, 3, target, version="7")
    return [error, float(target[0, 0])]


def test_versions_grow() -> None:
    results = run_ranks(2, rank_has_versions)
    for error, _ in results:
        assert "InvalidSpec" in error["types"] and "version 5" in error["text"]
    assert results[1][1] == 3


def rank_drops(session: sluice.Session) -> Any:
    """Whether plans refer to memory after their runs."""
    dropped = []
    for step in (1, 2):
        src = None if session.rank else {"w": np.full((8, 4), step, np.float32)}
        dst = {"w": np.zeros((8, 4), np.float32)} if session.rank else None
        for _ in range(2):
            sluice.sync(src, dst, session=session)
        arrays = [*(src or {}).values(), *(dst or {}).values()]
        assert session.rank == 0 or (arrays[0] == step).all()
        watches = [weakref.ref(array) for array in arrays]
        del src, dst, arrays
        gc.collect()
        dropped.extend(watch() is None for watch in watches)
    return dropped


def test_plans_refer_to_no_memory() -> None:
    assert run_ranks(2, rank_drops) == [[True, True]] * 2


def test_alone(session: sluice.Session) -> None:
    target = {"b": np.zeros(3), "a": np.zeros(2)}
    for step in range(3):
        sluice.sync({"a": np.full(2, step + 1.0), "b": np.full(3, step + 2.0)}, target,
                    session=session)
        assert target["a"].tolist() == [step + 1.0] * 2
        assert target["b"].tolist() == [step + 2.0] * 3
    with pytest.raises(sluice.InvalidSpec, match="memory"):
        layout = sluice.Layout(mesh=[0], placements="R")
        session.sync({"a": np.zeros(2)}, [sluice.Tensor(
            "a", shape=(2,), dtype="f64", layout=layout, view=None)])


def test_unused_sources() -> None:
    """A plan that ignores them is no plan for a call that does not."""
    with sluice.Session.local() as session:
        given = {name: np.ones(3, np.float32) for name in ("a", "b")}
        target = {"a": np.zeros(3, np.float32)}
        for step in range(2):
            session.sync(given, target, ignore_unused=True)
            assert target["a"].tolist() == [1, 1, 1] and plans(session) == 1
            target["a"][:] = 0
        with pytest.raises(sluice.InvalidSpec, match="ignore_unused=True would allow it"):
            session.sync(given, target)
        session.sync(given, target, ignore_unused=True)
        assert target["a"].tolist() == [1, 1, 1] and plans(session) == 1
