"""A load and transfers into what a loader was captured to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
sluice = pytest.importorskip("sluice")

from ranks import run_ranks  # noqa: E402
from stand_ins import values_of  # noqa: E402

SHAPES = {"q": (8, 4), "k": (4, 4), "embed": (6, 4), "o": (4, 8), "odd": (3, 3), "unused": (2,)}


def values(step: int) -> dict[str, Any]:
    rng = np.random.default_rng(step)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}


def rank_fills_an_engine(session: Any, folder: str) -> list[bool]:
    """Parameters are fused, sliced, transposed with a cast, tied, or computed."""
    rank, size = session.rank, session.size
    own = slice(rank * 8 // size, (rank + 1) * 8 // size)
    half = slice(own.start // 2, own.stop // 2)
    params = {"qk": np.zeros((12 // size, 4), np.float32), "embed": np.zeros((8, 4), np.float32),
              "head": np.zeros((6, 4), np.float32), "o": np.zeros((8 // size, 4), np.float64),
              "odd": np.zeros((3, 3), np.float32)}

    def load(weights: Any) -> None:
        for name, tensor in weights:
            if name == "q":
                np.copyto(params["qk"][:8 // size], tensor.narrow(0, own.start, 8 // size))
            elif name == "k":
                np.copyto(params["qk"][8 // size:], tensor[half])
            elif name == "embed":  # 6 rows, padded to 8
                np.copyto(params["embed"][:6], tensor)
                np.copyto(params["head"], tensor)
            elif name == "o":
                np.copyto(params["o"], tensor.t()[own])
            elif name == "odd":
                np.copyto(params["odd"], np.asarray(values_of(tensor)) * 2)

    def is_filled(arrays: dict[str, Any]) -> bool:
        wanted = {"qk": np.concatenate([arrays["q"][own], arrays["k"][half]]),
                  "embed": np.concatenate([arrays["embed"], np.zeros((2, 4), np.float32)]),
                  "head": arrays["embed"], "o": arrays["o"].T[own], "odd": 2 * arrays["odd"]}
        return all((params[name] == array).all() for name, array in wanted.items())

    specs = {name: (shape, "f32") for name, shape in SHAPES.items()}
    odd = {"odd": specs.pop("odd")}  # without PyTorch all would fall back with it
    captured = [sluice.capture(load, one, params) for one in (specs, odd)]
    assert [list(one.fallback) for one in captured] == [[], ["odd"]]
    session.save(folder, values(0) if rank == 0 else {})
    for one in captured:
        session.load(folder, one)
    good = [is_filled(values(0))]
    # Each rank has a part of each source.
    layout = sluice.Layout(list(range(size)), "S(0)")
    rows = {name: slice(*layout.owned_ranges(shape, rank)[0][0]) for name, shape in SHAPES.items()}
    parts = {name: values(0)[name][rows[name]].copy() for name in SHAPES}
    sources = [sluice.Tensor(name, shape, "f32", layout, parts[name])
               for name, shape in SHAPES.items()]
    transfers = [session.transfer(sources, one, ignore_unused=True) for one in captured]
    for step in (1, 2):
        for name, part in parts.items():
            part[...] = values(step)[name][rows[name]]
        for transfer in transfers:
            transfer.start().wait(120)
        good.append(is_filled(values(step)))
    return good


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_load_and_transfers_write_where_the_loader_writes(tmp_path: Path, ranks: int) -> None:
    assert run_ranks(ranks, rank_fills_an_engine, str(tmp_path / "c")) == [[True] * 3] * ranks


def rank_has_a_loader_of_its_own(session: Any) -> list[bool]:
    """One rank's loader can be captured, and the other one's needs values."""
    params = {"x": np.zeros((4, 3), np.float32), "y": np.zeros(2, np.float32)}
    rank = session.rank

    def load(weights: Any) -> None:
        for name, tensor in weights:
            if rank == 0:
                np.copyto(params[name], tensor.narrow(0, 0, len(params[name])))
            else:
                np.copyto(params[name], np.asarray(values_of(tensor)) + 1)

    captured = sluice.capture(load, {"x": ((4, 3), "f32"), "y": ((2,), "f32")}, params)
    assert bool(captured.fallback) == (rank == 1)
    given = {"x": np.arange(12, dtype=np.float32).reshape(4, 3), "y": np.ones(2, np.float32)}
    transfer = session.transfer(given if rank == 0 else None, captured)
    transfer.run()
    return [bool((params[name] == given[name] + rank).all()) for name in given]


def test_a_tensor_falls_back_on_one_rank_and_not_on_another() -> None:
    assert run_ranks(2, rank_has_a_loader_of_its_own) == [[True, True]] * 2
