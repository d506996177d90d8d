"""From DTensors to layouts, on stand-ins with their attributes. torch/ has the real ones."""

from __future__ import annotations

from typing import Any

import pytest

from stand_ins import (DTensor, OldStridedShard, Partial, Replicate, Shard, Tensor, _MaskPartial,
                       _StridedShard)

from sluice import _dtensor
from sluice._errors import InvalidSpec, Unsupported
from sluice._layouts import Layout
from sluice._layouts import Shard as Cut
from sluice._layouts import StridedShard as Strided


def read(tensor: Any, rank: int = 0, **more: Any) -> _dtensor.Read:
    return _dtensor.read(tensor, "w", rank, **more)


def test_a_dtensor_is_told_by_its_attributes() -> None:
    assert _dtensor.is_dtensor(DTensor((4,), (2,), [Shard(0)], Tensor((2,))))
    assert not _dtensor.is_dtensor(Tensor((2,)))


def test_placements_are_told_by_class_name() -> None:
    tensor = DTensor((8, 4), (2, 2, 2), [Shard(-1), Replicate(), Partial("max")], Tensor((8, 2)))
    found = read(tensor, 5)
    assert found.layout == Layout.over((2, 2, 2), range(8), (*Layout([0], "S(1)").placements,
                                                           *Layout([[0]], "R,P(max)").placements))
    assert found.shape == (8, 4) and found.local is tensor._local
    assert tensor._local.detached == 1


@pytest.mark.parametrize("op, name", [("sum", "sum"), ("avg", "avg"), ("RedOpType.SUM", "sum"),
                                      ("ReduceOp.PRODUCT", "product"), ("min", "min")])
def test_ops_of_partial(op: str, name: str) -> None:
    tensor = DTensor((4,), (2,), [Partial(op)], Tensor((4,)))
    assert str(read(tensor).layout.placements[0]) == f"P({name})"


@pytest.mark.parametrize("placement, text", [
    (Partial("bor"), r"Partial\(bor\)"), (_MaskPartial(), "_MaskPartial"), (object(), "a object"),
])
def test_other_placements_are_refused_by_name(placement: Any, text: str) -> None:
    with pytest.raises(Unsupported, match=f"tensor 'w': .*{text}.*not supported") as error:
        read(DTensor((4,), (2,), [placement], Tensor((4,))))
    assert error.value.tensor == "w"


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


def test_literal_strided_shards_stay_what_they_are() -> None:
    tensor = DTensor((8,), (2, 2), [_StridedShard(0, 2), Shard(0)], Tensor((2,)),
                     use_strided_shard_as_shard_order=False, shard_order=None)
    assert read(tensor).layout == Layout.over((2, 2), range(4), [Strided(0, 2), Cut(0)])
    alone = DTensor((12,), (2,), [_StridedShard(0, 3)], Tensor((6,)))
    assert read(alone).layout == Layout.over((2,), range(2), [Strided(0, 3)])


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


def test_the_shape_of_the_local_tensor_is_compared() -> None:
    with pytest.raises(InvalidSpec, match=r"'w': its local tensor has shape \[3\].*\[4\] of \[8\]"):
        read(DTensor((8,), (2,), [Shard(0)], Tensor((3,))))
    # An empty one may have any shape: FSDP makes such.
    assert read(DTensor((1, 4), (2,), [Shard(0)], Tensor((0, 0))), 1).layout.local_shape(
        (1, 4), 1) == (0, 4)


def test_ranks_of_the_job_become_those_of_the_session() -> None:
    tensor = DTensor((4,), (2,), [Shard(0)], Tensor((2,)), ranks=[12, 10])
    assert read(tensor, 0, rank_of={12: 1, 10: 0}.__getitem__).layout.ranks == (1, 0)

    def refuse(rank: int) -> int:
        raise InvalidSpec(f"rank {rank} of the job is not in the session", ranks=(rank,))

    with pytest.raises(InvalidSpec, match="'w': rank 12 of the job") as error:
        read(tensor, 0, rank_of=refuse)
    assert error.value.tensor == "w" and error.value.ranks == (12,)


def test_a_rank_outside_the_mesh_has_no_part() -> None:
    tensor = DTensor((4,), (2,), [Shard(0)], Tensor((0,)), ranks=[3, 4])
    assert read(tensor, 0).local is None


def test_a_pending_collective_is_waited_for() -> None:
    class AsyncCollectiveTensor(Tensor):
        def trigger_wait(self) -> Tensor:
            return inner

    inner = Tensor((2,))
    tensor = DTensor((4,), (2,), [Shard(0)], AsyncCollectiveTensor((2,)))
    assert read(tensor).local is inner


def test_meshes_and_placements_that_do_not_fit() -> None:
    with pytest.raises(InvalidSpec, match="'w': a mesh of 2 dimensions has 1 placements"):
        read(DTensor((4,), (2, 2), [Shard(0)], Tensor((2,))))
    with pytest.raises(InvalidSpec, match="'w': placement .* cuts a tensor of 1 dimensions"):
        read(DTensor((4,), (2,), [Shard(1)], Tensor((2,))))
