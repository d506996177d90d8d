"""From DTensors to layouts, on stand-ins with their attributes. torch/ has the real ones."""

from __future__ import annotations

from typing import Any

import pytest

from stand_ins import DTensor, OldStridedShard, Partial, Shard, Tensor, _StridedShard

from sluice import _dtensor
from sluice._errors import InvalidSpec
from sluice._layouts import Layout
from sluice._layouts import Shard as Cut
from sluice._layouts import StridedShard as Strided


def read(tensor: Any, rank: int = 0, **more: Any) -> _dtensor.Read:
    return _dtensor.read(tensor, "w", rank, **more)


def test_a_dtensor_is_told_by_its_attributes() -> None:
    assert _dtensor.is_dtensor(DTensor((4,), (2,), [Shard(0)], Tensor((2,))))
    assert not _dtensor.is_dtensor(Tensor((2,)))


@pytest.mark.parametrize("op, name", [("sum", "sum"), ("avg", "avg"), ("RedOpType.SUM", "sum"),
                                      ("ReduceOp.PRODUCT", "product"), ("min", "min")])
def test_ops_of_partial(op: str, name: str) -> None:
    tensor = DTensor((4,), (2,), [Partial(op)], Tensor((4,)))
    assert str(read(tensor).layout.placements[0]) == f"P({name})"


@pytest.mark.parametrize("strided", [_StridedShard, OldStridedShard])
def test_strided_shards_are_an_order(strided: type) -> None:
    tensor = DTensor((8,), (2, 2), [strided(0, 2), Shard(0)], Tensor((2,)),
                     use_strided_shard_as_shard_order=True, shard_order=None)
    expected = Layout.over((2, 2), range(4), [Cut(0)] * 2, (1, 0))
    assert read(tensor).layout == expected
    tensor._spec = None  # a release without these fields
    assert read(tensor).layout == expected
    # Where it divides, a literal reading has the same elements.
    literal = Layout.over((2, 2), range(4), [Strided(0, 2), Cut(0)])
    assert all(literal.owned_ranges((8,), rank) == expected.owned_ranges((8,), rank)
               for rank in range(4))


def test_a_shard_order_is_the_visiting_order() -> None:
    tensor = DTensor((11, 6), (2, 3, 2), [Shard(0), Shard(1), Shard(0)], None,
                     shard_order=((0, (2, 0)), (1, (1,))), use_strided_shard_as_shard_order=False)
    tensor._local = Tensor((3, 2))
    found = read(tensor)
    assert found.layout.order == (1, 2, 0)
    assert found.layout.owned_ranges((11, 6), 0) == [[(0, 3)], [(0, 2)]]
    tensor._spec.shard_order = ((0, (0, 2)), (1, (1,)))
    assert read(tensor).layout.order == ()


def strided_7_over_3_2(rank: int, local: int, **spec: Any) -> DTensor:
    # By order, the rows of ranks 0..5 are 2 1 2 1 0 1; literally, 2 1 2 1 1 0.
    return DTensor((7,), (3, 2), [_StridedShard(0, 2), Shard(0)], Tensor((local,)), **spec)


def test_uneven_strided_shards_are_read_by_the_shapes() -> None:
    for rank, local in enumerate([2, 1, 2, 1, 0, 1]):
        layout = read(strided_7_over_3_2(rank, local), rank).layout
        assert layout == Layout.over((3, 2), range(6), [Cut(0)] * 2, (1, 0))


@pytest.mark.parametrize("rank, local", [(4, 1), (5, 0)])
def test_uneven_strided_shards_of_the_other_reading_are_refused_with_both(rank: int,
                                                                         local: int) -> None:
    with pytest.raises(InvalidSpec, match=r"'w': .*read as .*order 1,0.*SS\(0,2\),S\(0\)"):
        read(strided_7_over_3_2(rank, local), rank)
    literal = strided_7_over_3_2(rank, local, use_strided_shard_as_shard_order=False)
    assert read(literal, rank).layout == Layout.over((3, 2), range(6), [Strided(0, 2), Cut(0)])


def test_uneven_strided_shards_that_no_shape_tells_are_refused_on_every_rank() -> None:
    placements = [_StridedShard(0, 6), Shard(0), Shard(0)]
    by_order = Layout.over((2, 2, 3), range(12), [Cut(0)] * 3, (1, 2, 0))
    literal = Layout.over((2, 2, 3), range(12), [Strided(0, 6), Cut(0), Cut(0)])
    shapes = [by_order.local_shape((9,), rank) for rank in range(12)]
    assert shapes == [literal.local_shape((9,), rank) for rank in range(12)]
    for rank in range(12):
        with pytest.raises(InvalidSpec, match="the local shapes are equal and the elements"):
            read(DTensor((9,), (2, 2, 3), placements, Tensor(shapes[rank])), rank)
    for rank in range(12):  # 24 divides
        read(DTensor((24,), (2, 2, 3), placements, Tensor((2,))), rank)


def test_meshes_and_placements_that_do_not_fit() -> None:
    with pytest.raises(InvalidSpec, match="'w': a mesh of 2 dimensions has 1 placements"):
        read(DTensor((4,), (2, 2), [Shard(0)], Tensor((2,))))
    with pytest.raises(InvalidSpec, match="'w': placement .* cuts dimension"):
        read(DTensor((4,), (2,), [Shard(1)], Tensor((2,))))
