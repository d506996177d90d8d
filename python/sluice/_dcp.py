"""Checkpoints of torch.distributed.checkpoint (DCP): what they have, and where it lies.

Nothing that a checkpoint's pickles name is called (`_dcp_pickle`). PyTorch is not needed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from . import _sluice
from ._catalog import CheckpointEntry
from ._dcp_items import Array, Item, array_in, plain_in, read_items
from ._dcp_pickle import BadPickle, Index, Record, read_metadata, sizes
from ._dtypes import TORCH_NAMES
from ._errors import DataLoss, Disagreement, Error, InvalidSpec, Unsupported
from ._group import Group
from ._paths import shown

#: The name of the file that says where everything is.
METADATA = ".metadata"
_METADATA_BYTES_MAX = 1 << 30
_LOCAL = ("file:", "buffered:", "mmap:")


def metadata_bytes(place: str, options: Mapping[str, Any]) -> bytes:
    """The pickle that says where everything is. InvalidSpec: there is none."""
    try:
        return _sluice.read_object(place, METADATA, _METADATA_BYTES_MAX, options)
    except InvalidSpec as error:
        try:
            _sluice.read_object(place, f"__0{METADATA}", _METADATA_BYTES_MAX, options)
        except Error:
            raise InvalidSpec(f"no checkpoint of PyTorch's DCP: {error}") from None
        raise Unsupported(f"{shown(place)} was saved by each rank for itself, as save(no_dist=True)"
                          " or use_collectives=False does; such checkpoints are not read") from None


def check_same_kind(answers: list[Any], is_dcp: bool) -> None:
    """Disagreement: ranks load checkpoints of several kinds. Those of DCP answer with a dict."""
    for rank, answer in enumerate(answers):
        if isinstance(answer, dict) != is_dcp:
            raise Disagreement(f"rank {rank} loads a checkpoint of another kind: the uri of some "
                               "ranks alone begins with \"dcp:\"", ranks=(rank,))


class Stored:
    """What a checkpoint has, by names. Equal on all ranks.

    Thread: the session's.
    """

    def __init__(self, session: Group, place: str, options: Mapping[str, Any],
                 contents: Mapping[str, Any]) -> None:
        self._session = session
        self._place = place
        self._options = options
        self._files: list[str] = contents["files"]
        self._arrays: dict[str, Any] = contents["tensors"]
        self._bytes: dict[str, Any] = contents["bytes"]
        self._digest: str = contents["digest"]
        self._states: list[Any] = contents["states"]
        self.tensors = set(self._arrays)
        self.values = set(self._bytes)

    @classmethod
    def find(cls, session: Group, place_of: Callable[[], str], options: Mapping[str, Any]
             ) -> Stored:
        """Collective; blocks. Rank 0 reads the metadata. `place_of`: checks a rank's call.

        InvalidSpec: there is no checkpoint, or its metadata is not what DCP writes.
        """
        place = ""

        def read() -> Any:
            nonlocal place
            place = place_of()
            if session.rank > 0:
                return {"at": place}
            data = metadata_bytes(place, options)
            contents = contents_of(read_metadata(data, METADATA))
            return {**contents, "at": place, "digest": _digest(data),
                    "states": _states(place, contents["files"])}

        answers = session._exchange("load", read)
        check_same_kind(answers, is_dcp=True)
        for rank, answer in enumerate(answers):
            if answer["at"] != answers[0]["at"]:
                raise Disagreement(f"uri is {shown(answers[0]['at'])} on rank 0, and "
                                   f"{shown(answer['at'])} on rank {rank}", ranks=(0, rank))
        return cls(session, place, options, answers[0])

    def shapes(self) -> list[tuple[str, str, list[int]]]:
        """Name, dtype and shape of each tensor. The dtype is empty where Sluice has none."""
        return [(name, TORCH_NAMES.get(dtype, ""), size)
                for name, (dtype, size, _) in self._arrays.items()]

    def catalog(self, names: set[str]) -> list[CheckpointEntry]:
        """Collective; blocks. The arrays of these tensors. Each rank looks into some of the items.

        Unsupported: an array's type or form. DataLoss: an item is damaged, or is not the array that
        the metadata has.
        """
        wanted = [(name, *array) for name in sorted(names & self.tensors)
                  for array in self._arrays[name][2]]
        session = self._session
        own = wanted[session.rank::session.size]

        def read() -> Any:
            found = read_items(self._place, self._files, [item[3:] for item in own], self._options,
                               array_in)
            return [self._checked(item, array) for item, array in zip(own, found)]

        entries: list[Any] = [None] * len(wanted)
        for rank, places in enumerate(session._exchange("load", read)):
            entries[rank::session.size] = places
        return [CheckpointEntry(name, self._files[file], begin, self._dtype(name), sizes, offsets,
                                strides)
                for (name, offsets, sizes, file, *_), (begin, strides) in zip(wanted, entries)]

    def read_values(self, names: set[str]) -> dict[str, Any]:
        """Collective; blocks. Values that are no tensors, as JSON of `_values.encoded`."""
        from ._values import encoded, is_plain
        ordered = sorted(names & self.values)

        def read() -> Any:
            if self._session.rank > 0:
                return None
            found = []
            for name, value in zip(ordered, self.values_of(ordered)):
                if not is_plain(value):
                    raise Unsupported(f"'{name}' of the checkpoint is a {type(value).__name__}; "
                                      "numbers, texts, None, and lists, tuples and dicts of these "
                                      "are loaded", tensor=name)
                found.append(encoded(value))
            return found

        return dict(zip(ordered, self._session._exchange("load", read)[0]))

    def values_of(self, names: list[str]) -> list[Any]:
        """Values that are no tensors. Blocks. Unsupported: one is no plain value."""
        def look(item: Item) -> Any:
            try:
                return plain_in(item)
            except InvalidSpec as error:
                return error

        found = read_items(self._place, self._files, [self._bytes[name] for name in names],
                           self._options, look)
        for name, value in zip(names, found):
            if isinstance(value, InvalidSpec):
                raise Unsupported(f"'{name}' of the checkpoint is no plain value: {value}",
                                  tensor=name)
        return found

    def check_unchanged(self) -> None:
        """Collective; blocks. DataLoss: somebody has saved at the place meanwhile."""
        def read() -> Any:
            if self._session.rank > 0:
                return None
            return [_digest(metadata_bytes(self._place, self._options)) == self._digest,
                    _states(self._place, self._files) == self._states]

        if not all(self._session._exchange("load", read)[0]):
            raise DataLoss(f"{shown(self._place)} was replaced while it was loaded")

    def _dtype(self, name: str) -> str:
        dtype: str = self._arrays[name][0]
        if dtype not in TORCH_NAMES:
            raise Unsupported(f"tensor '{name}' of the checkpoint is of torch.{dtype}, which "
                              "Sluice does not move", tensor=name)
        return TORCH_NAMES[dtype]

    def _checked(self, item: tuple[Any, ...], array: Array) -> tuple[int, list[int]]:
        name, offsets, sizes, file, begin, _ = item
        dtype = self._arrays[name][0]
        self._dtype(name)
        if array.dtype != dtype or array.shape != sizes:
            raise DataLoss(f"tensor '{name}': {self._files[file]} has an array of {array.dtype} "
                           f"{array.shape} at byte {begin}, and {METADATA} says {dtype} {sizes}: "
                           "they are of two checkpoints", tensor=name)
        return begin + array.begin, array.strides


def contents_of(metadata: Record) -> dict[str, Any]:
    """What the metadata says, as JSON takes it.

    files: their names. tensors, by name: PyTorch's name of the dtype, the shape, and its arrays.
    An array: begin in the tensor, shape, file, begin in the file, bytes. bytes, by name: file,
    begin, bytes. InvalidSpec: the metadata is not what DCP writes. Unsupported: it is compressed.
    """
    try:
        return _contents_of(metadata)
    except (BadPickle, KeyError, UnicodeError) as error:
        raise InvalidSpec(f"{METADATA} is not what DCP writes: {error}") from None


def _contents_of(metadata: Record) -> dict[str, Any]:
    infos = {}
    for index, info in metadata.get("storage_data", dict).items():
        if not isinstance(index, Index) or not isinstance(info, Record):
            raise BadPickle("storage_data of other things")
        infos[index.fqn, index.offset] = info
    files: dict[str, int] = {}

    def place_in_files(name: str, offset: tuple[int, ...] | None) -> list[int]:
        info = infos[name, offset]
        if info.fields.get("transform_descriptors"):
            raise Unsupported(f"'{name}' of the checkpoint is compressed or encrypted, which is "
                              "not read", tensor=name)
        path = info.get("relative_path", str)
        path.encode()  # a text that can be one's name
        file = files.setdefault(path, len(files))
        return [file, *sizes((info.get("offset", int), info.get("length", int)))]

    tensors: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    for name, stored in metadata.get("state_dict_metadata", dict).items():
        if not isinstance(name, str) or not isinstance(stored, Record):
            raise BadPickle("state_dict_metadata of other things")
        name.encode()
        if stored.kind == "BytesStorageMetadata":
            plain[name] = place_in_files(name, None)
            continue
        size = sizes(stored.get("size", tuple))
        arrays: list[Any] = []
        for chunk in stored.get("chunks", list):
            if not isinstance(chunk, Record):
                raise BadPickle(f"chunks of '{name}' that are none")
            offsets, shape = (sizes(chunk.get(what, tuple)) for what in ("offsets", "sizes"))
            if not len(offsets) == len(shape) == len(size) or any(
                    begin + count > whole for begin, count, whole in zip(offsets, shape, size)):
                raise BadPickle(f"'{name}' has shape {list(size)}, and a chunk of {list(shape)} at "
                                f"{list(offsets)}")
            arrays.append([list(offsets), list(shape), *place_in_files(name, offsets)])
        if sum(prod(shape) for _, shape, *_ in arrays) != prod(size):
            raise BadPickle(f"'{name}' has shape {list(size)}, and its chunks are not all of it")
        dtype = stored.get("properties", Record).get("dtype", str)
        tensors[name] = [str(dtype), list(size), arrays]
    return {"files": list(files), "tensors": tensors, "bytes": plain}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _states(place: str, files: list[str]) -> list[Any]:
    """Of files in a directory, what changes when they are written."""
    if not place.startswith(_LOCAL):
        return []
    states: list[Any] = []
    for file in files:
        try:
            status = os.stat(os.path.join(place.partition(":")[2], file))
        except (OSError, ValueError):
            states.append(None)  # a load of it will say so
            continue
        states.append([status.st_ino, status.st_size, status.st_mtime_ns])
    return states
