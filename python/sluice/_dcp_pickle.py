"""Pickles of DCP's checkpoints, read by an interpreter that knows few steps and few names.

A pickle is a program, which can call whatever it names. This interpreter makes plain values, and
records in place of PyTorch's objects. A name stands for one of the functions below, and any other
ends the reading. https://docs.python.org/3/library/pickletools.html tells of the steps.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from ._dtypes import TORCH_NAMES
from ._errors import InvalidSpec, Unsupported

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

_DIMS_MAX = 64  # more than PyTorch's; less than what takes long
_INT_BYTES_MAX = 16
# Of a value, its parts: a small pickle can hold one list many times over.
_PARTS_MAX = 1 << 20
_DEPTH_MAX = 100

_MARK = object()


class BadPickle(Exception):
    """What is wrong with it, in words."""


class Record:
    """An object with the fields that were saved."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.fields: dict[str, Any] = {}

    def get(self, name: str, kinds: type | tuple[type, ...], default: Any = None) -> Any:
        """A field. BadPickle: it is of another type."""
        value = self.fields.get(name, default)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise BadPickle(f"{name} of {self.kind} is a {type(value).__name__}")
        return value


class Index:
    """DCP's MetadataIndex, a key of dicts: a name, and where in the tensor an array begins."""

    def __init__(self) -> None:
        self.fqn = ""
        self.offset: tuple[int, ...] | None = None
        self.number: int | None = None
        self._key: Any = None

    def set(self, state: dict[Any, Any]) -> None:
        self.fqn, self.number = state.get("fqn", ""), state.get("index")
        offset = state.get("offset")
        self.offset = None if offset is None else sizes(offset)
        if type(self.fqn) is not str or not isinstance(self.number, (int, type(None))):
            raise BadPickle("a MetadataIndex without a name")
        self._key = (self.fqn, self.offset)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class Storage:
    """Memory of tensors that a pickle names: which part of the item has its bytes."""

    def __init__(self, key: str, dtype: str, count: int) -> None:
        self.key = key
        self.dtype = dtype  # "": any
        self.count = count  # elements; of any type: bytes


class SavedTensor:
    """A tensor as torch.save tells of it: strides are in elements."""

    def __init__(self, storage: Any, begin: Any, size: Any, strides: Any, dtype: Any,
                 marks: Any) -> None:
        if not isinstance(storage, Storage) or type(dtype) is not str or (
                dtype not in DTYPES or storage.dtype not in ("", dtype)):
            raise BadPickle("a tensor without memory of its type")
        self.storage = storage
        [self.begin] = sizes((begin,))
        self.size, self.strides = list(sizes(size)), list(sizes(strides))
        self.dtype = dtype
        if len(self.size) != len(self.strides):
            raise BadPickle(f"a tensor of {len(self.size)} dimensions with {len(self.strides)} "
                            "strides")
        if isinstance(marks, dict) and (marks.get("conj") or marks.get("neg")):
            raise Unsupported("a tensor that was saved as the conjugate or the negative of its "
                              "memory is not read; save a clone of it")


class _Dtype(str):
    """The name of a dtype, which is no text of the pickle's."""

    __slots__ = ()


def sizes(values: Any) -> tuple[int, ...]:
    """Numbers from 0 on. BadPickle: they are none, or too many."""
    if type(values) not in (tuple, list) or len(values) > _DIMS_MAX or any(
            type(value) is not int or not 0 <= value < 1 << 63 for value in values):
        raise BadPickle("sizes or places that are none")
    return tuple(values)


def _size(values: Any = ()) -> tuple[int, ...]:
    return sizes(values)


def _path(*parts: Any) -> str:
    if not all(type(part) is str for part in parts):
        raise BadPickle("a path that is none")
    return "/".join(parts)


def _ignored(*_: Any) -> None:
    """In place of what nothing here needs."""


def _ordered(*_: Any) -> dict[Any, Any]:
    return {}  # its items come after it


def _bytes(text: Any, encoding: Any) -> bytes:
    if type(text) is not str or encoding != "latin1":
        raise BadPickle("bytes that are none")
    return text.encode("latin1")


def _tensor_v2(storage: Any, begin: Any, size: Any, strides: Any, _grad: Any, _hooks: Any,
               marks: Any = None) -> SavedTensor:
    return SavedTensor(storage, begin, size, strides, getattr(storage, "dtype", ""), marks)


def _tensor_v3(storage: Any, begin: Any, size: Any, strides: Any, _grad: Any, _hooks: Any,
               dtype: Any, marks: Any = None) -> SavedTensor:
    return SavedTensor(storage, begin, size, strides, str(dtype), marks)


class _Name:
    """What a name of a pickle stands for: a function, or a value."""

    def __init__(self, function: Callable[..., Any] | None = None, record: str = "") -> None:
        self.function = function
        self.record = record


_DTYPE_NAMES: dict[tuple[str, str], Any] = {("torch", name): _Dtype(name) for name in DTYPES}
_COMMON: dict[tuple[str, str], Any] = {
    ("torch", "Size"): _Name(_size),
    ("collections", "OrderedDict"): _Name(_ordered, record="OrderedDict"),
}
_METADATA_NAMES: dict[tuple[str, str], Any] = {
    **_COMMON, **_DTYPE_NAMES,
    **{(_METADATA, name): _Name(record=name) for name in (
        "Metadata", "TensorStorageMetadata", "BytesStorageMetadata", "TensorProperties",
        "ChunkStorageMetadata", "MetadataIndex", "StorageMeta")},
    (_METADATA, "_MEM_FORMAT_ENCODING"): _Name(_ignored),
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"): _Name(record="_StorageInfo"),
    ("torch.serialization", "_get_layout"): _Name(_ignored),
    ("pathlib", "PosixPath"): _Name(_path),
    ("pathlib._local", "PosixPath"): _Name(_path),
}
_TENSOR_NAMES: dict[tuple[str, str], Any] = {
    **_COMMON, **_DTYPE_NAMES,
    ("torch._utils", "_rebuild_tensor_v2"): _Name(_tensor_v2),
    ("torch._utils", "_rebuild_tensor_v3"): _Name(_tensor_v3),
    **{("torch", name): _Dtype(name) for name in _STORAGES},
    ("torch.storage", "UntypedStorage"): _Dtype("UntypedStorage"),
}
_PLAIN_NAMES: dict[tuple[str, str], Any] = {**_COMMON, ("_codecs", "encode"): _Name(_bytes)}


class _Machine:
    """Reads one pickle of protocol 2 to 5, step by step."""

    def __init__(self, data: bytes, names: dict[tuple[str, str], Any]) -> None:
        self._data = data
        self._at = 0
        self._names = names
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        steps = _STEPS
        while True:
            step = self._data[self._at]
            self._at += 1
            if step == 0x2e:  # STOP
                return self._pop()
            try:
                steps[step](self)
            except KeyError:
                raise BadPickle(f"step {step:#04x} at byte {self._at - 1}") from None

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at:self._at + size]
        if len(taken) < size:
            raise BadPickle("it is too short")
        self._at += size
        return taken

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "little")

    def _text(self, size: int) -> str:
        return self._take(size).decode("utf-8", "surrogatepass")

    def _pop(self) -> Any:
        value = self._stack.pop()
        if value is _MARK:
            raise BadPickle("a mark in place of a value")
        return value

    def _pop_marked(self) -> list[Any]:
        at = len(self._stack) - 1
        while self._stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise BadPickle("no mark")
        values = self._stack[at + 1:]
        del self._stack[at:]
        return values

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def tuple_of(self, count: int) -> None:
        values = tuple(self._pop() for _ in range(count))
        self.push(values[::-1])

    def line(self) -> str:
        end = self._data.index(b"\n", self._at)
        text = self._data[self._at:end].decode("utf-8")
        self._at = end + 1
        return text

    def name(self, module: Any, name: Any) -> None:
        if type(module) is not str or type(name) is not str:
            raise BadPickle("a name that is no text")
        if (module, name) not in self._names:
            raise BadPickle(f"it names {module:.60}.{name:.60}, which it may not")
        self.push(self._names[module, name])

    def stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        self.name(module, name)

    def reduce(self) -> None:
        given, called = self._pop(), self._pop()
        if not isinstance(called, _Name) or called.function is None or type(given) is not tuple:
            raise BadPickle("a call of what is no function")
        self.push(called.function(*given))

    def new(self) -> None:
        given, made = self._pop(), self._pop()
        if not isinstance(made, _Name) or not made.record or given != ():
            raise BadPickle("an object of no class")
        if made.record == "OrderedDict":
            self.push({})
        else:
            self.push(Index() if made.record == "MetadataIndex" else Record(made.record))

    def build(self) -> None:
        state = self._pop()
        made = self._stack[-1]
        if isinstance(made, Index) and isinstance(state, dict):
            made.set(state)
        elif isinstance(made, Record) and isinstance(state, dict):
            made.fields.update({key: value for key, value in state.items() if type(key) is str})
        elif isinstance(made, Record) and isinstance(state, tuple) and state:
            made.fields["dtype"] = state[0]  # TensorProperties has a tuple
        elif made is not None and not isinstance(made, (SavedTensor, str)):
            raise BadPickle("a state of what has none")

    def append(self, values: list[Any]) -> None:
        if type(self._stack[-1]) is not list:
            raise BadPickle("items of what is no list")
        self._stack[-1].extend(values)

    def set_items(self, values: list[Any]) -> None:
        into = self._stack[-1]
        if type(into) is not dict or len(values) % 2:
            raise BadPickle("items of what is no dict")
        for key, value in zip(values[::2], values[1::2]):
            # Whatever is nested is hashed by recursion.
            if type(key) not in (str, int, float, bool, Index, type(None)):
                raise BadPickle(f"a key that is a {type(key).__name__}")
            into[key] = value

    def integer(self, size: int) -> None:
        if size > _INT_BYTES_MAX:
            raise BadPickle(f"a number of {size} bytes")
        self.push(int.from_bytes(self._take(size), "little", signed=True))

    def put(self, at: int) -> None:
        self._memo[at] = self._stack[-1]

    def get(self, at: int) -> None:
        if at not in self._memo:
            raise BadPickle("what is remembered was never there")
        self.push(self._memo[at])

    def persistent(self) -> None:
        pid = self._pop()
        if type(pid) is not tuple or len(pid) < 5 or pid[0] != "storage" or (
                type(pid[1]) is not _Dtype or pid[1] not in _STORAGES or type(pid[2]) is not str):
            raise BadPickle("a storage that is none")
        [count] = sizes((pid[4],))
        self.push(Storage(pid[2], _STORAGES[pid[1]], count))

    def skip(self, size: int) -> None:
        self._take(size)

    def pair(self) -> list[Any]:
        value, key = self._pop(), self._pop()
        return [key, value]


_STEPS: dict[int, Callable[[_Machine], None]] = {
    0x80: lambda m: m.skip(1),  # PROTO
    0x95: lambda m: m.skip(8),  # FRAME
    0x28: lambda m: m.push(_MARK),
    0x4e: lambda m: m.push(None),
    0x88: lambda m: m.push(True),
    0x89: lambda m: m.push(False),
    0x4a: lambda m: m.integer(4),
    0x4b: lambda m: m.push(m._number(1)),
    0x4d: lambda m: m.push(m._number(2)),
    0x8a: lambda m: m.integer(m._number(1)),  # LONG1
    0x47: lambda m: m.push(struct.unpack(">d", m._take(8))[0]),
    0x8c: lambda m: m.push(m._text(m._number(1))),
    0x58: lambda m: m.push(m._text(m._number(4))),
    0x8d: lambda m: m.push(m._text(m._number(8))),
    0x43: lambda m: m.push(m._take(m._number(1))),  # SHORT_BINBYTES
    0x42: lambda m: m.push(m._take(m._number(4))),
    0x8e: lambda m: m.push(m._take(m._number(8))),
    0x29: lambda m: m.push(()),
    0x85: lambda m: m.tuple_of(1),
    0x86: lambda m: m.tuple_of(2),
    0x87: lambda m: m.tuple_of(3),
    0x74: lambda m: m.push(tuple(m._pop_marked())),
    0x5d: lambda m: m.push([]),
    0x61: lambda m: m.append([m._pop()]),
    0x65: lambda m: m.append(m._pop_marked()),
    0x7d: lambda m: m.push({}),
    0x73: lambda m: m.set_items(m.pair()),
    0x75: lambda m: m.set_items(m._pop_marked()),
    0x63: lambda m: m.name(m.line(), m.line()),  # GLOBAL
    0x93: lambda m: m.stack_global(),
    0x52: lambda m: m.reduce(),
    0x81: lambda m: m.new(),
    0x62: lambda m: m.build(),
    0x71: lambda m: m.put(m._number(1)),
    0x72: lambda m: m.put(m._number(4)),
    0x94: lambda m: m.put(len(m._memo)),  # MEMOIZE
    0x68: lambda m: m.get(m._number(1)),
    0x6a: lambda m: m.get(m._number(4)),
    0x51: lambda m: m.persistent(),
}


def _read(data: bytes, what: str, names: dict[tuple[str, str], Any]) -> Any:
    try:
        return _Machine(data, names).run()
    except (BadPickle, IndexError, TypeError, ValueError) as error:
        raise InvalidSpec(f"{what} is not what DCP writes: {error}") from None


def read_metadata(data: bytes, what: str) -> Record:
    """DCP's metadata. InvalidSpec: it is none, or names other things."""
    metadata = _read(data, what, _METADATA_NAMES)
    if not isinstance(metadata, Record) or metadata.kind != "Metadata":
        raise InvalidSpec(f"{what} is not what DCP writes: a {type(metadata).__name__}")
    return metadata


def read_tensor(data: bytes, what: str) -> SavedTensor:
    """A tensor of torch.save. InvalidSpec: it is none, or names other things."""
    found = _read(data, what, _TENSOR_NAMES)
    if not isinstance(found, SavedTensor):
        raise InvalidSpec(f"{what} has a {type(found).__name__}, and no tensor")
    return found


def read_plain(data: bytes, what: str) -> Any:
    """A plain value of torch.save. InvalidSpec: it names classes, or is larger than a value is."""
    value = _read(data, what, _PLAIN_NAMES)
    parts, left = 0, [(value, 0)]
    while left:
        one, depth = left.pop()
        parts += 1
        if parts > _PARTS_MAX or depth > _DEPTH_MAX:
            raise InvalidSpec(f"{what} has a value of too many parts, or of too many levels")
        if isinstance(one, dict):
            left += [(each, depth + 1) for each in one.values()]
        elif isinstance(one, (list, tuple)):
            left += [(each, depth + 1) for each in one]
        elif isinstance(one, (_Name, _Dtype)):
            raise InvalidSpec(f"{what} has the name of a function in place of a value")
    return value
