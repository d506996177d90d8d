"""Layouts, boxes and tensors as a user gives them."""

from __future__ import annotations

import pickle

import pytest

from sluice._errors import InvalidSpec, Unsupported
from sluice._layouts import (Box, Boxes, Layout, Partial, Replicate, Shard, StridedShard,
                             Tensor, parse_placements)


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
    assert layout.coordinate(2) == (1, 0) and layout.coordinate(5) is None
    assert layout.local_shape((3,), 1000) == (0,)
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
