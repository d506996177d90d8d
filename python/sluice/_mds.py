"""MosaicML's MDS: where the samples of a data set lie, and what is in a sample.

A shard is: how many samples it has and where each begins, and the last one ends (u32), its
description as JSON, the samples. A sample is: u32 sizes of the columns that have no fixed size, the
columns. Numbers are little-endian. https://docs.mosaicml.com/projects/streaming
"""

from __future__ import annotations

import json
import struct
import sys
from array import array
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from math import prod
from typing import Any

from . import _sluice
from ._batch import Decode, ItemBytes
from ._dtypes import DTYPE_BYTES, TORCH_NAMES
from ._errors import DataLoss, InvalidSpec, Unsupported
from ._paths import shown
from ._shard_index import INDEX, SAMPLES_MAX, IndexText, polled

_INDEX_BYTES_MAX = 64 << 20
_TABLES_BYTES = 32 << 20  # of shards that are looked at together

_Column = list[Any]  # name, encoding, and bytes where they are fixed
# The value of a column that lies between these bytes of an item.
_Read = Callable[[ItemBytes, int, int], Any]

_NUMBERS = {"int": "<q", "int8": "<b", "int16": "<h", "int32": "<i", "int64": "<q", "uint8": "<B",
            "uint16": "<H", "uint32": "<I", "uint64": "<Q", "float16": "<e", "float32": "<f",
            "float64": "<d"}
_TEXTS: dict[str, Callable[[str], Any]] = {"str": str, "json": json.loads, "str_int": int,
                                           "str_float": float, "str_decimal": Decimal}
# The codes of elements and of numbers of a shape, in arrays that say so themselves.
_ELEMENTS = {8: "uint8", 9: "int8", 16: "uint16", 17: "int16", 18: "float16", 32: "uint32",
             33: "int32", 34: "float32", 64: "uint64", 65: "int64", 66: "float64"}
_SIZES = "BHIQ"


class _Bad(Exception):
    """What is not as the format has it; what it is of is for the caller to say."""


def index_of(place: str, options: dict[str, Any], poll: Callable[[], None]
             ) -> tuple[str, list[_Column]]:
    """The index of a data set, and its columns. Waits, and calls `poll` meanwhile."""
    data, = polled([lambda: _sluice.read_object(place, INDEX, _INDEX_BYTES_MAX, options)], poll)
    where = f"{shown(place)}: {INDEX}"
    try:
        index = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidSpec(f"{where} is no JSON: {error or 'too many levels'}") from None
    if not isinstance(index, dict) or index.get("version") != 2 or not isinstance(
            index.get("shards"), list) or not index["shards"]:
        raise InvalidSpec(f"{where} is not of MDS, which has \"version\": 2 and shards")
    columns: list[_Column] = []
    shards = []
    for number, shard in enumerate(index["shards"]):
        try:
            name, size, samples, own = _shard(shard)
            columns = columns or own
            if own != columns:
                raise _Bad("has other columns than the shards before it")
        except Unsupported as error:
            raise Unsupported(f"{where}: shard {number} {error}") from None
        except _Bad as error:
            raise InvalidSpec(f"{where}: shard {number} {error}") from None
        if samples > 0:
            shards.append((name, size, samples))
    decoder(columns)  # refuses columns that make no sense
    if not shards:
        raise InvalidSpec(f"{where} has no samples")
    text = IndexText()
    reader = _sluice.RangeReader(place, [name for name, *_ in shards], options)
    ranges: list[tuple[int, int, int]] = []
    room = _TABLES_BYTES
    for number, (*_, samples) in enumerate(shards):
        ranges.append((number, 0, 8 + 4 * samples))
        room -= ranges[-1][2]
        if number + 1 < len(shards) and room > 0:
            continue
        tables, = polled([partial(reader.read, ranges)], poll)
        for (at, *_), table in zip(ranges, tables):
            name, size, samples = shards[at]
            if reader.size(at) not in (size, -1):
                raise DataLoss(f"{name} has {reader.size(at)} bytes, and {INDEX} says {size}")
            text.add(name, size, *_samples_in(table, name, size, samples))
        ranges, room = [], _TABLES_BYTES
    return text.text(), columns


def _shard(shard: Any) -> tuple[str, int, int, list[_Column]]:
    """Name, bytes, samples and columns of a shard, as the index has it."""
    def get(source: Any, key: str, kind: type) -> Any:
        value = source.get(key) if isinstance(source, dict) else None
        if type(value) is not kind:
            raise _Bad(f"has no '{key}'")
        return value

    if get(shard, "format", str) != "mds":
        raise Unsupported(f"has format '{shard['format'][:40]}', and not 'mds'")
    if shard.get("compression") or shard.get("zip_data"):
        how = str(shard.get("compression"))[:40]
        raise Unsupported(f"is compressed ({how}), so that no part of it can be read by itself: "
                          "write it with compression=None")
    file = get(shard, "raw_data", dict)
    name, size = get(file, "basename", str), get(file, "bytes", int)
    samples = get(shard, "samples", int)
    if not name.isprintable():  # a lone surrogate is not, and is no text to others
        raise _Bad("has a name that cannot be shown")
    if not 0 <= samples <= SAMPLES_MAX or 8 + 4 * samples > size:
        raise _Bad(f"({name}) has {size} bytes, too few for {samples} samples")
    names, encodings, sizes = (get(shard, f"column_{what}", list)
                               for what in ("names", "encodings", "sizes"))
    if not len(names) == len(encodings) == len(sizes) == len(set(map(str, names))) or not all(
            isinstance(text, str) for text in (*names, *encodings)) or not all(
            width is None or type(width) is int and width > 0 for width in sizes):
        raise _Bad(f"({name}) has columns that are none")
    return name, size, samples, [list(column) for column in zip(names, encodings, sizes)]


def _samples_in(table: bytes, name: str, size: int, samples: int) -> tuple[array[int], array[int]]:
    """Where the samples of a shard begin, and their bytes."""
    offsets = array("I", table)
    if sys.byteorder == "big":
        offsets.byteswap()
    if offsets[0] != samples:
        raise DataLoss(f"{name} has {offsets[0]} samples, and {INDEX} says {samples}")
    begins, ends = offsets[1:-1], offsets[2:]
    sizes = array("q", (end - begin for begin, end in zip(begins, ends)))
    if begins[0] < 8 + 4 * samples or ends[-1] > size or min(sizes) <= 0:
        raise DataLoss(f"{name} has samples that end before they begin, or beyond its {size} bytes")
    return begins, sizes


def decoder(columns: list[_Column]) -> Decode:
    """A function that takes samples of these columns apart. InvalidSpec: they make no sense."""
    reads = [(name, size, _reader(name, encoding, size)) for name, encoding, size in columns]
    head = 4 * sum(size is None for _, size, _ in reads)

    def decode(item: ItemBytes) -> dict[str, Any]:
        sample: dict[str, Any] = {}
        name, at, end = "", 0, head
        try:
            for name, size, read in reads:
                begin = end
                if size is None:
                    size, = struct.unpack_from("<I", item.data, at)
                    at += 4
                end += size
                if end > len(item.data):
                    raise _Bad(f"it ends at byte {end}, and the item has {len(item.data)}")
                sample[name] = read(item, begin, end)
            if end != len(item.data):
                raise _Bad(f"the item goes on after it, for {len(item.data) - end} bytes")
        except (_Bad, struct.error, ArithmeticError, RuntimeError, TypeError, ValueError) as error:
            raise DataLoss(f"item {item.number} of the stream, column '{name}': "
                           f"{error or type(error).__name__}") from None
        return sample

    return decode


def _reader(name: str, encoding: str, size: int | None) -> _Read:
    """What is not known is bytes, and so is what would have to be unpickled."""
    kind, _, more = encoding.partition(":")
    if kind == "ndarray":
        return _array_reader(name, more, size)
    if encoding in _NUMBERS:
        number = struct.Struct(_NUMBERS[encoding])
        if size not in (None, number.size):
            raise InvalidSpec(f"column '{name}' is of {encoding}, and has {size} bytes")
        return lambda item, begin, end: number.unpack(item.data[begin:end])[0]
    if encoding in _TEXTS:
        value_of = _TEXTS[encoding]
        return lambda item, begin, end: value_of(str(item.data[begin:end], "utf-8"))
    return lambda item, begin, end: item.view(begin, end)


def _array_reader(name: str, more: str, size: int | None) -> _Read:
    """Of "ndarray", with the type and shape of all arrays where they are fixed."""
    element, _, numbers = more.partition(":")
    try:
        fixed_shape = [int(number) for number in numbers.split(",")] if numbers else None
        width = DTYPE_BYTES[TORCH_NAMES[element]] if element in _ELEMENTS.values() else 0
        if element and not width or fixed_shape and min(fixed_shape) < 1 or (
                size is not None and (fixed_shape is None or size != width * prod(fixed_shape))):
            raise ValueError
    except ValueError:
        raise InvalidSpec(f"column '{name}' is of ndarray:{more}, and has {size} bytes") from None

    def read(item: ItemBytes, begin: int, end: int) -> Any:
        dtype, shape, at = element, fixed_shape, begin
        if not dtype:
            dtype = _ELEMENTS.get(item.data[at] if at < end else -1, "")
            at += 1
        if shape is None and at < end:
            code = item.data[at]
            form = struct.Struct(f"<{code >> 2}{_SIZES[code & 3]}")
            at += 1 + form.size
            shape = list(form.unpack(item.data[at - form.size:min(at, end)]))
        if not dtype or shape is None:
            raise _Bad("it says no type or shape")
        ours = TORCH_NAMES[dtype]
        if at + prod(shape) * DTYPE_BYTES[ours] != end:
            raise _Bad(f"an array of {dtype} {shape} has not {end - at} bytes")
        return item.view(at, end, ours, shape)

    return read
