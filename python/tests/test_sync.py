"""sluice.sync: one plan for equal calls, a new one for all ranks when one rank has changed."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import sluice
from ranks import error_of, run_ranks


def source(session: sluice.Session, step: int, rows: int = 8) -> Any:
    return {"w": np.full((rows, 4), step, np.float32)} if session.rank == 0 else None


def plans(session: sluice.Session) -> int:
    return len(session._synced.plans)


def rank_syncs(session: sluice.Session) -> Any:
    target = {"w": np.zeros((8, 4), np.float32)}
    for step in range(1, 4):
        sluice.sync(source(session, step), None if session.rank == 0 else target, session=session)
        assert session.rank == 0 or (target["w"] == step).all()
        if step == 2:
            target = {"w": np.zeros((8, 4), np.float32)}  # other memory, the same plan
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
        sluice.sync(source(session, step), None if session.rank == 0 else {"w": target},
                    session=session)
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
        rows = 4 + step % 11
        target = np.zeros((rows, 4), np.float32)
        sluice.sync(source(session, step, rows), None if session.rank == 0 else {"w": target},
                    session=session)
        assert session.rank == 0 or (target == step).all()
    return plans(session)


def test_plans_are_bounded() -> None:
    assert run_ranks(2, rank_alternates) == [8, 8]


def rank_errs(session: sluice.Session, first: bool) -> Any:
    target = {"w": np.zeros((8, 4), np.float32)}
    dst = None if session.rank == 0 else target
    if not first:
        sluice.sync(source(session, 1), dst, session=session)
    bad = {"w": "a text"} if session.rank == 1 else dst
    error = error_of(sluice.sync, source(session, 2), bad, session=session)
    sluice.sync(source(session, 3), dst, session=session)
    return [error, session.rank == 0 or bool((target["w"] == 3).all())]


@pytest.mark.parametrize("first", [True, False])
def test_one_rank_errs(first: bool) -> None:
    for error, good in run_ranks(3, rank_errs, first):
        assert good
        assert "Error" in error["types"] and "'w'" in error["text"], error
        assert "InvalidSpec" in error["types"], error


def rank_has_versions(session: sluice.Session) -> Any:
    target = {"w": np.zeros((8, 4), np.float32)}
    dst = None if session.rank == 0 else target
    sluice.sync(source(session, 1), dst, session=session, version=5)
    error = error_of(sluice.sync, source(session, 2), dst, session=session,
                     version=5 if session.rank == 1 else 6)
    sluice.sync(source(session, 3), dst, session=session, version="7")
    return [error, float(target["w"][0, 0])]


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


def test_alone() -> None:
    with sluice.Session.from_exchange(0, 1, lambda payload: [payload]) as session:
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
