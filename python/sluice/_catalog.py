"""Catalogs: which arrays of a checkpoint lie where, told by whoever can read its format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ._dtypes import DTYPE_BYTES, dtype_name
from ._errors import InvalidSpec
from ._texts import INT64_MAX, check_text

# As the extension takes an entry.
Row = tuple[str, str, int, int, str, list[int], list[int], list[int]]


@dataclass(frozen=True)
class CheckpointEntry:
    """An array in a file: a tensor of a checkpoint, or a box of one. Elements are little endian.

    `tensor`: its name. `file`: a path below the place that the load names. `begin`: bytes, in the
    file. `shape`: of the array; () for a scalar. `offset`: the indices in the tensor at which the
    array begins; None: at 0. `strides`: in elements, of an array whose dimensions lie in another
    order, without gaps; None: row-major. The arrays of a tensor are all of it, each element once.
    """

    tensor: str
    file: str
    begin: int
    dtype: Any
    shape: Sequence[int]
    offset: Sequence[int] | None = None
    strides: Sequence[int] | None = None

    def row(self) -> Row:
        """InvalidSpec: a field is of the wrong type."""
        if not isinstance(self.tensor, str) or not isinstance(self.file, str):
            raise InvalidSpec(f"an entry of the catalog has tensor {self.tensor!r} and file "
                              f"{self.file!r}; both have to be texts")
        check_text("tensor of an entry of the catalog", self.tensor)
        check_text("file of an entry of the catalog", self.file)
        dtype = dtype_name(self.dtype, tensor=self.tensor)
        shape = self._numbers("shape", self.shape)
        size = prod(shape) * DTYPE_BYTES[dtype]
        [begin] = self._numbers("begin", [self.begin])
        if size > INT64_MAX:
            raise InvalidSpec(f"catalog: tensor '{self.tensor}': shape {shape} has more bytes than "
                              "a file", tensor=self.tensor)
        return (self.tensor, self.file, begin, size, dtype, shape,
                self._numbers("strides", () if self.strides is None else self.strides),
                self._numbers("offset", () if self.offset is None else self.offset))

    def _numbers(self, what: str, given: Any) -> list[int]:
        try:
            numbers = [value.__index__() for value in given]
        except (AttributeError, TypeError):
            raise InvalidSpec(f"catalog: tensor '{self.tensor}': {what} is {given!r}; it has to be "
                              "of whole numbers", tensor=self.tensor) from None
        if any(not 0 <= value <= INT64_MAX for value in numbers):
            raise InvalidSpec(f"catalog: tensor '{self.tensor}': {what} is {list(given)}",
                              tensor=self.tensor)
        return numbers


def rows_of(catalog: Any) -> list[Row]:
    """The entries, as the extension takes them. InvalidSpec: one is none."""
    if catalog is None:
        return []
    if not isinstance(catalog, Iterable) or isinstance(catalog, (str, bytes)):
        raise InvalidSpec(f"catalog is a {type(catalog).__name__}; it has to be a list of "
                          "CheckpointEntry")
    rows = []
    for entry in catalog:
        if not isinstance(entry, CheckpointEntry):
            raise InvalidSpec(f"an entry of the catalog is a {type(entry).__name__}; it has to be "
                              "a CheckpointEntry")
        rows.append(entry.row())
    if not rows:
        raise InvalidSpec("the catalog has no entry")
    return rows
