"""From PyTorch's DTensor to a layout, told by attributes: PyTorch is not imported.

A DTensor names ranks of the job. `rank_of` says which ranks of the session these are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from ._errors import InvalidSpec, Unsupported
from ._layouts import (Layout, Placement, Shard, StridedShard, check_extents, placement_of,
                       unravel, with_dims)
from ._memory import settled

RankOf = Callable[[int], int]


@dataclass(frozen=True)
class Read:
    """A DTensor: the shape of the whole, its layout, this rank's part or None outside the mesh."""

    shape: tuple[int, ...]
    layout: Layout
    local: Any


def is_dtensor(obj: Any) -> bool:
    """True for a DTensor, and for a parameter that is one."""
    return (hasattr(obj, "device_mesh") and hasattr(obj, "placements")
            and hasattr(obj, "to_local"))


def read(obj: Any, name: str, rank: int, rank_of: RankOf | None = None) -> Read:
    """What `obj` is. `name`: of the tensor, for errors. `rank`: this process in the session.

    Waits for a pending collective. InvalidSpec and Unsupported name the tensor: placements that
    Sluice does not have, strided ones that PyTorch's code reads in two ways, or a local tensor of
    another shape than its layout says.
    """
    try:
        shape = tuple(int(size) for size in obj.shape)
        sizes, job_ranks = _mesh(obj.device_mesh)
        ranks = job_ranks if rank_of is None else tuple(rank_of(one) for one in job_ranks)
        placements = tuple(with_dims(placement_of(one), len(shape)) for one in obj.placements)
        if len(placements) != len(sizes):
            raise InvalidSpec(f"a mesh of {len(sizes)} dimensions has {len(placements)} placements")
        readings = _readings(obj, sizes, placements)
        layouts = [Layout.over(sizes, ranks, *reading) for reading in readings]
        check_extents(name, shape, ranks)
        local = _local(obj) if rank in ranks else None
        layout = layouts[0]
        if len(layouts) > 1:
            layout = _choose(layouts, shape, rank, local)
        elif local is not None:
            expected = layout.local_shape(shape, rank)
            if not _alike(tuple(local.shape), expected):
                raise InvalidSpec(f"its local tensor has shape {list(local.shape)}, and {layout} "
                                  f"gives {list(expected)} of {list(shape)} to rank {rank}")
    except (InvalidSpec, Unsupported) as error:
        if error.tensor is not None:
            raise
        raise type(error)(f"tensor '{name}': {error}", tensor=name,
                          ranks=error.ranks) from error
    return Read(shape, layout, local)


def _mesh(mesh: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    ranks = mesh.mesh
    sizes = tuple(int(size) for size in ranks.shape)
    flat = ranks.reshape(-1).tolist() if hasattr(ranks, "reshape") else list(ranks)
    return (sizes or (1,)), tuple(int(rank) for rank in flat)


# A reading: placements and the order in which mesh dimensions cut.
_Reading = tuple[tuple[Placement, ...], tuple[int, ...]]


def _readings(obj: Any, sizes: tuple[int, ...],
              placements: tuple[Placement, ...]) -> list[_Reading]:
    """How the placements are meant: PyTorch's reading, and behind it another where it has two."""
    spec = getattr(obj, "_spec", None)
    order = getattr(spec, "shard_order", None)
    strided = any(isinstance(one, StridedShard) for one in placements)
    if not strided:
        return [(placements, _visiting_order(order, placements))]
    literal: _Reading = (placements, ())
    # Releases without the field mean an order, too: they made strided shards for FSDP over TP.
    if getattr(spec, "use_strided_shard_as_shard_order", None) is False:
        return [literal]
    decoded = _decode(sizes, placements)
    return [literal] if decoded is None else [decoded, literal]


def _visiting_order(order: Any, placements: tuple[Placement, ...]) -> tuple[int, ...]:
    """Of entries (tensor dimension, mesh dimensions as they cut it)."""
    after: list[list[int]] = []
    for entry in order or ():
        _, mesh_dims = entry
        after.append([int(dim) for dim in mesh_dims])
    return _merge(after, len(placements))


def _merge(chains: list[list[int]], dims: int) -> tuple[int, ...]:
    """The first permutation of 0..dims in which each chain's members come in its order.

    Mesh dimensions that cut different tensor dimensions do not meet, so any such order will do.
    """
    place = {dim: (chain, i) for chain in chains for i, dim in enumerate(chain)}
    done = [0] * dims
    order: list[int] = []
    while len(order) < dims:
        for dim in range(dims):
            if done[dim]:
                continue
            chain, i = place.get(dim, ([dim], 0))
            if all(done[before] for before in chain[:i]):
                done[dim] = 1
                order.append(dim)
                break
    return () if order == list(range(dims)) else tuple(order)


def _decode(sizes: tuple[int, ...], placements: tuple[Placement, ...]) -> _Reading | None:
    """The order that strided shards stand for, with plain ones; None if they stand for none.

    A mesh dimension's split factor is the product of the sizes of those that are to its right, and
    cut before it. So from the right, each one's place among those is where the product is met.
    """
    chains: dict[int, list[int]] = {}
    for dim in reversed(range(len(sizes))):
        placement = placements[dim]
        if not isinstance(placement, (Shard, StridedShard)):
            continue
        chain = chains.setdefault(placement.dim, [])
        split = placement.split_factor if isinstance(placement, StridedShard) else 1
        at, product = 0, 1
        while product != split and at < len(chain):
            product *= sizes[chain[at]]
            at += 1
        if product != split:
            return None
        chain.insert(at, dim)
    plain = tuple(Shard(one.dim) if isinstance(one, StridedShard) else one for one in placements)
    return plain, _merge(list(chains.values()), len(sizes))


def _choose(layouts: list[Layout], shape: tuple[int, ...], rank: int, local: Any) -> Layout:
    """PyTorch's reading, if the local shapes of all ranks together would tell another one.

    The decision depends on what all ranks know alike. Then each rank looks at its own shape.
    """
    by_order, literal = layouts
    differ, tell = False, False
    for each in _ranks_that_differ(by_order):
        if by_order.owned_ranges(shape, each) != literal.owned_ranges(shape, each):
            sizes = [layout.local_shape(shape, each) for layout in layouts]
            differ = differ or prod(sizes[0]) + prod(sizes[1]) > 0
            tell = not _alike(*sizes)
            if tell:
                break
    texts = f"{by_order}, or {literal}"
    if differ and not tell:
        raise InvalidSpec(f"shape {list(shape)} does not divide, and its strided shards can be "
                          f"read as {texts}: the local shapes are equal and the elements are not. "
                          "Give a sluice.Tensor with the layout that is meant")
    if local is not None:
        expected = [layout.local_shape(shape, rank) for layout in layouts]
        if not _alike(tuple(local.shape), expected[0]):
            raise InvalidSpec(f"shape {list(shape)} does not divide, and its strided shards can be "
                              f"read as {texts}. The local tensor has shape {list(local.shape)}, "
                              f"where these give {list(expected[0])} and {list(expected[1])}. Give "
                              "a sluice.Tensor with the layout that is meant")
    return by_order


def _ranks_that_differ(layout: Layout) -> list[int]:
    """One for each set of elements: at 0 along mesh dimensions that do not cut."""
    cuts = [isinstance(one, (Shard, StridedShard)) for one in layout.placements]
    return [rank for position, rank in enumerate(layout.ranks)
            if not any(at and not cut for at, cut in zip(unravel(position, layout.sizes), cuts))]


def _alike(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    # An empty local tensor of FSDP has any shape.
    return one == other or prod(one) == prod(other) == 0


def _local(obj: Any) -> Any:
    # No operation on the DTensor: even detach() may redistribute it. What a transfer writes is no
    # step of autograd.
    local = settled(obj.to_local())
    return local.detach() if hasattr(local, "detach") else local
