"""Numbers that tell whether two sides of a transfer hold the same elements."""

from __future__ import annotations

from math import prod
from typing import Any

from . import _sluice
from ._errors import DataLoss, InvalidSpec, Unsupported
from ._group import Group, other_calls
from ._halves import Entry, Halves

_MODULUS = 1 << 64
_BOXES = "boxes"


def checksums(session: Group, halves: Halves, side: str) -> dict[str, int]:
    """See `Transfer.checksums`."""

    def own() -> tuple[str, list[Any]]:
        if side not in ("src", "dst"):
            raise InvalidSpec(f"side is {side!r}; it has to be 'src' or 'dst'")
        entries = halves.sources if side == "src" else halves.targets
        return side, [[entry.name, prod(entry.shape), *part]
                      for entry in entries for part in _parts(entry, session.rank)]

    answers = session._exchange("checksums", own)
    sides = [given for given, _ in answers]
    if len(set(sides)) > 1:
        raise other_calls([f"checksums of {given}" for given in sides])
    copies: dict[str, dict[str, _Copy]] = {}
    for rank, (_, parts) in enumerate(answers):
        for name, elements, layout, region, volume, number in parts:
            copy = copies.setdefault(name, {}).setdefault(layout, _Copy(name, elements))
            copy.add(rank, region, volume, number)
    return {name: _agreed(name, list(layouts.values())) for name, layouts in copies.items()}


class _Copy:
    """A tensor as ranks of one layout hold it between them, each of its elements once or more."""

    def __init__(self, name: str, elements: int) -> None:
        self._name = name
        self._elements = elements
        self._volume = 0
        self._seen: dict[str, tuple[int, int]] = {}  # of a region: rank and sum
        self.sum = 0

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(sorted({rank for rank, _ in self._seen.values()}))

    def add(self, rank: int, region: str, volume: int, number: int) -> None:
        first = self._seen.get(region)
        if first is not None:
            if first[1] != number:
                raise DataLoss(f"tensor '{self._name}': ranks {first[0]} and {rank} hold the same "
                               f"elements, {region}, with different values",
                               ranks=(first[0], rank), tensor=self._name)
            return
        self._seen[region] = (rank, number)
        self.sum = (self.sum + number) % _MODULUS
        self._volume += volume
        if self._volume > self._elements:
            raise Unsupported(f"tensor '{self._name}': ranks hold boxes that overlap in part, so "
                              "its elements cannot be summed once each", tensor=self._name)


def _agreed(name: str, copies: list[_Copy]) -> int:
    for copy in copies[1:]:
        if copy.sum != copies[0].sum:
            raise DataLoss(f"tensor '{name}': its copies on ranks {list(copies[0].ranks)} and "
                           f"{list(copy.ranks)} differ",
                           ranks=(*copies[0].ranks, *copy.ranks), tensor=name)
    return copies[0].sum


def _parts(entry: Entry, rank: int) -> list[tuple[str, str, int, int]]:
    """(layout, which elements, how many, sum) of each part of a tensor that this rank holds."""
    views, layout = entry.native_view, entry.native_layout
    if entry.is_partial:
        raise Unsupported(f"tensor '{entry.name}' has a Partial placement, so no rank holds its "
                          "elements", tensor=entry.name)
    if views is None:
        raise InvalidSpec(f"tensor '{entry.name}' has no memory of its own", tensor=entry.name)
    if isinstance(views, list):
        return [
            (_BOXES, _region([[(o, o + n)] for o, n in zip(offset, shape)]), prod(shape),
             _sum(entry, _sluice.Layout.boxes(rank, [(offset, shape)]), rank, [view]))
            for (offset, shape), view in zip(entry.boxes, views)
        ]
    ranges = layout.owned_ranges(list(entry.shape), rank)
    volume = prod(sum(b - a for a, b in dim) for dim in ranges)
    if not ranges or volume == 0:
        return []
    return [(repr(layout), _region(ranges), volume, _sum(entry, layout, rank, views))]


def _sum(entry: Entry, layout: Any, rank: int, view: Any) -> int:
    return int(_sluice.checksum(list(entry.shape), entry.dtype, layout, rank, view)) % _MODULUS


def _region(ranges: list[list[tuple[int, int]]]) -> str:
    return "[" + ", ".join("+".join(f"{a}:{b}" for a, b in dim) for dim in ranges) + "]"
