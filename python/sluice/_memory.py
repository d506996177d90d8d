"""Where a tensor's memory is, whoever made the tensor: PyTorch, NumPy, CuPy, JAX, DLPack, buffers.

No library is imported: objects are told by what they have.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Optional

from ._dlpack import READ_ONLY, capsule_of, in_capsule
from ._dtypes import (DLPACK, DTYPE_BYTES, FORMATS, NATIVE_ORDERS, dtype_name, in_words, sized,
                      typestr_name)
from ._errors import InvalidSpec, Unsupported
from ._texts import with_article

# The extension's view: address, shape, strides in elements or None where dense, dtype, DLPack's
# device type, ordinal.
View = tuple[int, tuple[int, ...], Optional[tuple[int, ...]], str, int, int]

CPU = 1
CUDA = 2
CUDA_HOST = 3

_DEVICES = {"cpu": CPU, "cuda": CUDA}


@dataclass(frozen=True)
class Described:
    """A tensor's memory. `owner` keeps it; `strides` are in elements, None where dense."""

    ptr: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: str
    device: int
    ordinal: int
    owner: Any = field(repr=False)

    @property
    def view(self) -> View:
        """What the extension takes."""
        return (self.ptr, self.shape, self.strides, self.dtype, self.device, self.ordinal)

    @property
    def contiguous(self) -> bool:
        return self.strides is None

    @property
    def nbytes(self) -> int:
        """Of its elements."""
        return prod(self.shape) * DTYPE_BYTES[self.dtype]


def describe(obj: Any, *, writable: bool, tensor: str | None = None,
             late: bool = False) -> Described:
    """Where the memory of `obj` is. `tensor`: its name, for errors. Copies nothing.

    `writable`: it is to be written to. `late`: memory may be missing, as of a meta tensor; then
    `ptr` is 0. An empty tensor's `ptr` may be 0, too.
    InvalidSpec: it is no tensor, has no memory, or cannot be written to, or strides are negative.
    Unsupported: its dtype, device or form. A tensor that waits for a collective is waited for.
    """
    for fits, read in _READERS:
        if fits(obj):
            try:
                described = read(obj, writable)
            except (InvalidSpec, Unsupported) as error:
                if error.tensor is not None or tensor is None:
                    raise
                raise type(error)(f"{in_words(tensor)}{error}", tensor=tensor) from error
            _check(described, tensor, writable, late)
            return described
    raise InvalidSpec(f"{in_words(tensor)}{with_article(_type_text(obj))} is no tensor: it has "
                      "neither data_ptr, nor an array interface, __dlpack__ or a buffer",
                      tensor=tensor)


def is_tensor(obj: Any) -> bool:
    """Whether `describe` would look at it."""
    return any(fits(obj) for fits, _ in _READERS)


def _check(described: Described, tensor: str | None, writable: bool, late: bool) -> None:
    sizes = described.shape
    if described.strides is not None and prod(sizes):
        for size, stride in zip(sizes, described.strides):
            if size > 1 and stride < 0:
                raise InvalidSpec(f"{in_words(tensor)}strides {list(described.strides)} run "
                                  "backwards; give a copy", tensor=tensor)
            if writable and size > 1 and stride == 0:
                raise InvalidSpec(
                    f"{in_words(tensor)}several elements of a destination of shape {list(sizes)} "
                    f"and strides {list(described.strides)} have one place in memory, as after "
                    "expand(); give memory of its own, such as contiguous(), and copy from there",
                    tensor=tensor)
    if described.ptr == 0 and prod(sizes) and not late:
        raise InvalidSpec(f"{in_words(tensor)}it has no memory: it is on meta, or was freed",
                          tensor=tensor)


def _type_text(obj: Any) -> str:
    kind = type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else (
        f"{kind.__module__}.{kind.__qualname__}")


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """In elements, of a dense row-major tensor."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 1, 0, -1):
        strides[i - 1] = strides[i] * max(1, shape[i])
    return tuple(strides)


def span_bytes(shape: Sequence[int], strides: Sequence[int] | None, dtype: str) -> int:
    """From the first element to the end of the last one."""
    if 0 in shape:
        return 0
    last = sum((n - 1) * stride for n, stride in zip(shape, strides or dense_strides(shape)))
    return (last + 1) * DTYPE_BYTES[dtype]


def _strides_or_none(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...] | None:
    """None if they are those of a dense tensor. Those of dimensions of one element do not count."""
    if 0 in shape:
        return None
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1:
            if stride != expected:
                return strides
            expected *= size
    return None


# PyTorch, and what has its methods.


def _fits_torch(obj: Any) -> bool:
    return hasattr(obj, "data_ptr") and hasattr(obj, "stride") and hasattr(obj, "shape")


def _read_torch(obj: Any, writable: bool) -> Described:
    obj = settled(obj)
    kind = type(obj)
    if hasattr(obj, "device_mesh") and hasattr(obj, "placements"):
        raise InvalidSpec("a DTensor has a layout: give it as it is, not as memory")
    if hasattr(obj, "fake_mode"):
        raise InvalidSpec(f"a {_type_text(obj)} has no memory")
    if hasattr(kind, "__tensor_flatten__"):
        raise Unsupported(f"a {_type_text(obj)} is made of other tensors: give these, each by a "
                          "name of its own")
    form = str(getattr(obj, "layout", "torch.strided"))
    if form != "torch.strided":
        raise Unsupported(f"a tensor of layout {form} has no strides; give a dense one")
    dtype = dtype_name(obj.dtype)
    if why := hidden_values(obj):
        raise Unsupported(why)
    shape = tuple(int(size) for size in obj.shape)
    strides = _strides_or_none(shape, tuple(int(stride) for stride in obj.stride()))
    device, ordinal = _torch_device(obj.device)
    if device is None:
        return Described(0, shape, strides, dtype, CPU, 0, obj)
    held = needed = 0
    try:
        pointer = int(obj.data_ptr())
        held = obj.untyped_storage().nbytes()
        needed = obj.storage_offset() * DTYPE_BYTES[dtype] + span_bytes(shape, strides, dtype)
        if held == 0:
            pointer = 0  # a storage that was freed may still give an address: the offset
    except AttributeError:
        pass
    except (RuntimeError, NotImplementedError) as error:
        raise InvalidSpec(f"a {_type_text(obj)} has no memory: {error}") from None
    if 0 < held < needed and 0 not in shape:
        raise InvalidSpec(f"its storage was resized to {held} bytes; it needs {needed}")
    return Described(pointer, shape, strides, dtype, device, ordinal, obj)


def hidden_values(obj: Any) -> str | None:
    """Why the memory of a tensor of PyTorch does not have the values that the tensor shows."""
    for lazy, resolve in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        if getattr(obj, lazy, bool)():
            return f"its memory has other values than it shows; give {resolve}()"
    return None


def settled(obj: Any) -> Any:
    """The tensor behind one that waits for a collective, which is waited for. Others as is."""
    if hasattr(obj, "trigger_wait") or type(obj).__name__ == "AsyncCollectiveTensor":
        wait = getattr(obj, "trigger_wait", None) or obj.wait
        waited = wait()
        inner = waited if waited is not None and waited is not obj else getattr(obj, "elem", None)
        return obj if inner is None else inner
    return obj


def _torch_device(device: Any) -> tuple[int | None, int]:
    kind = getattr(device, "type", None) or str(device).partition(":")[0]
    if kind == "meta":
        return None, 0
    if kind not in _DEVICES:
        raise Unsupported(f"memory of device {device} is not supported; there are cpu and cuda")
    return _DEVICES[kind], int(getattr(device, "index", None) or 0)


# Arrays of NumPy, and of others on a device.


def _read_array(obj: Any, writable: bool) -> Described:
    return _from_interface(obj, obj.__array_interface__, writable, CPU, 0)


def _read_cuda_array(obj: Any, writable: bool) -> Described:
    device = getattr(obj, "device", None)
    ordinal = getattr(device, "id", None)
    return _from_interface(obj, obj.__cuda_array_interface__, writable, CUDA,
                           int(ordinal) if isinstance(ordinal, int) else 0)


def _from_interface(obj: Any, interface: dict[str, Any], writable: bool, device: int,
                    ordinal: int) -> Described:
    if type(obj).__name__ == "MaskedArray" or interface.get("mask") is not None:
        raise Unsupported("an array with a mask is not supported")
    has_dtype = hasattr(obj, "dtype")
    dtype = dtype_name(obj.dtype) if has_dtype else typestr_name(interface["typestr"])
    if dtype_size := getattr(getattr(obj, "dtype", None), "itemsize", None):
        _check_size(dtype, dtype_size)
    pointer, readonly = interface["data"]
    if writable and (readonly or type(obj).__module__.startswith("jax")):
        raise InvalidSpec("its memory cannot be written to")
    owner = obj
    if device == CPU and not hasattr(obj, "__setitem__") and hasattr(obj, "reshape"):
        # A NumPy scalar describes a copy of itself that nobody keeps.
        if writable:
            raise InvalidSpec("a NumPy scalar cannot be written to")
        owner = obj.reshape(())
        interface = owner.__array_interface__
        pointer, readonly = interface["data"]
    shape = tuple(int(size) for size in interface["shape"])
    strides = interface.get("strides")
    if strides is not None:
        strides = _in_elements(shape, strides, DTYPE_BYTES[dtype])
    return Described(int(pointer or 0), shape, strides, dtype, device, ordinal, owner)


def _check_size(dtype: str, size: int) -> None:
    if DTYPE_BYTES[dtype] != size:
        raise Unsupported(f"an element of {dtype} has {DTYPE_BYTES[dtype]} bytes, and here {size}")


def _in_elements(shape: tuple[int, ...], strides: Sequence[int],
                 size: int) -> tuple[int, ...] | None:
    if 0 in shape:
        return None
    for extent, stride in zip(shape, strides):
        if extent > 1 and stride % size:
            raise Unsupported(f"strides of {list(strides)} bytes are not whole elements of {size} "
                              "bytes")
    return _strides_or_none(shape, tuple(int(stride) // size for stride in strides))


# DLPack.


def _read_dlpack(obj: Any, writable: bool) -> Described:
    if not hasattr(obj, "__dlpack_device__"):
        raise InvalidSpec(f"a {_type_text(obj)} has __dlpack__ and no __dlpack_device__")
    device, ordinal = (int(value) for value in obj.__dlpack_device__())
    if device not in (CPU, CUDA, CUDA_HOST):
        raise Unsupported(f"memory of DLPack's device type {device} is not supported; there are "
                          "1 (cpu), 2 (cuda) and 3 (pinned)")
    # -1: nobody orders streams yet. Each call asks anew for the stream that it takes part in.
    stream = -1 if device == CUDA else None
    try:
        capsule = capsule_of(obj, stream)
    except (BufferError, RuntimeError, ValueError) as error:
        raise Unsupported(f"a {_type_text(obj)} gives no DLPack: {error}") from None
    tensor, flags = in_capsule(capsule)
    if writable and (flags & READ_ONLY or type(obj).__module__.startswith("jax")):
        raise InvalidSpec("its memory cannot be written to")
    kind = (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
    dtype = DLPACK.get(kind)
    if dtype is None:
        raise Unsupported(f"DLPack's dtype of code {kind[0]}, {kind[1]} bits and {kind[2]} lanes "
                          f"is not supported; there are {' '.join(DTYPE_BYTES)}")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = None
    if tensor.strides:
        strides = _strides_or_none(shape, tuple(tensor.strides[i] for i in range(tensor.ndim)))
    pointer = int(tensor.data or 0)
    # The capsule frees what it holds at its own end, as nobody takes it over.
    return Described(pointer + tensor.byte_offset if pointer else 0, shape, strides, dtype, device,
                     ordinal, (obj, capsule))


# Buffers.


def _fits_buffer(obj: Any) -> bool:
    if isinstance(obj, (str, list, dict, tuple)):
        return False
    try:
        memoryview(obj).release()
    except (TypeError, BufferError):
        return False
    return True


def _read_buffer(obj: Any, writable: bool) -> Described:
    memory = memoryview(obj)
    if writable and memory.readonly:
        raise InvalidSpec(f"a {_type_text(obj)} cannot be written to")
    text = memory.format
    kind = text.lstrip("@=" + ("<" if "<" in NATIVE_ORDERS else ">"))
    dtype = sized(FORMATS.get(kind), memory.itemsize)
    if dtype is None:
        raise Unsupported(f"a buffer of format {text!r} is not supported; there are "
                          f"{' '.join(DTYPE_BYTES)}")
    shape = tuple(memory.shape or ())
    strides = _in_elements(shape, memory.strides or (), memory.itemsize)
    return Described(_address_of(memory), shape, strides, dtype, CPU, 0, memory)


class _PyBuffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p),
                ("internal", ctypes.c_void_p)]


_PYBUF_FULL_RO = 0x11C


def _address_of(memory: memoryview) -> int:
    """Of a buffer's first element. `memory` keeps it there."""
    view = _PyBuffer()
    get = ctypes.pythonapi.PyObject_GetBuffer
    get.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
    get(memory, ctypes.byref(view), _PYBUF_FULL_RO)
    try:
        if view.suboffsets:
            raise Unsupported("a buffer with suboffsets is not supported")
        return int(view.buf or 0)
    finally:
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))


def _read_described(obj: Described, writable: bool) -> Described:
    return obj


_READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, bool], Described]], ...] = (
    (lambda obj: isinstance(obj, Described), _read_described),
    (_fits_torch, _read_torch),
    (lambda obj: hasattr(obj, "__cuda_array_interface__"), _read_cuda_array),
    (lambda obj: hasattr(obj, "__array_interface__"), _read_array),
    (lambda obj: hasattr(obj, "__dlpack__"), _read_dlpack),
    (_fits_buffer, _read_buffer),
)
