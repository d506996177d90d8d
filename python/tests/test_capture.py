"""Capture without PyTorch: what recording tensors record, against lists that are really cut."""

from __future__ import annotations

import array
import ctypes
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import prod
from typing import Any

import pytest

from random_views import random_view

from sluice import _strided
from sluice._capture import capture
from sluice._captured import Captured
from sluice._errors import InvalidSpec
from sluice._layouts import Boxes, Tensor
from sluice._memory import Described, dense_strides, describe
from sluice._recording import Destination
from sluice._state import DST, halves
from sluice._strided import Base, Strided, pair
from sluice._views import Uncapturable, View


class Values(View):
    """The oracle: a view of a list with the same methods, whose copies are real."""

    def __init__(self, values: list[int], shape: Sequence[int],
                 strides: Sequence[int] | None = None, offset: int = 0) -> None:
        super().__init__(tuple(shape), tuple(dense_strides(shape) if strides is None else strides),
                         offset)
        self.values = values

    def _view(self, shape: Sequence[int], strides: Sequence[int], offset: int) -> Values:
        return Values(self.values, shape, strides, offset)

    def _dense_copy(self) -> Values:
        return Values([self.values[i] for i in self.places()], self.shape)

    def places(self) -> list[int]:
        return places(self.shape, self._strides, self._offset)


def places(shape: Sequence[int], strides: Sequence[int], offset: int) -> list[int]:
    found = [offset]
    for n, stride in zip(shape, strides):
        found = [at + i * stride for at in found for i in range(n)]
    return found


def params(**shapes: tuple[int, ...]) -> tuple[dict[str, Any], dict[str, Destination]]:
    """Arrays of -1, and what a loader sees of them."""
    arrays = {name: array.array("i", [-1] * prod(shape)) for name, shape in shapes.items()}
    views = {name: memoryview(data).cast("B").cast("i", list(shapes[name]) or None)
             for name, data in arrays.items()}
    return arrays, {name: Destination(view) for name, view in views.items()}


def read(view: Described) -> list[ctypes.c_int]:
    strides = view.strides or dense_strides(view.shape)
    return [ctypes.c_int.from_address(view.ptr + 4 * at)
            for at in places(view.shape, strides, 0)]


def apply(captured: Captured, values: dict[str, Values]) -> None:
    """What a transfer does."""
    for target in captured.targets:
        source = values[captured.renames.get(target.name, target.name)]
        if not isinstance(target.layout, Boxes):
            for place, value in zip(read(describe(target.view, writable=True)), source.values):
                place.value = value
            continue
        whole = Values(source.values, target.shape)
        for box in target.layout:
            part = whole[tuple(slice(o, o + n) for o, n in zip(box.offset, box.shape))]
            for place, at in zip(read(box.view), part.places()):
                place.value = part.values[at]
    captured.finish()


def counted(*shape: int, first: int = 0) -> Values:
    return Values(list(range(first, first + prod(shape))), shape)


@pytest.mark.parametrize("seed", range(400))
def test_random_views_and_destinations(seed: int) -> None:
    rng = random.Random(seed)
    shape = tuple(rng.choice([1, 2, 3, 4, 6]) for _ in range(rng.randint(0, 4)))
    source = counted(*shape)
    wanted = random_view(random.Random(seed), source)
    order = list(range(wanted.ndim))
    rng.shuffle(order)
    room = [wanted.shape[d] + rng.randint(0, 2) for d in order]
    arrays, named = params(p=(prod(room),))
    target = named["p"].view(*room)[tuple(slice(0, wanted.shape[d]) for d in order)] if (
        order) else named["p"].view(())
    target = target.permute(*(order.index(d) for d in range(wanted.ndim))) if order else target

    def load(weights: Any) -> None:
        for _, loaded in weights:
            target.copy_(random_view(random.Random(seed), loaded))

    captured = capture(load, {"w": (shape, "i32")}, named)
    assert captured.fallback == {}
    expected = [-1] * prod(room)
    at = places(target.shape, target.stride(), target.storage_offset())
    for place, value in zip(at, wanted.places()):
        expected[place] = wanted.values[value]
    apply(captured, {"w": source})
    assert list(arrays["p"]) == expected


def test_a_reshape_needs_few_boxes() -> None:
    def boxes(shape: tuple[int, ...], cut: Callable[[Any], Any], target: tuple[int, ...]) -> int:
        _, named = params(p=target)
        captured = capture(lambda weights: [named["p"].copy_(cut(w)) for _, w in weights],
                           {"w": (shape, "i32")}, named)
        return len(captured.copies)

    assert boxes((12, 8), lambda w: w.t(), (8, 12)) == 1
    assert boxes((12, 8), lambda w: w.reshape(-1), (96,)) == 1
    assert boxes((12, 8), lambda w: w.view(3, 4, 8)[1], (4, 8)) == 1
    assert boxes((12, 8), lambda w: w.view(3, 4, 8).transpose(0, 1), (4, 3, 8)) == 3
    assert boxes((12, 8), lambda w: w.view(3, 4, 8).transpose(0, 1).contiguous()[1:3],
                 (2, 3, 8)) <= 3
    assert boxes((12, 8), lambda w: w.flatten()[4:92], (88,)) == 3
    assert boxes((12, 8), lambda w: w[::3], (4, 8)) == 4


def test_too_many_boxes_fall_back() -> None:
    n = _strided.PIECES_MAX + 1
    _, named = params(p=(n,))
    captured = capture(lambda weights: [named["p"].copy_(w[::2]) for _, w in weights],
                       {"w": ((2 * n,), "i32")}, named)
    assert captured.fallback == {"w": "it is copied in too many pieces"}


def test_pieces_of_views_of_copies() -> None:
    base = Base("w", (4, 6))
    turned = Strided(base, 0, (6, 4), (1, 6))
    copy = Base("w", (6, 4), turned)
    (piece,) = pair(Strided(copy, 8, (2, 4), (4, 1)), 0, (4, 1))  # rows 2 and 3 of the copy
    assert (piece.begin, piece.shape, piece.strides) == ((0, 2), (4, 2), (1, 4))


def fused(named: dict[str, Destination], rank: int, ranks: int) -> Callable[[Any], None]:
    """A loader as engines have it: fused, replicated, padded, per expert, transposed."""
    def load(weights: Any) -> None:
        for name, loaded in weights:
            if name in ("q", "k", "v"):
                own_q, kv = 12 // ranks, rank * 2 // ranks
                at, size, own = {"q": (0, own_q, rank), "k": (own_q, 4, kv),
                                 "v": (own_q + 4, 4, kv)}[name]
                named["qkv"].data.narrow(0, at, size).copy_(loaded.narrow(0, own * size, size))
            elif name in ("gate", "up"):
                half = named["gate_up"].chunk(2)[name == "up"]
                half[...] = loaded.chunk(ranks)[rank]
            elif name == "embed":
                rows = 16 // ranks
                have = min(10, (rank + 1) * rows) - min(10, rank * rows)
                named["embed"].data[:have].copy_(loaded.narrow(0, min(10, rank * rows), have))
            elif name.startswith("expert"):
                named["w13"].data[int(name[6])].copy_(loaded.chunk(ranks)[rank])
            elif name == "down":
                rows = 8 // ranks
                named["down"].copy_(loaded.t().contiguous()[rank * rows:(rank + 1) * rows])
            elif name == "scalar":
                named["scale"][1] = loaded
            elif name == "odd":
                named["odd"].copy_(loaded * 2)
    return load


SHAPES = {"q": (12, 3), "k": (8, 3), "v": (8, 3), "gate": (8, 3), "up": (8, 3), "embed": (10, 3),
          "expert0": (8, 2), "expert1": (8, 2), "down": (3, 8), "scalar": (), "skipped": (5,)}


def fused_params(ranks: int) -> tuple[dict[str, Any], dict[str, Destination]]:
    return params(qkv=(12 // ranks + 8, 3), gate_up=(16 // ranks, 3), embed=(16 // ranks, 3),
                  w13=(2, 8 // ranks, 2), down=(8 // ranks, 3), scale=(3,), odd=(4,))


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_fused_parameters(ranks: int) -> None:
    values = {name: counted(*shape, first=100 * i)
              for i, (name, shape) in enumerate(SHAPES.items())}
    for rank in range(ranks):
        arrays, named = fused_params(ranks)
        captured = capture(fused(named, rank, ranks), {n: (s, "i32") for n, s in SHAPES.items()},
                           named)
        assert captured.fallback == {} and captured.ignored == ["skipped"]
        apply(captured, values)
        kv, rows, up = rank * 2 // ranks, 16 // ranks, 8 // ranks
        q = values["q"].values[rank * (36 // ranks):(rank + 1) * (36 // ranks)]
        assert list(arrays["qkv"]) == [*q, *values["k"].values[kv * 12:kv * 12 + 12],
                                       *values["v"].values[kv * 12:kv * 12 + 12]]
        part = slice(rank * up * 3, (rank + 1) * up * 3)
        assert list(arrays["gate_up"]) == [*values["gate"].values[part], *values["up"].values[part]]
        have = values["embed"].values[rank * rows * 3:(rank + 1) * rows * 3]
        assert list(arrays["embed"]) == have + [-1] * (rows * 3 - len(have))
        part = slice(rank * up * 2, (rank + 1) * up * 2)
        assert list(arrays["w13"]) == [*values["expert0"].values[part],
                                       *values["expert1"].values[part]]
        down = values["down"].values
        assert list(arrays["down"]) == [down[r * 8 + c] for c in range(rank * up, (rank + 1) * up)
                                        for r in range(3)]
        assert list(arrays["scale"]) == [-1, values["scalar"].values[0], -1]


def test_what_is_captured_is_a_destination_of_a_transfer() -> None:
    _, named = fused_params(2)
    shapes = {**SHAPES, "odd": (4,)}
    captured = capture(fused(named, 1, 2), {n: (s, "i32") for n, s in shapes.items()}, named)
    assert set(captured.fallback) == set(shapes)
    assert captured.fallback["k"] == "all fall back with 'odd': the loader needs the values of it"
    entries = {entry.name: entry for entry in halves(captured, DST, rank=3).entries}
    # A box of all: another rank may have captured boxes of it.
    assert entries["odd"].boxes == [((0,), (4,))] and not entries["odd"].lacks_memory
    captured = capture(fused(named, 1, 2), {n: (s, "i32") for n, s in SHAPES.items()}, named)
    half = halves(captured, DST, rank=3)
    entries = {entry.name: entry for entry in half.entries}
    assert half.finish == captured.finish
    assert entries["k"].boxes == [((4, 0), (4, 3))] and entries["k"].shape == (8, 3)
    assert entries["scalar"].shape == (1,) and entries["scalar"].boxes == [((0,), (1,))]
    assert "skipped" not in entries


@pytest.mark.parametrize("use, reason", [
    (lambda p, w: w.to("f64"), "to()"), (lambda p, w: w + 1, "values"),
    (lambda p, w: float(w), "values"), (lambda p, w: w.item(), "item"),
    (lambda p, w: w.tolist(), "tolist"), (lambda p, w: w[[0, 1]], "index"),
    (lambda p, w: bool(w), "values"), (lambda p, w: w.narrow(0, 0, 1), "nowhere"),
    (lambda p, w: Destination(array.array("i", [0] * 4)).copy_(w), "no parameter"),
    (lambda p, w: (p.copy_(w), p[:1].copy_(w[1:2])), "twice"),
])
def test_what_is_no_copy_falls_back_with_the_reason(use: Any, reason: str) -> None:
    _, named = params(p=(4,))
    captured = capture(lambda weights: [use(named["p"], w) for _, w in weights],
                       {"w": ((4,), "i32")}, named)
    assert captured.copies == [] and reason in captured.fallback["w"]


def test_a_tensor_that_does_not_fit_is_refused_unless_the_loader_goes_on() -> None:
    _, named = params(p=(4,))

    def load(weights: Any) -> None:
        for _, w in weights:
            named["p"].copy_(w.narrow(0, 0, 1).unsqueeze(0).expand(7, 1))

    def load_others(weights: Any) -> None:
        with suppress(Exception):
            load(weights)

    with pytest.raises(InvalidSpec, match=r"tensor 'w' of shape \[4\]: .*into another shape, \[4\]"):
        capture(load, {"w": ((4,), "i32")}, named)
    captured = capture(load_others, {"w": ((4,), "i32")}, named)
    assert "another shape" in captured.fallback["w"]


def test_asking_for_an_attribute_is_no_use_of_it() -> None:
    _, named = params(p=(4,))

    def load(weights: Any) -> None:
        for _, w in weights:
            assert not hasattr(w, "weight_loader") and getattr(w, "is_sharded", 3) == 3
            named["p"].copy_(w)

    assert capture(load, {"w": ((4,), "i32")}, named).fallback == {}


def test_casts() -> None:
    data = {"p": Destination(array.array("f", [0] * 4))}
    load = lambda weights: [data["p"].copy_(w) for _, w in weights]  # noqa: E731
    assert capture(load, {"w": ((4,), "bf16")}, data).fallback == {}
    assert capture(load, {"w": ((4,), "i32")}, data).fallback == {
        "w": "there is no cast from i32 to f32"}


def test_a_source_that_goes_to_two_places_is_two_destinations() -> None:
    arrays, named = params(a=(4,), b=(2,))

    def load(weights: Any) -> None:
        for name, loaded in weights:
            if name == "w":
                named["a"].copy_(loaded)
                named["b"].copy_(loaded[1:3])

    captured = capture(load, [("w", (4,), "i32"), Tensor("w#2", (4,), "i32")], named)
    assert [target.name for target in captured.targets] == ["w", "w#2'"]
    assert captured.renames == {"w#2'": "w"} and captured.ignored == ["w#2"]
    apply(captured, {"w": counted(4)})
    assert list(arrays["b"]) == [1, 2]


def test_repeated_elements_are_several_destinations() -> None:
    arrays, named = params(p=(3, 2))
    captured = capture(lambda ws: [named["p"].copy_(w) for _, w in ws], {"w": ((2,), "i32")}, named)
    assert captured.fallback == {} and len(captured.targets) == 3
    apply(captured, {"w": counted(2, first=5)})
    assert list(arrays["p"]) == [5, 6] * 3


def test_what_falls_back_is_loaded_from_a_whole_copy() -> None:
    _, named = params(p=(4,))
    given: list[Any] = []

    def load(weights: Any) -> None:
        for name, w in weights:
            if isinstance(w, Described):
                given.append((name, [place.value for place in read(w)]))
            else:
                named["p"].copy_(w * 2)

    captured = capture(load, {"w": ((4,), "i32")}, named)
    apply(captured, {"w": counted(4, first=3)})
    assert given == [("w", [3, 4, 5, 6])]


def test_a_loader_that_wants_all_tensors_gets_all_of_them_whole() -> None:
    _, named = params(p=(4,))

    def load(weights: Any) -> None:
        given = dict(weights)
        if len(given) < 2:
            raise ValueError("one is missing")
        named["p"].copy_(given["a"])
        given["b"].narrow(0, 0, 1)

    captured = capture(load, {"a": ((4,), "i32"), "b": ((4,), "i32")}, named)
    assert captured.copies == [] and list(captured.fallback) == ["a", "b"]
    assert captured.fallback["a"].endswith("nothing shows what the loader does without PyTorch")


@pytest.mark.parametrize("names", ["abc", "bac", "acb", "ba"])
def test_a_loader_that_places_by_what_came_before_gets_all_tensors_whole(names: str) -> None:
    _, named = params(p=(3, 4))

    def load(weights: Any) -> None:
        i = 0
        for name, w in weights:
            if name != "b" or w > 0:
                named["p"][i].copy_(w)
                i += 1

    captured = capture(load, {name: ((4,), "i32") for name in names}, named)
    assert captured.copies == [] and set(captured.fallback) == set(names)


def test_numpy_copies_are_recorded() -> None:
    np = pytest.importorskip("numpy")
    data = np.zeros((4, 3), "f4")

    def load(weights: Any) -> None:
        for _, w in weights:
            np.copyto(data[1:3], w.reshape(2, 3))

    captured = capture(load, {"w": ((6,), "f32")}, {"p": data})
    assert captured.fallback == {}
    (copy,) = captured.copies
    assert copy.memory.view == (data.ctypes.data + 12, (6,), None, "f32", 1, 0)
    captured = capture(lambda ws: [data.__setitem__(0, w) for _, w in ws], {"w": ((3,), "f32")},
                       {"p": data})
    assert list(captured.fallback) == ["w"]


def test_errors() -> None:
    _, named = params(p=(4,))
    with pytest.raises(InvalidSpec, match="'w' is there twice"):
        capture(print, [("w", (1,), "i32"), ("w", (1,), "i32")], named)
    with pytest.raises(InvalidSpec, match="'p'.*written"):
        capture(print, {}, {"p": b"abc"})

    def load(weights: Any) -> None:
        raise KeyError("unknown name")

    with pytest.raises(KeyError):
        capture(load, {"w": ((1,), "i32")}, named)
    assert issubclass(Uncapturable, Exception)
