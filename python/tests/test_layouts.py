"""Layouts, boxes and tensors as a user gives them. The oracle cuts lists of indices."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Sequence

import pytest

from sluice._errors import InvalidSpec, Unsupported
from sluice._layouts import (Box, Boxes, Layout, Partial, Placement, Replicate, Shard,
                             StridedShard, Tensor, parse_placements)


def chunks(indices: list[int], parts: int) -> list[list[int]]:
    step = -(-len(indices) // parts)
    return [indices[i * step:(i + 1) * step] if step else [] for i in range(parts)]


def indices_of(shape: Sequence[int], sizes: Sequence[int], placements: Sequence[Placement],
               order: Sequence[int], coordinate: Sequence[int]) -> list[list[int]]:
    dims = [list(range(n)) for n in shape]
    for m in order:
        placement = placements[m]
        if isinstance(placement, Shard):
            dims[placement.dim] = chunks(dims[placement.dim], sizes[m])[coordinate[m]]
        elif isinstance(placement, StridedShard):
            dims[placement.dim] = [
                i for piece in chunks(dims[placement.dim], placement.split_factor)
                for i in chunks(piece, sizes[m])[coordinate[m]]]
    return dims


@pytest.mark.parametrize("seed", range(200))
def test_owned_ranges_are_those_of_the_rule(seed: int) -> None:
    rng = random.Random(seed)
    shape = [rng.randint(0, 13) for _ in range(rng.randint(1, 3))]
    sizes = [rng.randint(1, 4) for _ in range(rng.randint(1, 3))]
    ranks = rng.sample(range(100), len(list(itertools.product(*map(range, sizes)))))
    placements = [rng.choice([Replicate(), Partial("sum"), Shard(rng.randrange(len(shape))),
                              StridedShard(rng.randrange(len(shape)), rng.randint(1, 4))])
                  for _ in sizes]
    order = list(range(len(sizes)))
    if rng.random() < 0.5:
        rng.shuffle(order)
    layout = Layout.over(sizes, ranks, placements, order)
    for rank, coordinate in zip(ranks, itertools.product(*map(range, sizes))):
        assert layout.coordinate(rank) == coordinate
        expected = indices_of(shape, sizes, placements, order, coordinate)
        owned = layout.owned_ranges(shape, rank)
        assert [[i for a, b in dim for i in range(a, b)] for dim in owned] == expected
        assert all(a < b for dim in owned for a, b in dim)
        assert all(b < c for dim in owned for (_, b), (c, _) in zip(dim, dim[1:]))
        assert layout.local_shape(shape, rank) == tuple(len(dim) for dim in expected)
    assert layout.local_shape(shape, 1000) == (0,) * len(shape)


def test_examples_of_the_documentation() -> None:
    layout = Layout([0, 1, 2, 3], "S(0)")
    assert [layout.owned_ranges([10], r)[0] for r in range(4)] == [[(0, 3)], [(3, 6)], [(6, 9)],
                                                                   [(9, 10)]]
    layout = Layout([[0, 1], [2, 3]], "SS(0,2),S(0)")
    assert [layout.owned_ranges([8], r)[0] for r in range(4)] == [[(0, 2)], [(4, 6)], [(2, 4)],
                                                                  [(6, 8)]]
    assert [Layout(range(4), "S(0)").local_shape([6], r) for r in range(4)] == [(2,), (2,), (2,),
                                                                                (0,)]


def test_placements_are_read_and_written() -> None:
    placements = (Replicate(), Shard(1), StridedShard(0, 2), Partial("avg"))
    text = ",".join(map(str, placements))
    assert text == "R,S(1),SS(0,2),P(avg)"
    assert parse_placements(text) == placements
    assert parse_placements(" R , S( 1 ),SS(0 , 2),P(avg) ") == placements
    assert Layout([[0], [1]], [Shard(0), "R"]) == Layout([[0], [1]], "S(0),R")
    assert Layout([0, 1], Shard(0)) == Layout((0, 1), ["S(0)"])


@pytest.mark.parametrize("text", ["", "X", "S", "S()", "S(a)", "SS(0)", "S(0) R", "S(0),", ",R",
                                  "S(0),,R", "P()", "R,"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidSpec, match="placements"):
        parse_placements(text)


@pytest.mark.parametrize("mesh, placements, order, text", [
    ([[0, 1], [2]], "R,R", None, "different lengths"),
    ([0, 0], "R", None, "distinct"),
    ([-1, 0], "R", None, "0 or more"),
    ([], "R", None, "nested lists"),
    (3, "R", None, "nested lists"),
    ([0, [1]], "R", None, "mixes"),
    (["a"], "R", None, "integers"),
    ([[0, 1]], "R", None, "2 dimensions has 1 placements"),
    ([[0, 1]], "R,R", (0, 0), "order"),
    ([[0, 1]], "R,R", "tp,dp", "no dimension 'tp'"),
    ([0], [3], None, "not a placement"),
    ([0], [StridedShard(0, 0)], None, "split factor"),
])
def test_layouts_that_make_no_sense(mesh: object, placements: object, order: object,
                                    text: str) -> None:
    with pytest.raises(InvalidSpec, match=text):
        Layout(mesh, placements, order)  # type: ignore[arg-type]


def test_partial_ops_that_do_not_exist_are_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="'bxor'"):
        Layout([0], [Partial("bxor")])


def test_orders() -> None:
    by_name = Layout([[0, 1], [2, 3]], "S(0),S(0)", "tp,dp", names="dp,tp")
    assert by_name.order == (1, 0)
    assert by_name == Layout([[0, 1], [2, 3]], "S(0),S(0)", (1, 0))
    assert Layout([[0, 1]], "S(0),S(0)", (0, 1)).order == ()
    assert by_name != Layout([[0, 1], [2, 3]], "S(0),S(0)")
    assert "in order 1,0" in str(by_name)


def test_layouts_are_values() -> None:
    layout = Layout([[3, 1], [2, 0]], "S(0),P(max)", (1, 0))
    assert eval(repr(layout), {"Layout": Layout}) == layout
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert len({layout, Layout([[3, 1], [2, 0]], "S(0),P(max)", (1, 0))}) == 1
    assert layout.with_ranks((7, 6, 5, 4)).ranks == (7, 6, 5, 4)
    assert layout.is_partial and not Layout([0], "R").is_partial


def test_negative_dimensions_count_from_the_end() -> None:
    tensor = Tensor("w", (4, 6), "f32", Layout([0, 1], [Shard(-1)]))
    assert tensor.layout == Layout([0, 1], "S(1)")
    with pytest.raises(InvalidSpec, match=r"'w': placement S\(2\)"):
        Tensor("w", (4, 6), "f32", Layout([0, 1], "S(2)"))


def test_boxes() -> None:
    boxes = Boxes([Box((0, 2), (4, 2)), Box([1, 4], [1, 1])], shape=(4, 6))
    assert len(boxes) == 2 and [box.offset for box in boxes] == [(0, 2), (1, 4)]
    assert not boxes.boxes[0].overlaps(boxes.boxes[1])
    assert boxes.boxes[0].overlaps(Box((3, 3), (1, 1)))
    for make, text in ((lambda: Box((0,), (1, 1)), "each dimension"),
                       (lambda: Box((-1,), (1,)), "0 or more"),
                       (lambda: Box((0,), (0,)), "no element"),
                       (lambda: Boxes([Box((0,), (1,)), Box((0, 0), (1, 1))]), "one number"),
                       (lambda: Boxes([3]), "not a Box"),
                       (lambda: Boxes([Box((3,), (2,))], shape=(4,)), "does not lie")):
        with pytest.raises(InvalidSpec, match=text):
            make()


def test_tensors() -> None:
    tensor = Tensor("w", [4, 6], "bfloat16")
    assert tensor.shape == (4, 6) and tensor.dtype == "bf16" and tensor.layout is None
    for make, text in ((lambda: Tensor("", (1,), "f32"), "name"),
                       (lambda: Tensor("w", (-1,), "f32"), "'w' has shape"),
                       (lambda: Tensor("w", (4,), "f32", "S(0)"), "'w': layout is a str"),
                       (lambda: Tensor("w", (4,), "f32", Boxes([Box((4,), (1,))])),
                        "'w': .*does not lie"),
                       (lambda: Tensor("w", (4,), "f32", Boxes([]), view=b""), "'w': its boxes")):
        with pytest.raises(InvalidSpec, match=text):
            make()
    with pytest.raises(Unsupported, match="'w': dtype quint8"):
        Tensor("w", (4,), "quint8")


def test_boxes_do_not_change() -> None:
    box = Box((0, 1), (2, 3), view=bytearray(6))
    boxes = Boxes([box], (4, 4))
    for thing, name in ((box, "view"), (box, "offset"), (boxes, "boxes"), (boxes, "shape")):
        with pytest.raises(AttributeError, match="does not change"):
            setattr(thing, name, None)
    again = pickle.loads(pickle.dumps(boxes))
    assert again == boxes and again.shape == (4, 4) and again.boxes[0].view == bytearray(6)
