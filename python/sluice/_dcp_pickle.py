"""Pickles of DCP's checkpoints, read by a list of the names that they may have.

A pickle can call whatever it names. These readers know a few names of PyTorch, to each of which
belongs a class of this module or, where that is asked for, PyTorch's own. Any other name ends the
reading.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ._dtypes import TORCH_NAMES
from ._errors import InvalidSpec

_METADATA = "torch.distributed.checkpoint.metadata"
_STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
    # Of any type; its size is in bytes.
    "UntypedStorage": "",
}
# Types that Sluice has no name for. A checkpoint may have tensors of them that nobody asks for.
_OTHER_DTYPES = ("complex32", "quint8", "qint8", "qint32", "quint4x2", "quint2x4", "bits8", "bits16",
                 "uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7",
                 "int1", "int2", "int3", "int4", "int5", "int6", "int7")
DTYPES = frozenset({*TORCH_NAMES, *_OTHER_DTYPES} - {"bool_"})


class _Record:
    """An object with the fields that were saved."""

    def __setstate__(self, state: Any) -> None:
        # TensorProperties has a tuple, which begins with the dtype.
        self.__dict__.update({"dtype": state[0]} if isinstance(state, tuple) else state)


class Metadata(_Record):
    """By names, `state_dict_metadata`; by MetadataIndex, `storage_data`."""


class TensorStorageMetadata(_Record):
    """`properties`, `size`, `chunks`."""


class BytesStorageMetadata(_Record):
    """No fields."""


class TensorProperties(_Record):
    """`dtype`."""


class ChunkStorageMetadata(_Record):
    """`offsets`, `sizes`."""


class StorageMeta(_Record):
    """Fields that nothing here needs."""


class StorageInfo(_Record):
    """`relative_path`, `offset`, `length`, and how it is transformed."""


class MetadataIndex(_Record):
    """A name and where in the tensor an array begins, or no place. A key of dicts."""

    fqn = ""
    offset: tuple[int, ...] | None = None  # also where the pickle has none

    def _key(self) -> tuple[Any, ...]:
        return (self.fqn, self.offset)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MetadataIndex) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _size(values: Any = ()) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def _path(*parts: str) -> str:
    return "/".join(parts)


def _ignored(*_: Any) -> None:
    """In place of what nothing here needs."""


_METADATA_NAMES: dict[tuple[str, str], Any] = {
    (_METADATA, "Metadata"): Metadata,
    (_METADATA, "TensorStorageMetadata"): TensorStorageMetadata,
    (_METADATA, "BytesStorageMetadata"): BytesStorageMetadata,
    (_METADATA, "TensorProperties"): TensorProperties,
    (_METADATA, "ChunkStorageMetadata"): ChunkStorageMetadata,
    (_METADATA, "MetadataIndex"): MetadataIndex,
    (_METADATA, "StorageMeta"): StorageMeta,
    (_METADATA, "_MEM_FORMAT_ENCODING"): _ignored,
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"): StorageInfo,
    ("torch.serialization", "_get_layout"): _ignored,
    ("torch", "Size"): _size,
    ("pathlib", "PosixPath"): _path,
    ("pathlib._local", "PosixPath"): _path,
    ("collections", "OrderedDict"): OrderedDict,
}
_METADATA_NAMES.update({("torch", name): name for name in DTYPES})


class Storage:
    """Memory of tensors that a pickle names: which part of the item has its bytes."""

    def __init__(self, key: str, dtype: str, count: int) -> None:
        self.key = key
        self.dtype = dtype  # "": any
        self.count = count  # elements; of any type: bytes


class SavedTensor:
    """A tensor as torch.save tells of it: strides are in elements."""

    def __init__(self, storage: Any, begin: int, size: Any, strides: Any, dtype: str) -> None:
        if not isinstance(storage, Storage) or storage.dtype not in ("", dtype):
            raise pickle.UnpicklingError("a tensor without memory of its type")
        self.storage = storage
        self.begin = int(begin)
        self.size = [int(value) for value in size]
        self.strides = [int(value) for value in strides]
        self.dtype = dtype


def _tensor_v2(storage: Any, begin: int, size: Any, strides: Any, *_: Any) -> SavedTensor:
    return SavedTensor(storage, begin, size, strides, getattr(storage, "dtype", ""))


def _tensor_v3(storage: Any, begin: int, size: Any, strides: Any, _requires_grad: Any, _hooks: Any,
               dtype: str, *_: Any) -> SavedTensor:
    return SavedTensor(storage, begin, size, strides, dtype)


_TENSOR_NAMES: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): _tensor_v2,
    ("torch._utils", "_rebuild_tensor_v3"): _tensor_v3,
    ("torch", "Size"): _size,
    ("collections", "OrderedDict"): OrderedDict,
}
_TENSOR_NAMES.update({("torch", name): name for name in DTYPES})
_TENSOR_NAMES.update({("torch", name): name for name in _STORAGES})
_TENSOR_NAMES["torch.storage", "UntypedStorage"] = "UntypedStorage"

_PLAIN_NAMES: dict[tuple[str, str], Any] = {("collections", "OrderedDict"): OrderedDict}


class _Reader(pickle.Unpickler):
    def __init__(self, data: bytes, find: Callable[[str, str], Any]) -> None:
        super().__init__(io.BytesIO(data), encoding="utf-8")
        self._find = find

    def find_class(self, module: str, name: str) -> Any:
        return self._find(module, name)

    def persistent_load(self, pid: Any) -> Any:
        if not (isinstance(pid, tuple) and len(pid) >= 5 and pid[0] == "storage"
                and pid[1] in _STORAGES):
            raise pickle.UnpicklingError(f"persistent id {pid!r:.60}")
        return Storage(str(pid[2]), _STORAGES[pid[1]], int(pid[4]))


def _read(data: bytes, what: str, names: dict[tuple[str, str], Any],
          own_classes: bool = False) -> Any:
    def find(module: str, name: str) -> Any:
        if (module, name) not in names:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which it may not")
        if own_classes:
            return getattr(import_module(module), name)
        return names[module, name]

    try:
        return _Reader(data, find).load()
    except Exception as error:  # pickle's machine raises whatever its steps do
        raise InvalidSpec(f"{what} is not what DCP writes: {error}") from None


def read_metadata(data: bytes, what: str, own_classes: bool) -> Any:
    """DCP's metadata. `own_classes`: as PyTorch's objects. InvalidSpec: it names other things."""
    metadata = _read(data, what, _METADATA_NAMES, own_classes)
    if type(metadata).__name__ != "Metadata":
        raise InvalidSpec(f"{what} is not what DCP writes: a {type(metadata).__name__}")
    return metadata


def read_tensor(data: bytes, what: str) -> SavedTensor:
    """Of torch.save: a tensor. InvalidSpec: it is none, or names other things."""
    found = _read(data, what, _TENSOR_NAMES)
    if not isinstance(found, SavedTensor):
        raise InvalidSpec(f"{what} has a {type(found).__name__}, and no tensor")
    return found


def read_plain(data: bytes, what: str) -> Any:
    """Of torch.save: a plain value. InvalidSpec: it names classes."""
    return _read(data, what, _PLAIN_NAMES)
