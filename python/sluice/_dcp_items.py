"""Items of DCP's files: zip archives that torch.save has written, one behind the other.

A file has large items, of which only the first and last bytes are read here. The format of zip:
https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar

from . import _sluice
from ._dcp_pickle import read_plain, read_tensor
from ._dtypes import DTYPE_BYTES, TORCH_NAMES
from ._errors import DataLoss, InvalidSpec, Unsupported

# Of a large item so much is read at its begin and end. Smaller ones are read whole.
_ENDS_BYTES = 4096
_WHOLE_BYTES = 65536
_GROUP_BYTES = 8 << 20  # of items that are looked at together
_ROUNDS_MAX = 8
# Larger pickles, directories and counts of files are no tensor's.
_PICKLE_BYTES_MAX = 16 << 20
_PARTS_MAX = 1000

_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64 = struct.Struct("<4sLQL")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_MANY = 0xFFFFFFFF

_Read = TypeVar("_Read")


@dataclass
class Array:
    """An array in an item: `begin` is in bytes, from the item's begin; strides are in elements."""

    begin: int
    dtype: str
    shape: list[int]
    strides: list[int]


class _Missing(Exception):
    """Bytes of an item that were not read yet."""

    def __init__(self, begin: int, size: int) -> None:
        super().__init__()
        self.begin = begin
        self.size = size


@dataclass
class _Part:
    begin: int  # of the local header
    size: int
    crc: int


class Item:
    """An archive in a file, as far as it was read."""

    def __init__(self, file: str, begin: int, size: int) -> None:
        self.what = f"the item at byte {begin} of {file}"
        self.size = size
        self._pieces: list[tuple[int, bytes]] = []

    def add(self, begin: int, data: bytes) -> None:
        """Bytes that were read."""
        self._pieces.append((begin, data))

    def get(self, begin: int, size: int) -> bytes:
        """_Missing: they have to be read. DataLoss: they are not in the item."""
        if begin < 0 or size < 0 or begin + size > self.size:
            raise self._damaged(f"bytes {begin} to {begin + size} of {self.size}")
        for at, data in self._pieces:
            if at <= begin and begin + size <= at + len(data):
                return data[begin - at:begin - at + size]
        raise _Missing(begin, size)

    def parts(self) -> dict[str, _Part]:
        """The archive's files, without the name of their folder."""
        count, size, begin = self._directory()
        if count > _PARTS_MAX or size > count * 70000:
            raise self._damaged(f"{count} files")
        data = self.get(begin, size)
        parts: dict[str, _Part] = {}
        at = 0
        for _ in range(count):
            if at + _CENTRAL.size > len(data):
                raise self._damaged("its directory is too short")
            (sign, _, _, flags, method, _, _, crc, packed, whole, name_size, extra_size,
             comment_size, _, _, _, place) = _CENTRAL.unpack_from(data, at)
            name = data[at + _CENTRAL.size:at + _CENTRAL.size + name_size]
            extra_at = at + _CENTRAL.size + name_size
            extra = data[extra_at:extra_at + extra_size]
            if sign != b"PK\1\2" or len(name) < name_size or len(extra) < extra_size:
                raise self._damaged("its directory")
            whole, packed, place = _wide(extra, [whole, packed, place])
            if method != 0 or packed != whole or flags & 1:
                raise Unsupported(f"{self.what} is compressed or encrypted, which is not read")
            short = name.decode("utf-8", "replace").partition("/")[2]
            if short in parts:
                raise self._damaged(f"{short} is there twice")
            parts[short] = _Part(place, whole, crc)
            at += _CENTRAL.size + name_size + extra_size + comment_size
        return parts

    def begin_of(self, part: _Part) -> int:
        """Where the part's bytes begin."""
        header = self.get(part.begin, _LOCAL.size)
        sign, *_, name_size, extra_size = _LOCAL.unpack(header)
        begin = part.begin + _LOCAL.size + int(name_size) + int(extra_size)
        if sign != b"PK\3\4" or begin + part.size > self.size:
            raise self._damaged("a header")
        return begin

    def content(self, part: _Part) -> bytes:
        """All bytes of a part, as they were saved."""
        if part.size > _PICKLE_BYTES_MAX:
            raise self._damaged(f"a pickle of {part.size} bytes")
        data = self.get(self.begin_of(part), part.size)
        if zlib.crc32(data) != part.crc:
            raise self._damaged("a CRC")
        return data

    def check_if_read(self, part: _Part) -> None:
        """Compares the CRC where all bytes are here."""
        if part.size <= _WHOLE_BYTES:
            try:
                self.content(part)
            except _Missing:
                pass

    def _directory(self) -> tuple[int, int, int]:
        """Files, bytes and begin of the central directory."""
        end = self.size - _END.size
        sign, *_, count, size, begin, comment = _END.unpack(self.get(end, _END.size))
        if sign != b"PK\5\6" or comment != 0:
            raise self._damaged("it does not end as an archive of torch.save")
        if count == 0xFFFF or size == _MANY or begin == _MANY:
            sign, _, at, _ = _LOCATOR_64.unpack(self.get(end - _LOCATOR_64.size, _LOCATOR_64.size))
            if sign != b"PK\6\7":
                raise self._damaged("its end")
            sign, *_, count, size, begin = _END_64.unpack(self.get(at, _END_64.size))
            if sign != b"PK\6\6":
                raise self._damaged("its end")
        return count, size, begin

    def _damaged(self, what: str) -> DataLoss:
        return DataLoss(f"{self.what} is damaged, or is no archive of torch.save: {what}")


def _wide(extra: bytes, values: list[int]) -> list[int]:
    """The values; those that take more than 32 bits stand in the extra field 1."""
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            wide = extra[at + 4:at + 4 + size]
            for i, value in enumerate(values):
                if value == _MANY and len(wide) >= 8:
                    values[i] = int.from_bytes(wide[:8], "little")
                    wide = wide[8:]
        at += 4 + size
    return values


def array_in(item: Item) -> Array:
    """The array that an item has. Unsupported: it is big endian."""
    parts = item.parts()
    if "data.pkl" not in parts:
        raise DataLoss(f"{item.what} has no data.pkl: torch.save has not written it")
    if "byteorder" in parts and item.content(parts["byteorder"]) != b"little":
        raise Unsupported(f"{item.what} was saved on a machine of another byte order")
    tensor = read_tensor(item.content(parts["data.pkl"]), item.what)
    item_bytes = DTYPE_BYTES[TORCH_NAMES[tensor.dtype]] if tensor.dtype in TORCH_NAMES else 1
    array = Array(0, tensor.dtype, tensor.size, tensor.strides)
    if prod(tensor.size) == 0:
        return array
    part = parts.get(f"data/{tensor.storage.key}")
    count = tensor.storage.count // (1 if tensor.storage.dtype else item_bytes)
    last = tensor.begin + sum((size - 1) * stride
                              for size, stride in zip(tensor.size, tensor.strides))
    if part is None or last >= count or (
            part.size != count * item_bytes and tensor.dtype in TORCH_NAMES):
        raise DataLoss(f"{item.what} has {0 if part is None else part.size} bytes of elements, and "
                       f"its tensor of {tensor.dtype} {tensor.size} with strides {tensor.strides} "
                       f"at element {tensor.begin} needs others")
    item.check_if_read(part)
    array.begin = item.begin_of(part) + tensor.begin * item_bytes
    return array


def plain_in(item: Item) -> Any:
    """The plain value that an item has."""
    parts = item.parts()
    if "data.pkl" not in parts:
        raise DataLoss(f"{item.what} has no data.pkl: torch.save has not written it")
    return read_plain(item.content(parts["data.pkl"]), item.what)


def read_items(place: str, files: list[str], places: Sequence[Sequence[int]],
               options: Mapping[str, Any], look: Callable[[Item], _Read]) -> list[_Read]:
    """What `look` finds in each item: number in `files`, begin in the file, bytes. Blocks.

    Some MiB of items are held at once.
    """
    found: list[_Read] = []
    first = 0
    while first < len(places):
        end, held = first, 0
        while end < len(places) and (held < _GROUP_BYTES or end == first):
            held += min(places[end][2], _WHOLE_BYTES)
            end += 1
        found += _look_at(place, files, places[first:end], options, look)
        first = end
    return found


def _look_at(place: str, files: list[str], places: Sequence[Sequence[int]],
             options: Mapping[str, Any], look: Callable[[Item], _Read]) -> list[_Read]:
    items = [Item(files[file], begin, size) for file, begin, size in places]
    found: list[Any] = [None] * len(items)
    wanted: list[tuple[int, int, int]] = []  # item, begin in it, bytes
    for number, item in enumerate(items):
        if item.size <= _WHOLE_BYTES:
            wanted.append((number, 0, item.size))
        else:
            wanted += [(number, 0, _ENDS_BYTES), (number, item.size - _ENDS_BYTES, _ENDS_BYTES)]
    for _ in range(_ROUNDS_MAX):
        _fill(place, files, places, items, wanted, options)
        looked, wanted = sorted({number for number, *_ in wanted}), []
        for number in looked:
            item = items[number]
            try:
                found[number] = look(item)
            except _Missing as missing:
                size = min(max(missing.size, _ENDS_BYTES), item.size - missing.begin)
                wanted.append((number, missing.begin, size))
        if not wanted:
            return found
    raise InvalidSpec(f"{items[wanted[0][0]].what} is scattered too widely")


def _fill(place: str, files: list[str], places: Sequence[Sequence[int]], items: list[Item],
          wanted: list[tuple[int, int, int]], options: Mapping[str, Any]) -> None:
    ranges = [(places[number][0], places[number][1] + begin, size)
              for number, begin, size in wanted]
    used = {file: i for i, file in enumerate(sorted({file for file, *_ in ranges}))}
    texts = _sluice.read_ranges(place, [files[file] for file in used],
                                [(used[file], begin, size) for file, begin, size in ranges],
                                options)
    for (number, begin, _), text in zip(wanted, texts):
        items[number].add(begin, text)
