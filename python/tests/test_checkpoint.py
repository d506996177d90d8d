"""Checkpoints into and out of state dicts, by ranks that do not all have the same tensors."""

from __future__ import annotations

import json
import random
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


def _header(path: Path) -> Any:
    data = path.read_bytes()
    return json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])


def test_a_scalar_stays_one(session: sluice.Session, tmp_path: Path) -> None:
    def zeros() -> dict[str, Any]:
        return {"scalar": np.zeros((), np.float32), "one": np.zeros((1,), np.float32)}

    state = {"scalar": np.array(3.5, np.float32), "one": np.array([4.5], np.float32)}
    session.save(tmp_path / "new", state, progress=False)
    header = _header(tmp_path / "new" / "model.safetensors")
    assert header["scalar"]["shape"] == [] and header["one"]["shape"] == [1]
    # Each is taken for the other: files that older versions wrote have [1] for both.
    for rename in ({}, {"scalar": "one", "one": "scalar"}):
        loaded = zeros()
        session.load(tmp_path / "new", loaded, rename=rename, progress=False)
        for name, value in loaded.items():
            assert value.shape == state[name].shape
            assert (value == state[rename.get(name, name)]).all()
    with pytest.raises(sluice.InvalidSpec, match=r"'scalar' has shape \[\] in the checkpoint"):
        session.load(tmp_path / "new", {"scalar": np.zeros((2,), np.float32)}, progress=False)


def rank_saves_another_shape(session: sluice.Session, folder: str) -> Any:
    shape = () if session.rank else (1,)
    one = sluice.Tensor("w", shape=shape, dtype="f32", view=np.ones(shape, np.float32),
                        layout=sluice.Layout(mesh=[0, 1], placements="R"))
    return error_of(lambda: session.save(folder, [one], progress=False))


def test_a_scalar_is_one_on_all_ranks(tmp_path: Path) -> None:
    for error in run_ranks(2, rank_saves_another_shape, str(tmp_path / "x")):
        assert "tensor 'w': rank 0 has scalar False, and rank 1 has True" in error["text"]


def test_load_and_save_take_the_same_paths(session: sluice.Session, tmp_path: Path,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = {"a": np.arange(4, dtype=np.float32)}
    for place in (tmp_path / "one", f"{tmp_path}/run-10:30", tmp_path / "a:b", "run-1:2"):
        target = {"a": np.zeros(4, np.float32)}
        session.save(place, source)
        session.load(place, target)
        assert (target["a"] == source["a"]).all()
    for call in (session.save, session.load):
        for wrong in ("", 7):
            with pytest.raises(sluice.InvalidSpec, match="has to be a str or a path"):
                call(wrong, source)


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


def test_what_is_not_there(session: sluice.Session, tmp_path: Path) -> None:
    session.save(tmp_path / "c", {"w": whole()})
    for folder, name, text in (("nowhere", "w", "nowhere"), ("c", "v", "'v'")):
        with pytest.raises(sluice.InvalidSpec, match=text):
            session.load(tmp_path / folder, {name: np.zeros(SHAPE, np.float32)})


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


def cut_at_random(chance: random.Random, shape: tuple[int, ...], ranks: int,
                  dim: int = 0) -> list[list[tuple[Any, Any]]]:
    """Boxes of each rank, which cover a tensor of `shape`; some lie on several ranks."""
    boxes = [((0,) * len(shape), shape)]
    for _ in range(chance.randrange(6)):
        offset, size = boxes.pop(chance.randrange(len(boxes)))
        d = chance.randrange(len(shape))
        at = chance.randrange(size[d] + 1)
        for begin, length in ((0, at), (at, size[d] - at)):
            if length:
                boxes.append(((*offset[:d], offset[d] + begin, *offset[d + 1:]),
                              (*size[:d], length, *size[d + 1:])))
    held: list[list[tuple[Any, Any]]] = [[] for _ in range(ranks)]
    for box in boxes:
        for rank in chance.sample(range(ranks), chance.randrange(1, min(ranks, 2) + 1)):
            held[rank].append(box)
    return held


def inside(box: tuple[Any, Any]) -> tuple[slice, ...]:
    return tuple(slice(o, o + n) for o, n in zip(*box))


def boxes_of(array: Any, held: list[tuple[Any, Any]], fill: bool) -> Any:
    """Boxes with memory: of the array's elements, or of zeros."""
    return [sluice.Box(offset, shape,
                       np.array(array[inside((offset, shape))], order="C") if fill
                       else np.zeros(shape, array.dtype))
            for offset, shape in held]


def rank_has_boxes(session: sluice.Session, folder: str, seed: int) -> Any:
    """Saves from boxes, loads into others, into placements, and what placements have saved."""
    chance = random.Random(seed)  # the same on all ranks
    rank, size = session.rank, session.size
    bad = []
    arrays = {f"w{i}": np.random.default_rng(seed + i).integers(
        0, 99, tuple(chance.randrange(1, 9) for _ in range(chance.randrange(1, 4)))).astype(kind)
        for i, kind in enumerate((np.float32, np.int16, np.float64))}
    state, targets = [], []
    for name, array in arrays.items():
        shape, dtype = array.shape, str(array.dtype)
        held = cut_at_random(chance, shape, size)[rank]
        if held:
            state.append(sluice.Tensor(name, shape, dtype, sluice.Boxes(
                boxes_of(array, held, True))))
        # A load may leave elements out.
        held = [box for box in cut_at_random(chance, shape, size)[rank] if box[1][0] > 1]
        if held:
            targets.append(sluice.Tensor(name, shape, dtype, sluice.Boxes(
                boxes_of(array, held, False))))
    saved = session.save(folder, state)
    loaded = session.load(folder, targets)
    for tensor in targets:
        for box in tensor.layout:  # type: ignore[union-attr]
            if (box.view != arrays[tensor.name][inside((box.offset, box.shape))]).any():
                bad.append([tensor.name, str(box)])
    plain = {name: np.zeros_like(array) for name, array in arrays.items()}
    session.load(f"buffered:{folder}", plain)
    bad += [name for name, array in arrays.items() if (plain[name] != array).any()]
    return [bad, saved["tensors"], loaded["bytes"] == sum(
        box.view.nbytes for tensor in targets for box in tensor.layout)]  # type: ignore[union-attr]


@pytest.mark.parametrize("ranks,seed", [(1, 1), (2, 2), (3, 3), (3, 4), (4, 5)])
def test_boxes(tmp_path: Path, ranks: int, seed: int) -> None:
    for k in range(3):
        for bad, saved, whole_bytes in run_ranks(ranks, rank_has_boxes,
                                                 str(tmp_path / f"c{k}"), 100 * k + seed):
            assert bad == [] and saved == 3 and whole_bytes


def rank_loads_once_and_again(session: sluice.Session, folder: str) -> Any:
    """One tensor of the checkpoint goes to several places, not the same ones on all ranks."""
    session.save(folder, {"w": whole(), "v": whole() + 1} if session.rank == 0 else {})
    kinds = {f"t{i}": np.zeros(SHAPE, kind) for i, kind in enumerate(
        (np.float32, np.float64, np.float32) if session.rank else (np.float64,))}
    top = np.zeros((4, 6), np.float32)
    state: list[Any] = [*kinds.items()]
    if session.rank == 0:
        state.append(sluice.Tensor("box", SHAPE, "f32",
                                   sluice.Boxes([sluice.Box((0, 0), (4, 6), top)])))
    stats = session.load(folder, [sluice.Tensor(name, SHAPE, str(array.dtype), None, array)
                                  for name, array in kinds.items()] + state[len(kinds):],
                         rename=lambda name: "w")
    good = [bool((array == whole()).all()) for array in kinds.values()]
    return [all(good), session.rank == 1 or top.tolist() == whole()[:4].tolist(),
            stats["tensors"] >= 1 and stats["tensors_ignored"] == 1]


def test_one_tensor_for_several(tmp_path: Path) -> None:
    assert run_ranks(2, rank_loads_once_and_again, str(tmp_path / "c")) == [[True] * 3] * 2


def test_several_destinations_are_filled_or_none(session: sluice.Session, tmp_path: Path) -> None:
    session.save(tmp_path / "c", {"w": whole()})
    good, bad = np.full(SHAPE, -1, np.float32), np.full(SHAPE, -1, np.int32)
    memory = np.full(SHAPE[0] * SHAPE[1] + 4, -1, np.float32)
    first, second = (memory[i:i + SHAPE[0] * SHAPE[1]].reshape(SHAPE) for i in (0, 4))
    for state, text in (({"a": good, "b": bad}, "cannot be cast to i32"),
                        ({"a": first, "b": second}, "share memory")):
        with pytest.raises(sluice.InvalidSpec, match=text):
            session.load(str(tmp_path / "c"), state, rename=lambda name: "w")
    assert (good == -1).all() and (bad == -1).all() and (memory == -1).all()


def rank_has_bad_boxes(session: sluice.Session, folder: str, what: str) -> Any:
    rank = session.rank
    session.save(folder, {"w": whole()} if rank == 0 else {})
    target = np.full((5, 6), -1, np.float32)

    def boxed(array: Any, shape: tuple[int, ...] = SHAPE, dtype: str = "f32", *,
              first: int = 5 * rank, rows: int = 5) -> sluice.Tensor:
        return sluice.Tensor("w", shape, dtype, sluice.Boxes(
            [sluice.Box((first, 0), (rows, 6), array)]))

    tensor = boxed(target)
    if what == "gap":
        tensor = boxed(np.zeros((4, 6), np.float32), rows=4)
    elif what == "mixed save" and rank == 0:
        tensor = sluice.Tensor("w", SHAPE, "f32", None, whole())
    elif what == "dtypes save" and rank == 1:
        tensor = boxed(np.zeros((5, 6), np.float64), dtype="f64")
    elif what == "shape" and rank == 1:
        tensor = boxed(target, (11, 6))
    elif what == "view" and rank == 1:
        tensor = boxed(None)
    elif what == "outside" and rank == 1:
        tensor = boxed(target, (5, 6), first=0)
    call = session.save if "save" in what or what == "gap" else session.load
    error = error_of(call, folder, [tensor])
    untouched = bool((target == -1).all())
    plain = {"w": np.zeros(SHAPE, np.float32)}
    session.load(folder, plain)
    return [error, untouched, plain["w"].tolist() == whole().tolist()]


@pytest.mark.parametrize("what", ["shape", "view", "outside", "gap", "mixed save", "dtypes save"])
def test_bad_boxes(tmp_path: Path, what: str) -> None:
    for error, untouched, old in run_ranks(2, rank_has_bad_boxes, str(tmp_path / "c"), what):
        assert untouched and old
        assert "Error" in error["types"] and "w" in error["text"], error
