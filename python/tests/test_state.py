"""What ranks give: state dicts of all kinds of values, names, tied weights, windows."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from stand_ins import DTensor, Shard
from stand_ins import Tensor as Memory

from sluice._errors import InvalidSpec, Unsupported
from sluice._layouts import Box, Boxes, Layout, Tensor
from sluice._state import DST, SRC, Half, halves, into


def read(state: Any, side: str = DST, rank: int = 0, **more: Any) -> Half:
    return halves(state, side, rank=rank, **more)


def names(half: Half) -> list[str]:
    return [entry.name for entry in half.entries]


def test_nothing_is_an_empty_half() -> None:
    for nothing in (None, {}, []):
        assert read(nothing) == Half()


def test_nested_names_get_dots() -> None:
    state = {"model": {"a": bytearray(3), "layers": {0: bytearray(1)}}, "step": bytearray(8),
             "none": None}
    assert names(read(state)) == ["model.a", "model.layers.0", "step"]


def test_plain_tensors_are_whole_copies_of_this_rank() -> None:
    data = bytearray(6)
    (entry,) = read({"w": data}, rank=5).entries
    assert entry.plain and entry.layout == Layout.whole(5)
    assert (entry.shape, entry.dtype, entry.window) == ((6,), "u8", None)
    assert entry.native_view[1:] == ((6,), None, "u8", 1, 0)
    assert entry.memories == entry.owner and not entry.lacks_memory


def test_scalars_have_one_dimension() -> None:
    (entry,) = read({"w": Memory(())}).entries
    assert entry.shape == (1,) and entry.native_view[1] == (1,)
    (entry,) = read([Tensor("w", (), "f32", view=Memory(()))]).entries
    assert entry.shape == (1,) and entry.native_view[1] == (1,)


def test_dtensors() -> None:
    tensor = DTensor((7, 2), (2,), [Shard(0)], Memory((3, 2)), ranks=[4, 9])
    (entry,) = read({"w": tensor}, rank=1, rank_of={4: 0, 9: 1}.__getitem__).entries
    assert entry.layout == Layout([0, 1], "S(0)") and entry.shape == (7, 2)
    assert entry.native_view == (tensor._local.data_ptr(), (3, 2), None, "f32", 1, 0)
    assert not entry.plain


def test_tensors_with_layouts() -> None:
    layout = Layout([0, 1], "S(0)")
    (entry,) = read([Tensor("w", (5,), "f32", layout, Memory((2,)), window=3)], rank=1).entries
    assert entry.window == 3 and entry.layout is layout and entry.owns
    for view, text in ((Memory((3,)), r"shape \[3\].*\[2\] of \[5\]"),
                       (Memory((2,), dtype="torch.int32"), "of f32, and its memory of i32")):
        with pytest.raises(InvalidSpec, match=f"'w'.*{text}"):
            read([Tensor("w", (5,), "f32", layout, view)], rank=1)
    (late,) = read([Tensor("w", (5,), "f32", layout)], rank=1).entries
    assert late.native_view is None and late.lacks_memory
    (outside,) = read([Tensor("w", (5,), "f32", layout)], rank=7).entries
    assert not outside.owns and not outside.lacks_memory
    assert outside.native_view == (0, (0,), None, "f32", 1, 0)
    assert read([Tensor("w", (5,), "f32", Boxes([]))]).entries == []


def test_boxes() -> None:
    first, second = Memory((2, 2)), Memory((1, 4))
    boxes = [Box((0, 2), (2, 2), first), Box((3, 0), (1, 4), second)]
    for state in ({"w": Boxes(boxes, shape=(4, 4))}, [Tensor("w", (4, 4), "f32", Boxes(boxes))]):
        (entry,) = read(state, rank=2).entries
        assert entry.shape == (4, 4) and entry.dtype == "f32"
        assert entry.boxes == [((0, 2), (2, 2)), ((3, 0), (1, 4))]
        assert [view[:2] for view in entry.native_view] == [(first.data_ptr(), (2, 2)),
                                                            (second.data_ptr(), (1, 4))]
        assert entry.memories == [first, second] and not entry.is_partial


@pytest.mark.parametrize("boxes, shape, text", [
    ([Box((0,), (2,), Memory((3,)))], (4,), r"memory of shape \[3\]"),
    ([Box((0,), (2,), Memory((2,))), Box((1,), (2,), Memory((2,)))], (4,), "overlap"),
    ([Box((0,), (2,), Memory((2,))), Box((2,), (2,))], (4,), "1 of 2 boxes have no memory"),
    ([Box((0,), (2,), Memory((2,))), Box((2,), (2,), Memory((2,), dtype="torch.int32"))], (4,),
     "of i32"),
    ([Box((0,), (2,))], (4,), "says its dtype"),
    ([Box((0,), (2,), Memory((2,)))], None, "the shape of the whole"),
])
def test_boxes_that_make_no_sense(boxes: list[Box], shape: Any, text: str) -> None:
    with pytest.raises(InvalidSpec, match=f"'w'.*{text}") as error:
        read({"w": Boxes(boxes, shape=shape)})
    assert error.value.tensor == "w"


def test_boxes_without_memory_are_late() -> None:
    (entry,) = read([Tensor("w", (4,), "f32", Boxes([Box((0,), (2,))]))]).entries
    assert entry.lacks_memory and entry.native_view is None
    meta = Memory((2,), device="meta")
    (entry,) = read({"w": Boxes([Box((0,), (2,), meta)], shape=(4,))}).entries
    assert entry.lacks_memory and entry.native_view is None


def test_meta_tensors_are_late_destinations_and_no_sources() -> None:
    meta = Memory((2,), device="meta")
    (entry,) = read({"w": meta}).entries
    assert entry.lacks_memory and entry.native_view is None
    with pytest.raises(InvalidSpec, match="'w': it has no memory"):
        read({"w": meta}, SRC)


def test_tied_weights_are_one_destination_and_two_sources() -> None:
    shared = ctypes.create_string_buffer(32)
    state = {"embed": Memory((2, 4), shared), "head": Memory((2, 4), shared),
             "flat": Memory((8,), shared), "other": Memory((2, 4))}
    half = read(state)
    assert names(half) == ["embed", "flat", "other"]  # another shape is another matter
    assert half.aliases == {"head": "embed"}
    assert names(read(state, SRC)) == ["embed", "head", "flat", "other"]
    assert read(state, SRC).aliases == {}


@pytest.mark.parametrize("state, text", [
    (3, "given as a int"), ("text", "given as a str"), (bytearray(3), "given as a bytearray"),
    ([3], "list of tensors has a int"), ({(1, 2): bytearray(1)}, "a name is"),
    ({"": bytearray(1)}, "no name"), ({"w": 3}, "'w' is an int, and only tensors move"),
    ({"w": "text"}, "'w' is a str, and only tensors move"),
    ({"w": b"abc"}, "'w': .*cannot be written"),
    ([("w", bytearray(1)), ("w", bytearray(1))], "'w' is there twice"),
    ({"a": {"b": bytearray(1)}, "a.b": bytearray(1)}, "'a.b' is there twice"),
])
def test_what_makes_no_sense_is_refused_by_name(state: Any, text: str) -> None:
    with pytest.raises(InvalidSpec, match=text):
        read(state)


def test_too_many_dimensions() -> None:
    with pytest.raises(Unsupported, match="'w' has 9 dimensions; there may be 8"):
        read({"w": Memory((1,) * 9)})
    assert read({"w": Memory((1,) * 8)}).entries[0].shape == (1,) * 8


def test_windows() -> None:
    state = [Tensor("a", (1,), "u8", view=bytearray(1), window=7), ("b", bytearray(1))]
    assert [entry.window for entry in read(state).entries] == [7, None]
    boxed = Tensor("c", (4,), "u8", Boxes([Box((0,), (2,), bytearray(2))]), window=4)
    assert [entry.window for entry in read([boxed]).entries] == [4]
    assert [entry.window for entry in read(state, window_of={"b": 2}).entries] == [7, 2]
    assert [entry.window for entry in read(state, window_of=lambda name: 5).entries] == [5, 5]
    for window in (-1, "a"):
        with pytest.raises(InvalidSpec, match="'b': window"):
            read(state, window_of={"b": window})


def test_into_has_names_and_views() -> None:
    qkv = bytearray(12)
    parts = memoryview(qkv)
    state = {"qkv": qkv, "o": bytearray(2)}
    half = read(into(state, rename={"q": "attn.q", "o": "attn.o"},
                     views={"qkv": {"q": parts[:4], "k": parts[4:8]}}))
    assert names(half) == ["q", "k", "o"]
    assert half.renames == {"q": "attn.q", "o": "attn.o"}
    assert half.entries[1].native_view[0] == half.entries[0].native_view[0] + 4
    half = read(into(state, rename=lambda name: f"model.{name}",
                     views=lambda name, tensor: {"x": tensor} if name == "o" else None))
    assert half.renames == {"qkv": "model.qkv", "x": "model.x"}
    with pytest.raises(InvalidSpec, match="'nope'"):
        read(into(state, views={"nope": {}}))
    with pytest.raises(InvalidSpec, match="'qkv': its rename gave None"):
        read(into(state, rename=lambda name: None))


def test_signatures_are_equal_where_a_plan_may_be_used_again() -> None:
    def signature(**more: Any) -> Any:
        given = {"name": "w", "shape": (4,), "dtype": "f32", "layout": Layout([0], "R"), **more}
        return read([Tensor(view=Memory(given["shape"]), **given)]).entries[0].signature

    assert signature() == signature() and hash(signature()) == hash(signature())
    assert signature() != signature(shape=(5,))
    assert signature() != signature(window=1)
    assert signature() != signature(layout=Layout([0], "S(0)"))
