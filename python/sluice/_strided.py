"""Which elements of a tensor a strided view has, as boxes of the tensor.

A view counts elements of a dense row-major tensor by an offset and strides, as PyTorch does. A copy
pairs the elements of two such views. Boxes of the source, and where each one goes, are the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ._memory import dense_strides

#: Most boxes of one copy. Beyond, receiving the whole tensor is the better way.
PIECES_MAX = 4096


class TooManyPieces(Exception):
    """A copy is of more than PIECES_MAX boxes."""


@dataclass(frozen=True)
class Strided:
    """A view of a tensor: the element at (i, j, ...) is offset + i * strides[0] + ... of it."""

    base: Base
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Base:
    """What views are of: a named tensor, or a dense copy of a view, whose shape it has."""

    name: str
    shape: tuple[int, ...]
    copy_of: Strided | None = None


@dataclass(frozen=True)
class Piece:
    """A box of a tensor. Its elements are at offset + ... with `strides` on the other side."""

    begin: tuple[int, ...]
    shape: tuple[int, ...]
    offset: int
    strides: tuple[int, ...]


# A dimension of a copy: how many, and the steps on both sides.
_Dim = tuple[int, int, int]


def pair(source: Strided, offset: int, strides: Sequence[int]) -> list[Piece]:
    """The copy of `source` to offset + ... with `strides`: boxes of the tensor behind it.

    Boxes may overlap where the source repeats elements. TooManyPieces.
    """
    pieces: list[Piece] = []
    dims = list(zip(source.shape, source.strides, strides))
    _pair(source.base, source.offset, _merged(dims), offset, pieces)
    return pieces


def _pair(base: Base, at: int, dims: list[_Dim], to: int, pieces: list[Piece]) -> None:
    if any(n == 0 for n, _, _ in dims):
        return
    shape = base.shape or (1,)
    scales = dense_strides(shape)
    dims = [dim for dim in dims if dim[0] > 1]
    spread = _spread(at, dims, shape, scales)
    if spread is None:
        # One dimension becomes pieces that are simpler. The one that has the fewest goes first.
        cut, parts = _parts(at, dims, shape, scales)
        rest = dims[:cut] + dims[cut + 1:]
        if len(pieces) + len(parts) > PIECES_MAX:
            raise TooManyPieces
        for begin, n, extra in parts:
            _, step, other = dims[cut]
            inner = rest + ([extra] if extra else []) + ([(n, step, other)] if n > 1 else [])
            _pair(base, at + begin * step, inner, to + begin * other, pieces)
        return
    first = tuple(at // scale % size for scale, size in zip(scales, shape))
    extents = tuple(n for n, _ in spread)
    others = tuple(other for _, other in spread)
    if base.copy_of is None:
        pieces.append(Piece(first, extents, to, others))
        if len(pieces) > PIECES_MAX:
            raise TooManyPieces
        return
    behind = base.copy_of
    inner_at = behind.offset + sum(b * s for b, s in zip(first, behind.strides))
    strides = behind.strides or (0,)
    _pair(behind.base, inner_at, _merged(list(zip(extents, strides, others))), to, pieces)


def _merged(dims: list[_Dim]) -> list[_Dim]:
    """Neighbours that are one dimension on both sides become one."""
    if any(n == 0 for n, _, _ in dims):
        return dims
    dims = sorted((dim for dim in dims if dim[0] > 1), key=lambda dim: (-abs(dim[1]), -abs(dim[2])))
    merged: list[_Dim] = []
    for n, step, other in dims:
        if merged:
            m, outer, outer_other = merged[-1]
            if outer == n * step and outer_other == n * other:
                merged[-1] = (m * n, step, other)
                continue
        merged.append((n, step, other))
    return merged


def _dim_of(step: int, shape: Sequence[int], scales: Sequence[int]) -> int | None:
    """The tensor's dimension along which `step` goes by ones; None: by more, or not at all."""
    for d, scale in enumerate(scales):
        if scale == step and shape[d] > 1:
            return d
    return None


def _spread(at: int, dims: list[_Dim], shape: Sequence[int],
            scales: Sequence[int]) -> list[tuple[int, int]] | None:
    """(extent, other step) along each of the tensor's dimensions, if the view is one box."""
    spread: list[tuple[int, int]] = [(1, 0)] * len(shape)
    for n, step, other in dims:
        d = _dim_of(step, shape, scales)
        if d is None or spread[d][0] != 1 or at // scales[d] % shape[d] + n > shape[d]:
            return None
        spread[d] = (n, other)
    return spread


# (first, how many, a dimension beside them or None)
_Part = tuple[int, int, "_Dim | None"]


def _parts(at: int, dims: list[_Dim], shape: Sequence[int],
           scales: Sequence[int]) -> tuple[int, list[_Part]]:
    """The dimension to cut, and its parts."""
    best: tuple[int, list[_Part]] | None = None
    taken: set[int] = set()
    for i in reversed(range(len(dims))):  # from the smallest step
        n, step, other = dims[i]
        d = _dim_of(step, shape, scales)
        parts: list[_Part]
        if d is None or d in taken:
            parts = [(k, 1, None) for k in range(n)]
            if n > PIECES_MAX:
                raise TooManyPieces
        else:
            taken.add(d)
            first = at // scales[d] % shape[d]
            if first + n <= shape[d]:
                continue
            # It runs over the end of dimension d into the one before: rows, with rests around.
            head = min(n, (shape[d] - first) % shape[d])
            rows, tail = divmod(n - head, shape[d])
            parts = [(0, head, None)] if head else []
            if rows:
                row = (rows, step * shape[d], other * shape[d])
                parts.append((head, shape[d], row if rows > 1 else None))
            if tail:
                parts.append((n - tail, tail, None))
        if best is None or len(parts) < len(best[1]):
            best = (i, parts)
    assert best is not None
    return best
