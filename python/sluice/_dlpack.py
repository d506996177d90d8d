"""DLPack's structures, read without taking them over: https://dmlc.github.io/dlpack/latest/."""

from __future__ import annotations

import ctypes
from typing import Any

from ._errors import InvalidSpec, Unsupported


class DLDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", DLDevice), ("ndim", ctypes.c_int32),
                ("dtype", DLDataType), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class DLVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


READ_ONLY = 1
_VERSION = (1, 3)


def capsule_of(obj: Any, stream: int | None) -> Any:
    try:
        return obj.__dlpack__(stream=stream, max_version=_VERSION)
    except TypeError:  # older than DLPack 1.0
        return obj.__dlpack__(stream=stream)


def in_capsule(capsule: Any) -> tuple[DLTensor, int]:
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.restype, valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    if valid(capsule, b"dltensor_versioned"):
        versioned = DLVersioned.from_address(pointer(capsule, b"dltensor_versioned"))
        if versioned.major != _VERSION[0]:
            raise Unsupported(f"DLPack of version {versioned.major}.{versioned.minor} is not "
                              "supported")
        return versioned.tensor, int(versioned.flags)
    if valid(capsule, b"dltensor"):
        return DLTensor.from_address(pointer(capsule, b"dltensor")), 0
    raise InvalidSpec("__dlpack__ gave no capsule of a tensor")
