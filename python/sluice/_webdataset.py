"""WebDataset's tars: which samples they hold, where these lie, and what is in a sample.

A sample is the range of a tar from the header of its first file to the end of its last one. So it
is a tar by itself, but for the end mark.
"""

from __future__ import annotations

import os
import re
import tarfile
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from math import prod
from tempfile import mkstemp
from threading import Event
from typing import Any

from . import _sluice
from ._batch import ItemBytes
from ._errors import Cancelled, DataLoss, Error, InvalidSpec, Unsupported
from ._paths import directory_of, shown
from ._shard_index import INDEX, INDEX_BYTES_MAX, SAMPLES_MAX, IndexText, polled

_BLOCK = tarfile.BLOCKSIZE
_HEADER_BYTES_MAX = 1 << 20  # of one member, with its long name and its records of PAX
_NAMES_MAX = 1 << 20
_TARS_AT_ONCE = 16
# So much is read at once, where the next header is near. Requests over networks take longer.
_AHEAD_LOCAL, _AHEAD = 64 << 10, 1 << 20
_FAR = 16 << 10  # where the next header is further away than that

_LOCAL = ("file:", "buffered:", "mmap:")
_BEGINNING = '{"samples": "webdataset", '  # of an index of `write_index`
_GROUP = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d{1,18})\.\.(\d{1,18})")
_META = re.compile(r"__[^/]*__(?:/|$)")
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")


def names_of(place: str) -> tuple[str, list[str] | None]:
    """The place of a uri, and the names of tars below it; None: all of a directory.

    "file:/data/train-{000..146}.tar" and "http://host/{a,b}.tar" name tars.
    """
    if place.startswith(("http:", "https:")) and re.search(r"[?#]", place):
        raise InvalidSpec(f"{shown(place)} goes on with a query or a fragment, of which messages "
                          "would tell: give a URL without")
    brace = place.find("{")
    if brace < 0 and not place.endswith(".tar"):
        return place, None
    slash = place.rfind("/", 0, brace if brace >= 0 else None) + 1
    return place[:slash], _expanded(place[slash:])


def _expanded(pattern: str) -> list[str]:
    texts = _GROUP.split(pattern)  # every other one was in braces
    choices = [_choices(text) if i % 2 else [text] for i, text in enumerate(texts)]
    if not 0 < prod(map(len, choices)) <= _NAMES_MAX:
        raise _bad_count(pattern)
    if "{" in "".join(texts[::2]) or "}" in "".join(texts[::2]):
        raise InvalidSpec(f"'{pattern}' has braces in braces, or one without its other one")
    return ["".join(parts) for parts in product(*choices)]


def _bad_count(pattern: str) -> InvalidSpec:
    return InvalidSpec(f"'{pattern}' stands for no name, or for more than {_NAMES_MAX}")


def _choices(text: str) -> list[str]:
    match = _RANGE.fullmatch(text)
    if match is None:
        if "," not in text:
            raise InvalidSpec(f"'{{{text}}}' is neither {{000..999}} nor {{a,b,c}}")
        return text.split(",")
    first, last = match.groups()
    if int(last) - int(first) >= _NAMES_MAX:
        raise _bad_count(f"{{{text}}}")
    padded = first.startswith("0") or last.startswith("0")
    width = max(len(first), len(last)) if padded else 0
    return [str(number).zfill(width) for number in range(int(first), int(last) + 1)]


def index_of(place: str, names: list[str] | None, options: dict[str, Any],
             poll: Callable[[], None]) -> str:
    """The index of these tars, or of all in the directory. Waits, and calls `poll` meanwhile.

    The index that `write_index` has left in a directory is taken as it is.
    """
    if names is None:
        beside, = polled([lambda: _own_index(place, options)], poll)
        if beside:
            return str(beside)
        if place.startswith(("http:", "https:")):
            raise InvalidSpec(f"{shown(place)} cannot be listed: name the tars, as "
                              "\"BASE/train-{000..146}.tar\", or put an index of "
                              "sluice.write_index there")
        names, = polled([lambda: _sluice.list_objects(place, ".tar", options)], poll)
    index = IndexText(_BEGINNING)
    ended = Event()
    ahead = _AHEAD_LOCAL if place.startswith(_LOCAL) else _AHEAD

    def look(name: str) -> tuple[int, array[int], array[int]]:
        reader = _sluice.RangeReader(place, [name], {**options, "connections": 1})
        return _samples_of(name, reader, ahead, ended)

    try:
        tars = polled((partial(look, name) for name in names), poll, _TARS_AT_ONCE)
        for name, tar in zip(names, tars):
            index.add(name, *tar)
    finally:
        ended.set()
    return index.text()


def _own_index(place: str, options: dict[str, Any]) -> str:
    """The index that `write_index` has left; empty: there is none."""
    try:
        data = _sluice.read_object(place, INDEX, INDEX_BYTES_MAX, options)
    except InvalidSpec:  # there is none
        return ""
    return data.decode(errors="replace") if data.startswith(_BEGINNING.encode()) else ""


def write_index(directory: str | os.PathLike[str]) -> str:
    """Writes an index.json of WebDataset's tars beside them. Returns its path.

    Streams with format="webdataset" then read the index in place of the tars' headers, also where
    the directory is copied to a server. Write it anew when tars change.
    """
    folder = directory_of("directory", directory)
    path = os.path.join(folder, INDEX)
    place = f"file:{folder}"
    text = index_of(place, _sluice.list_objects(place, ".tar"), {}, lambda: None)
    if os.path.lexists(path) and not _own_index(place, {}):
        raise InvalidSpec(f"{path} is there, and was not written by sluice.write_index")
    draft = ""
    try:
        handle, draft = mkstemp(prefix=f".{INDEX}.", dir=folder)  # which nobody has planted
        with open(handle, "w", encoding="utf-8") as file:
            os.fchmod(handle, 0o644)
            file.write(text)
            file.flush()
            os.fsync(handle)
        os.replace(draft, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(draft)
        raise Error(f"cannot write {path}: {error.strerror}") from None
    return path


def _samples_of(name: str, reader: _sluice.RangeReader, ahead: int, ended: Event
                ) -> tuple[int, array[int], array[int]]:
    """The bytes of a tar, where its samples begin, and their bytes. Thread: any.

    Cancelled: `ended` is set meanwhile.
    """
    buffer = reader.read([(0, 0, _BLOCK)])[0]
    size = reader.size(0)
    if size < 0:
        raise Unsupported(f"{name}: the server does not say how long it is")
    if buffer.startswith(_COMPRESSED):
        raise Unsupported(f"{name} is compressed, so that no part of it can be read by itself: "
                          "unpack it, as by gunzip")
    buffer_begin = 0

    def get(begin: int, count: int) -> bytes:
        nonlocal buffer, buffer_begin
        if ended.is_set():
            raise Cancelled("nobody needs the index any more")
        at = begin - buffer_begin
        if not 0 <= at <= len(buffer) - count:
            room = max(count, ahead if 0 <= at <= len(buffer) + ahead else _FAR)
            buffer = reader.read([(0, begin, min(room, size - begin))])[0]
            buffer_begin, at = begin, 0
        return buffer[at:at + count]

    begins, sizes = array("q"), array("q")
    for _, begin, end, _ in _samples(name, _Headers(get, size), True):
        begins.append(begin)
        sizes.append(end - begin)
        if len(sizes) > SAMPLES_MAX:
            raise InvalidSpec(f"{name} has more than {SAMPLES_MAX} samples")
    return size, begins, sizes


def decode(item: ItemBytes) -> dict[str, Any]:
    """The sample that an item is: its key, and a tensor of bytes for each extension."""
    data = item.data
    what = f"item {item.number} of the stream"
    found = list(_samples(what, _Headers(lambda at, count: bytes(data[at:at + count]), len(data)),
                          False))
    if len(found) != 1:
        raise DataLoss(f"{what} is not one sample of WebDataset's, but {len(found)}: its tar is "
                       "another one than was indexed")
    key, _, _, files = found[0]
    return {"__key__": key, **{extension: item.view(*place) for extension, place in files.items()}}


def _samples(what: str, file: _Headers, has_end: bool
             ) -> Iterator[tuple[str, int, int, dict[str, tuple[int, int]]]]:
    """Key, begin, end, and the files by extension, of each sample. `has_end`: as in `_members`.

    The rules are WebDataset's: a file's extension is all that follows the first dot of its name,
    and files one behind the other with equal paths before it are a sample.
    """
    key: str | None = None
    begin = end = 0
    files: dict[str, tuple[int, int]] = {}
    for member, member_end in _members(what, file, has_end):
        folder, slash, name = member.name.rpartition("/")
        stem, dot, extension = name.partition(".")
        if not member.isreg() or not stem or not dot or _META.match(member.name):
            continue
        if folder + slash + stem != key:
            if key is not None:
                yield key, begin, end, files
            key, begin, files = folder + slash + stem, member.offset, {}
        extension = extension.lower()
        if extension in files or extension == "__key__":
            raise InvalidSpec(f"{what}: sample '{key}' has two files '.{extension}'")
        files[extension] = (member.offset_data, member.offset_data + member.size)
        end = member_end
    if key is not None:
        yield key, begin, end, files


class _Headers:
    """The headers of a tar, as tarfile reads them: never the data, and never many bytes at once."""

    def __init__(self, get: Callable[[int, int], bytes], size: int) -> None:
        self._get = get
        self._at = 0
        self.size = size
        self.left = _HEADER_BYTES_MAX  # of this member

    def seek(self, at: int) -> None:
        self._at = at

    def tell(self) -> int:
        return self._at

    def read(self, count: int) -> bytes:
        if not 0 <= count <= self.left:
            raise tarfile.ReadError(f"it has a header of more than {_HEADER_BYTES_MAX} bytes")
        self.left -= count
        count = max(0, min(count, self.size - self._at))
        data = self._get(self._at, count) if count else b""
        self._at += count
        return data


def _members(what: str, file: _Headers, has_end: bool) -> Iterator[tuple[tarfile.TarInfo, int]]:
    """Each member, and where the next one begins. `has_end`: there is a mark behind the last one.

    DataLoss, Unsupported: the tar, which errors call `what`, is not whole, or not plain.
    """
    at = 0
    try:
        source: Any = file
        tar = tarfile.TarFile(fileobj=source, encoding="utf-8")
        member = tar.next()
        while member is not None:
            if {"path", "size"} & tar.pax_headers.keys() or member.issparse():
                raise Unsupported(f"{what}: {member.name!r} is sparse, or is described by a record "
                                  "of PAX for all members, which is not read")
            if member.size < 0 or not at < member.offset_data <= tar.offset:
                raise tarfile.ReadError(f"{member.name!r} has a negative size")
            if tar.offset > file.size:
                raise DataLoss(f"{what} was cut off: {member.name!r} ends at byte {tar.offset}, "
                               f"and there are {file.size}")
            yield member, tar.offset
            at, file.left = tar.offset, _HEADER_BYTES_MAX
            file.seek(at)
            block = file.read(_BLOCK)
            if len(block) < _BLOCK:
                break
            if not any(block):
                return
            file.seek(at)
            member = tarfile.TarInfo.fromtarfile(tar)
    except Error:
        raise
    except Exception as error:  # tarfile raises what it likes
        raise DataLoss(f"{what} is no tar, or is damaged at byte {at} or soon after: "
                       f"{str(error) or type(error).__name__}") from None
    if has_end and at > 0:
        raise DataLoss(f"{what} was cut off: it ends at byte {file.size}, without the mark of an "
                       "end")
