"""What a user says of a tensor: its layout over ranks, its boxes, its name, shape and dtype.

docs/layouts.md of the C++ library has the meaning, which is that of DTensor.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, Union

from ._dtypes import dtype_name
from ._errors import InvalidSpec, Unsupported
from ._texts import INT64_MAX

if TYPE_CHECKING:
    from . import _sluice

_DIMS_MAX = 8
_RANK_MAX = (1 << 31) - 1

PARTIAL_OPS = ("sum", "avg", "max", "min", "product")

Ranges = list[tuple[int, int]]  # half-open, ascending, not touching


@dataclass(frozen=True)
class Replicate:
    """The ranks along a mesh dimension hold the same elements."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Shard:
    """A mesh dimension cuts dimension `dim` into parts as torch.chunk does."""

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class StridedShard:
    """Dimension `dim` is cut into `split_factor` pieces. Each rank has its part of every one."""

    dim: int
    split_factor: int

    def __str__(self) -> str:
        return f"SS({self.dim},{self.split_factor})"


@dataclass(frozen=True)
class Partial:
    """Each rank has a contribution; the element is `op` of them: sum, avg, max, min or product."""

    op: str = "sum"

    def __str__(self) -> str:
        return f"P({self.op})"


Placement = Union[Replicate, Shard, StridedShard, Partial]

_PLACEMENT = re.compile(r"\s*(?:(R)|S\(\s*(-?\d+)\s*\)|SS\(\s*(-?\d+)\s*,\s*(\d+)\s*\)"
                        r"|P\(\s*(\w+)\s*\))\s*")


def parse_placements(text: str) -> tuple[Placement, ...]:
    """Reads "R,S(0),SS(0,2),P(sum)". InvalidSpec quotes the text."""
    placements: list[Placement] = []
    at = 0
    while at < len(text) or not placements:
        match = _PLACEMENT.match(text, at)
        if match is None or text[match.end():match.end() + 1] not in ("", ","):
            raise InvalidSpec(f"placements {text!r}: expected R, S(dim), SS(dim,split) or P(op), "
                              "with commas between")
        replicate, dim, strided_dim, split, op = match.groups()
        if replicate:
            placements.append(Replicate())
        elif dim is not None:
            placements.append(Shard(int(dim)))
        elif strided_dim is not None:
            placements.append(StridedShard(int(strided_dim), int(split)))
        else:
            placements.append(Partial(op))
        at = match.end() + 1
    if text.rstrip().endswith(","):
        raise InvalidSpec(f"placements {text!r} end with a comma")
    return tuple(placements)


class Layout:
    """How a tensor lies over a mesh of ranks. Immutable.

    `mesh`: nested lists of ranks, or an array of them; all rows are of one length. Or a DeviceMesh
    of PyTorch, whose ranks and names are taken as they are. `placements`: one for each mesh
    dimension, as objects, of PyTorch's too, or as text, "S(0),R". `order`: in which order the mesh
    dimensions cut, as indices or, where the mesh has `names`, as "tp,dp"; left to right without.
    FSDP over tensor parallelism on a (dp, tp) mesh is S(0),S(0) in order (1, 0).
    InvalidSpec says what does not hold.
    """

    __slots__ = ("_sizes", "_ranks", "_placements", "_order", "_positions", "_native")

    def __init__(self, mesh: Any, placements: str | Placement | Sequence[Placement | str],
                 order: str | Sequence[int] | None = None, *,
                 names: str | Sequence[str] | None = None) -> None:
        if hasattr(mesh, "mesh_dim_names") and hasattr(mesh, "mesh"):  # a DeviceMesh
            names = mesh.mesh_dim_names if names is None else names
            mesh = mesh.mesh
        sizes, ranks = _mesh_of(mesh)
        self._fill(sizes, ranks, _placements_of(placements), order, names)

    @classmethod
    def over(cls, sizes: Sequence[int], ranks: Sequence[int], placements: Sequence[Placement],
             order: Sequence[int] = ()) -> Layout:
        """The same from a mesh's sizes and its ranks, row-major."""
        layout = cls.__new__(cls)
        layout._fill(tuple(sizes), tuple(ranks), tuple(placements), tuple(order), None)
        return layout

    @staticmethod
    @lru_cache(maxsize=64)
    def whole(rank: int) -> Layout:
        """A copy of the whole tensor on one rank."""
        return Layout.over((1,), (rank,), (Replicate(),))

    def _fill(self, sizes: tuple[int, ...], ranks: tuple[int, ...],
              placements: tuple[Placement, ...], order: str | Sequence[int] | None,
              names: str | Sequence[str] | None) -> None:
        if not sizes or min(sizes) < 1 or prod(sizes) != len(ranks):
            raise InvalidSpec(f"a mesh of sizes {list(sizes)} has {len(ranks)} ranks")
        if len(set(ranks)) != len(ranks) or min(ranks) < 0:
            raise InvalidSpec(f"a mesh has the ranks {list(ranks)}; they have to be distinct, and "
                              "0 or more. A mesh of 2 x 2 is [[0, 1], [2, 3]]")
        if len(placements) != len(sizes):
            raise InvalidSpec(f"a mesh of {len(sizes)} dimensions has {len(placements)} placements")
        for placement in placements:
            _check_placement(placement)
        self._sizes = sizes
        self._ranks = ranks
        self._placements = placements
        self._order = _order_of(order, names, len(sizes))
        self._positions: dict[int, int] | None = None
        self._native: _sluice.Layout | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of the mesh dimensions."""
        return self._sizes

    @property
    def ranks(self) -> tuple[int, ...]:
        """The mesh's ranks, row-major."""
        return self._ranks

    @property
    def placements(self) -> tuple[Placement, ...]:
        return self._placements

    @property
    def order(self) -> tuple[int, ...]:
        """In which order mesh dimensions cut; empty: left to right."""
        return self._order

    @property
    def is_partial(self) -> bool:
        return any(isinstance(placement, Partial) for placement in self._placements)

    def coordinate(self, rank: int) -> tuple[int, ...] | None:
        """Where `rank` stands in the mesh, or None."""
        if self._positions is None:
            self._positions = {rank: i for i, rank in enumerate(self._ranks)}
        position = self._positions.get(rank)
        return None if position is None else unravel(position, self._sizes)

    def with_dims(self, dims: int) -> Layout:
        """The same for a tensor of `dims` dimensions: negative ones count from the end."""
        placements = tuple(with_dims(placement, dims) for placement in self._placements)
        if placements == self._placements:
            return self
        return Layout.over(self._sizes, self._ranks, placements, self._order)

    def with_ranks(self, ranks: Sequence[int]) -> Layout:
        """The same over other ranks."""
        return Layout.over(self._sizes, ranks, self._placements, self._order)

    def owned_ranges(self, shape: Sequence[int], rank: int) -> list[Ranges]:
        """The half-open ranges of global indices that `rank` owns along each dimension."""
        return self.native().owned_ranges(shape, rank) if shape else []

    def local_shape(self, shape: Sequence[int], rank: int) -> tuple[int, ...]:
        """Of the dense local tensor of `rank`; all 0 where it is not in the mesh."""
        return self.native().local_shape(shape, rank) if shape else ()

    def native(self) -> _sluice.Layout:
        """The extension's object for it. Errors are the extension's."""
        if self._native is None:
            from . import _sluice  # not where this module is imported: it needs no extension
            self._native = _sluice.Layout(sizes=list(self._sizes), ranks=list(self._ranks),
                                          placements=list(map(str, self._placements)),
                                          order=list(self._order))
        return self._native

    def _key(self) -> tuple[Any, ...]:
        return (self._sizes, self._ranks, self._placements, self._order)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Layout) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return (Layout.over, self._key())

    def __str__(self) -> str:
        order = f" in order {','.join(map(str, self._order))}" if self._order else ""
        ranks = ", ".join(map(str, self._ranks[:8])) + (", ..." if len(self._ranks) > 8 else "")
        return (f"{','.join(map(str, self._placements))}{order} on mesh "
                f"{list(self._sizes)} of ranks {ranks}")

    def __repr__(self) -> str:
        order = f", order={self._order}" if self._order else ""
        return (f"Layout({_nested(self._sizes, self._ranks)}, "
                f"\"{','.join(map(str, self._placements))}\"{order})")


def check_extents(name: str, shape: Sequence[int], ranks: Sequence[int] = ()) -> None:
    """What the extension cannot even read, it could not tell the other ranks."""
    if len(shape) > _DIMS_MAX:
        raise Unsupported(f"tensor '{name}' has {len(shape)} dimensions; there may be "
                          f"{_DIMS_MAX}", tensor=name)
    if max(shape, default=0) > INT64_MAX:
        raise InvalidSpec(f"tensor '{name}' has shape {list(shape)}, which 64 bits do not hold",
                          tensor=name)
    if max(ranks, default=0) > _RANK_MAX:
        raise InvalidSpec(f"tensor '{name}' has a mesh with {max(ranks)} in it, which is no rank",
                          tensor=name)


def unravel(position: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """The row-major coordinate of a position."""
    coordinate = []
    for size in reversed(sizes):
        coordinate.append(position % size)
        position //= size
    return tuple(reversed(coordinate))


def _nested(sizes: tuple[int, ...], ranks: tuple[int, ...]) -> list[Any]:
    if len(sizes) == 1:
        return list(ranks)
    step = len(ranks) // sizes[0]
    return [_nested(sizes[1:], ranks[i * step:(i + 1) * step]) for i in range(sizes[0])]


def _mesh_of(mesh: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if hasattr(mesh, "tolist"):
        mesh = mesh.tolist()
    if isinstance(mesh, (range, tuple)):
        mesh = list(mesh)
    if not isinstance(mesh, list) or not mesh:
        raise InvalidSpec(f"mesh is {mesh!r}; it has to be nested lists of ranks")
    rows = [row.tolist() if hasattr(row, "tolist") else row for row in mesh]
    if not any(isinstance(row, (list, tuple, range)) for row in rows):
        if not all(_is_int(row) for row in rows):
            raise InvalidSpec(f"mesh has {rows!r}; ranks are integers")
        return (len(rows),), tuple(int(row) for row in rows)
    if not all(isinstance(row, (list, tuple, range)) for row in rows):
        raise InvalidSpec("mesh mixes ranks and lists of them")
    parts = [_mesh_of(row) for row in rows]
    if any(sizes != parts[0][0] for sizes, _ in parts):
        raise InvalidSpec("the rows of a mesh are of different lengths")
    return ((len(rows), *parts[0][0]), tuple(rank for _, ranks in parts for rank in ranks))


def _is_int(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _placements_of(given: Any) -> tuple[Placement, ...]:
    if isinstance(given, str):
        return parse_placements(given)
    if isinstance(given, (Replicate, Shard, StridedShard, Partial)):
        return (given,)
    placements: list[Placement] = []
    for one in [given] if hasattr(given, "is_shard") else given:
        if isinstance(one, str):
            placements.extend(parse_placements(one))
        else:
            placements.append(placement_of(one) if hasattr(one, "is_shard") else one)
    return tuple(placements)


def placement_of(placement: Any) -> Placement:
    """Sluice's for one of PyTorch's. Unsupported: there is none."""
    # By name: _StridedShard is a subclass of Shard in some releases, and _MaskPartial of Partial.
    kind = type(placement).__name__
    if kind == "Replicate":
        return Replicate()
    if kind == "Shard":
        return Shard(int(placement.dim))
    if kind in ("_StridedShard", "StridedShard"):
        return StridedShard(int(placement.dim), int(placement.split_factor))
    if kind in ("Partial", "_Partial"):
        # Older releases hold an enum: ReduceOp.SUM, RedOpType.SUM.
        op = str(placement.reduce_op).rpartition(".")[2].lower()
        if op in PARTIAL_OPS:
            return Partial(op)
        raise Unsupported(f"placement Partial({op}) is not supported; there are "
                          f"{', '.join(PARTIAL_OPS)}: redistribute before")
    raise Unsupported(f"placement {placement!r}, a {kind}, is not supported; there are Replicate, "
                      "Shard, _StridedShard and Partial: redistribute before")


def _check_placement(placement: Any) -> None:
    if isinstance(placement, Partial):
        if placement.op not in PARTIAL_OPS:
            raise Unsupported(f"placement {placement}: a Partial of '{placement.op}' is not "
                              f"supported; there are {', '.join(PARTIAL_OPS)}")
    elif isinstance(placement, StridedShard):
        if not _is_int(placement.split_factor) or placement.split_factor < 1:
            raise InvalidSpec(f"placement {placement}: a split factor is 1 or more")
    elif not isinstance(placement, (Replicate, Shard)):
        raise InvalidSpec(f"{placement!r} is not a placement of Sluice: Replicate(), Shard(dim), "
                          "StridedShard(dim, split_factor) or Partial(op)")


def with_dims(placement: Placement, dims: int) -> Placement:
    """The same for a tensor of `dims` dimensions: negative ones count from the end."""
    if not isinstance(placement, (Shard, StridedShard)):
        return placement
    dim = placement.dim + dims if placement.dim < 0 else placement.dim
    if not 0 <= dim < dims:
        raise InvalidSpec(f"placement {placement} cuts dimension {placement.dim} of a tensor that "
                          f"has {dims}")
    if isinstance(placement, StridedShard):
        return StridedShard(dim, placement.split_factor)
    return Shard(dim)


def _order_of(order: str | Sequence[int] | None, names: str | Sequence[str] | None,
              dims: int) -> tuple[int, ...]:
    known = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    if known is not None and (len(known) != dims or len(set(known)) != dims):
        raise InvalidSpec(f"a mesh of {dims} dimensions has the names {list(known)}")
    if isinstance(order, str):
        parts = [part.strip() for part in order.split(",")]
        unknown = [part for part in parts if not part.isdigit() and part not in (known or ())]
        if unknown:
            raise InvalidSpec(f"order {order!r}: the mesh has no dimension '{unknown[0]}'; its "
                              f"names are {list(known or ())}")
        order = [list(known).index(part) if known and part in known else int(part)
                 for part in parts]
    visited = tuple(int(dim) for dim in order or ())
    if visited and sorted(visited) != list(range(dims)):
        raise InvalidSpec(f"order {list(visited)} has to name each of {dims} mesh dimensions once")
    return () if visited == tuple(range(dims)) else visited


class _Frozen:
    """Its attributes do not change: what has read it once need not look again."""

    __slots__: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a {type(self).__name__} does not change; make another one")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in self.__slots__)


class Box(_Frozen):
    """A part of a tensor: `shape` elements from `offset` on, and this rank's memory for them."""

    __slots__ = ("offset", "shape", "view")

    offset: tuple[int, ...]
    shape: tuple[int, ...]
    view: Any

    def __init__(self, offset: Sequence[int], shape: Sequence[int], view: Any = None) -> None:
        object.__setattr__(self, "offset", tuple(int(value) for value in offset))
        object.__setattr__(self, "shape", tuple(int(value) for value in shape))
        object.__setattr__(self, "view", view)
        if len(self.offset) != len(self.shape) or min((*self.offset, 0)) < 0:
            raise InvalidSpec(f"a box at {list(self.offset)} of shape {list(self.shape)}: both "
                              "have a number for each dimension, 0 or more")
        if not self.shape or min(self.shape) < 1:
            raise InvalidSpec(f"a box of shape {list(self.shape)} has no element")

    def overlaps(self, other: Box) -> bool:
        """Whether they have an element in common."""
        return all(a < b + n and b < a + m for a, m, b, n in
                   zip(self.offset, self.shape, other.offset, other.shape))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Box):
            return NotImplemented
        return self.offset == other.offset and self.shape == other.shape

    def __hash__(self) -> int:
        return hash((self.offset, self.shape))

    def __repr__(self) -> str:
        return f"Box({self.offset}, {self.shape})"


class Boxes(_Frozen):
    """What this rank holds of a tensor where no placement says it: boxes in any number.

    `shape`: of the whole tensor, where the boxes are a value of a state dict. Boxes of one rank may
    not overlap; ranks may hold the same elements.
    """

    __slots__ = ("boxes", "shape")

    boxes: tuple[Box, ...]
    shape: tuple[int, ...] | None

    def __init__(self, boxes: Iterable[Box], shape: Sequence[int] | None = None) -> None:
        object.__setattr__(self, "boxes", tuple(boxes))
        object.__setattr__(self, "shape",
                           None if shape is None else tuple(int(value) for value in shape))
        for box in self.boxes:
            if not isinstance(box, Box):
                raise InvalidSpec(f"boxes have {box!r}, which is not a Box")
            if len(box.shape) != len(self.boxes[0].shape):
                raise InvalidSpec("boxes of one tensor have one number of dimensions")
        if self.shape is not None:
            self.check(self.shape)

    def check(self, shape: Sequence[int]) -> None:
        """InvalidSpec if a box does not lie in a tensor of `shape`."""
        for box in self.boxes:
            if len(box.shape) != len(shape) or any(
                    o + n > s for o, n, s in zip(box.offset, box.shape, shape)):
                raise InvalidSpec(f"{box} does not lie in a tensor of shape {list(shape)}")

    @property
    def bare(self) -> Boxes:
        """The same without views."""
        return Boxes([Box(box.offset, box.shape) for box in self.boxes], self.shape)

    @property
    def is_partial(self) -> bool:
        return False

    def native(self, rank: int) -> _sluice.Layout:
        """The extension's object for them, as what `rank` holds. Errors are the extension's."""
        from . import _sluice
        return _sluice.Layout.boxes(rank, [(box.offset, box.shape) for box in self.boxes])

    def __iter__(self) -> Iterator[Box]:
        return iter(self.boxes)

    def __len__(self) -> int:
        return len(self.boxes)

    def __eq__(self, other: object) -> bool:
        return self.boxes == other.boxes if isinstance(other, Boxes) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.boxes)

    def __str__(self) -> str:
        return repr(list(self.boxes)) if len(self.boxes) < 4 else f"{len(self.boxes)} boxes"

    def __repr__(self) -> str:
        return f"Boxes({list(self.boxes)}, shape={self.shape})"


@dataclass(frozen=True)
class Tensor:
    """A tensor of which this rank has a part, without PyTorch.

    `shape`: of the whole tensor. `dtype`: "bf16", or what PyTorch or NumPy call it. `layout`: a
    Layout over the session's ranks, Boxes, or None for a whole copy here. `view`: this rank's local
    tensor, anything with memory: of NumPy, CuPy, JAX, with __dlpack__ or a buffer. None: no memory
    yet; of Boxes, the boxes have it. `window`: which tensors arrive together.
    """

    name: str
    shape: Sequence[int]
    dtype: Any
    layout: Layout | Boxes | None = None
    view: Any = field(default=None, compare=False, repr=False)
    window: int | None = None

    def __post_init__(self) -> None:
        shape = tuple(int(value) for value in self.shape)
        object.__setattr__(self, "shape", shape)
        if not isinstance(self.name, str) or not self.name:
            raise InvalidSpec(f"a tensor's name is {self.name!r}; it has to be a text")
        if shape and min(shape) < 0:
            raise InvalidSpec(f"tensor '{self.name}' has shape {list(shape)}", tensor=self.name)
        object.__setattr__(self, "dtype", dtype_name(self.dtype, tensor=self.name))
        try:
            if isinstance(self.layout, Layout):
                object.__setattr__(self, "layout", self.layout.with_dims(max(1, len(shape))))
            elif isinstance(self.layout, Boxes):
                self.layout.check(shape)
                if self.view is not None:
                    raise InvalidSpec("its boxes have the views, so it cannot have one")
            elif self.layout is not None:
                raise InvalidSpec(f"layout is a {type(self.layout).__name__}; it has to be a "
                                  "Layout or Boxes")
        except InvalidSpec as error:
            raise type(error)(f"tensor '{self.name}': {error}", tensor=self.name) from None
