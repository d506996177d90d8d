"""Checkpoints into and out of state dicts, by ranks that do not all have the same tensors."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import sluice
from ranks import error_of, run_ranks

SHAPE = (10, 6)


def whole() -> Any:
    return np.arange(60, dtype=np.float32).reshape(SHAPE)


def sharded(session: sluice.Session, dim: int, array: Any, name: str = "w",
            ranks: list[int] | None = None) -> sluice.Tensor:
    layout = sluice.Layout(mesh=ranks or list(range(session.size)),
                           placements=[sluice.Shard(dim)])
    return sluice.Tensor(name, shape=SHAPE, dtype="f32", layout=layout, view=array)


def part(dim: int, index: int, count: int) -> tuple[slice, ...]:
    chunk = -(-SHAPE[dim] // count)
    cut = slice(min(index * chunk, SHAPE[dim]), min((index + 1) * chunk, SHAPE[dim]))
    return (cut, slice(None)) if dim == 0 else (slice(None), cut)


def rank_saves_and_loads(session: sluice.Session, folder: str) -> Any:
    rank, size = session.rank, session.size
    source = np.ascontiguousarray(whole()[part(0, rank, size)])
    bias = np.arange(3, dtype=np.float32)
    saved = session.save(folder, [sharded(session, 0, source),
                                  sluice.Tensor("count", shape=(1,), dtype="i64",
                                                layout=sluice.Layout(mesh=list(range(size)),
                                                                     placements="R"),
                                                view=np.array([7]))],
                         dtype="bf16", rename={"w": "model.w"})
    target = np.zeros_like(whole()[part(1, rank, size)])
    loaded = session.load(f"buffered:{folder}", [sharded(session, 1, target)],
                          rename=lambda name: f"model.{name}")
    plain = {"model": {"w": np.zeros(SHAPE, ml_dtypes.bfloat16)}}
    session.load(folder, plain)
    del bias
    return [target.tolist() == whole()[part(1, rank, size)].tolist(),
            plain["model"]["w"].astype(np.float32).tolist() == whole().tolist(),
            saved["tensors"], loaded["tensors"], loaded["tensors_ignored"]]


def test_save_and_load(tmp_path: Path) -> None:
    folder = tmp_path / "step"
    for found in run_ranks(4, rank_saves_and_loads, str(folder)):
        assert found == [True, True, 2, 1, 1]
    with open(folder / "model.safetensors", "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    assert header["model.w"]["dtype"] == "BF16" and header["model.w"]["shape"] == list(SHAPE)
    assert header["count"]["dtype"] == "I64"


def rank_has_a_stage(session: sluice.Session, folder: str) -> Any:
    """Two pipeline stages of two ranks each: each rank names the tensors of its stage alone."""
    stage, index = divmod(session.rank, 2)
    ranks = [2 * stage, 2 * stage + 1]
    mine = whole()[part(0, index, 2)] + stage
    state = [sharded(session, 0, np.ascontiguousarray(mine), f"stage{stage}.w", ranks)]
    session.save(folder, state)
    target = np.zeros_like(whole()[part(1, index, 2)])
    # The other way round: each stage loads what the other one has saved.
    session.load(folder, [sharded(session, 1, target, f"stage{1 - stage}.w", ranks)])
    copies = np.zeros_like(whole()[part(1, index, 2)])
    session.load(folder, [sharded(session, 1, copies, "stage0.w", ranks)])
    return [target.tolist() == (whole() + 1 - stage)[part(1, index, 2)].tolist(),
            copies.tolist() == whole()[part(1, index, 2)].tolist()]


def test_stages(tmp_path: Path) -> None:
    assert run_ranks(4, rank_has_a_stage, str(tmp_path / "c")) == [[True, True]] * 4


def rank_is_wrong(session: sluice.Session, folder: str, what: str) -> Any:
    rank, size = session.rank, session.size
    wrong = rank == 1
    source = np.ascontiguousarray(whole()[part(0, rank, size)])
    session.save(folder, [sharded(session, 0, source)])
    target = np.zeros_like(source)
    state: Any = [sharded(session, 0, target)]
    options: dict[str, Any] = {}
    place: Any = folder
    if what == "nothing there":
        place = folder + "/nowhere"
    if what == "no such tensor":
        state = [sharded(session, 0, target, "v")]
    if wrong and what == "option":
        options["colour"] = 1
    if wrong and what == "tensor":
        state = {"w": "a text"}
    if wrong and what == "layout":
        state = [sharded(session, 1, np.zeros_like(whole()[part(1, rank, size)]))]
    if wrong and what == "missing":
        state = []
    if wrong and what == "uri":
        place = 3
    error = error_of(session.load, place, state, **options)
    session.load(folder, [sharded(session, 0, target)])
    return [error, target.tolist() == source.tolist()]


@pytest.mark.parametrize("what", ["nothing there", "no such tensor", "option", "tensor", "layout",
                                  "missing", "uri"])
def test_wrong_input(tmp_path: Path, what: str) -> None:
    words = {"nothing there": "nowhere", "no such tensor": "v", "option": "colour"}
    for error, good in run_ranks(2, rank_is_wrong, str(tmp_path / "c"), what):
        assert good
        assert "Error" in error["types"], error
        assert words.get(what, "w" if what != "uri" else "uri") in error["text"], error


def rank_saves_badly(session: sluice.Session, folder: str) -> Any:
    layout = sluice.Layout(mesh=list(range(session.size)), placements=[sluice.Partial("sum")])
    partial = sluice.Tensor("w", shape=SHAPE, dtype="f32", layout=layout,
                            view=np.zeros(SHAPE, np.float32))
    return [error_of(session.save, folder, [partial]),
            error_of(session.save, folder, {}, dtype="i32"),
            error_of(session.save, folder, {"a": np.zeros(1), "b": np.zeros(1)},
                     rename=lambda name: "same")]


def test_what_is_not_saved(tmp_path: Path) -> None:
    for partial, dtype, same in run_ranks(2, rank_saves_badly, str(tmp_path / "c")):
        assert "Unsupported" in partial["types"] or "InvalidSpec" in partial["types"]
        assert "Partial" in partial["text"] and "i32" in dtype["text"]
        assert "same" in same["text"]
