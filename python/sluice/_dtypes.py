"""Names of element types: Sluice's, PyTorch's, NumPy's, and those of safetensors and DLPack."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

from ._errors import InvalidSpec, Unsupported

#: Bytes of an element. From f8e8m0 on types are opaque: they move, and are never cast.
DTYPE_BYTES = {
    "f64": 8, "f32": 4, "f16": 2, "bf16": 2, "f8e4m3": 1, "f8e5m2": 1,
    "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u64": 8, "u32": 4, "u16": 2, "u8": 1, "bool": 1,
    "f8e8m0": 1, "f4e2m1x2": 1, "i4x2": 1, "f8e4m3fnuz": 1, "f8e5m2fnuz": 1, "c64": 8, "c128": 16,
}

#: Those that are cast into each other.
FLOATS = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2")

# What PyTorch, NumPy and ml_dtypes call them.
TORCH_NAMES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2", "float8_e8m0fnu": "f8e8m0",
    "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2fnuz": "f8e5m2fnuz",
    "float4_e2m1fn_x2": "f4e2m1x2",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "bool",
    "bool_": "bool", "complex64": "c64", "complex128": "c128",
}

# What a text may say beside that: PyTorch's other names, and those of safetensors.
_TEXTS = {
    "double": "f64", "float": "f32", "half": "f16", "long": "i64", "int": "i32", "short": "i16",
    "f8_e4m3": "f8e4m3", "f8_e5m2": "f8e5m2", "f8_e8m0": "f8e8m0", "f8_e4m3fnuz": "f8e4m3fnuz",
    "f8_e5m2fnuz": "f8e5m2fnuz", "f4_e2m1_x2": "f4e2m1x2", "i4_x2": "i4x2",
}

# DLPack's (code, bits, lanes); https://dmlc.github.io/dlpack/latest/c_api.html
DLPACK = {
    (0, 8, 1): "i8", (0, 16, 1): "i16", (0, 32, 1): "i32", (0, 64, 1): "i64", (0, 4, 2): "i4x2",
    (1, 8, 1): "u8", (1, 16, 1): "u16", (1, 32, 1): "u32", (1, 64, 1): "u64",
    (2, 16, 1): "f16", (2, 32, 1): "f32", (2, 64, 1): "f64", (4, 16, 1): "bf16",
    (5, 64, 1): "c64", (5, 128, 1): "c128", (6, 8, 1): "bool",
    (10, 8, 1): "f8e4m3", (11, 8, 1): "f8e4m3fnuz", (12, 8, 1): "f8e5m2",
    (13, 8, 1): "f8e5m2fnuz", (14, 8, 1): "f8e8m0", (17, 4, 2): "f4e2m1x2",
}

# Of the struct module, for buffers; by kind, the size comes with the item.
FORMATS = {"f": "f", "d": "f", "e": "f", "b": "i", "h": "i", "i": "i", "l": "i", "q": "i",
            "n": "i", "B": "u", "H": "u", "I": "u", "L": "u", "Q": "u", "N": "u", "c": "u",
            "?": "bool", "Zf": "c", "Zd": "c"}

NATIVE_ORDERS = ("=", "|", "<" if sys.byteorder == "little" else ">")



def dtype_name(dtype: Any, *, tensor: str | None = None) -> str:
    """Sluice's name of a dtype: of PyTorch, NumPy, ml_dtypes, safetensors, or a text.

    Unsupported: Sluice has no such element type. InvalidSpec: it is no dtype.
    """
    try:
        return _known_name(dtype)
    except TypeError:  # not hashable, so no dtype
        raise InvalidSpec(f"{in_words(tensor)}{dtype!r} is not a dtype", tensor=tensor) from None
    except (InvalidSpec, Unsupported) as error:
        raise type(error)(f"{in_words(tensor)}{error}", tensor=tensor) from None


@lru_cache(maxsize=256)
def _known_name(dtype: Any) -> str:
    text: str | None
    if isinstance(dtype, str):
        text = dtype.rpartition(".")[2] if dtype.startswith(("torch.", "numpy.")) else dtype
        low = text.lower()
        name = low if low in DTYPE_BYTES else TORCH_NAMES.get(low) or _TEXTS.get(low)
    else:
        text = _dtype_text(dtype)
        if text is None:
            raise InvalidSpec(f"{dtype!r} is not a dtype")
        name = TORCH_NAMES.get(text)
        # Others count bytes from the left.
        if name is not None and getattr(dtype, "byteorder", "=") not in NATIVE_ORDERS:
            raise Unsupported(f"dtype {dtype} has its bytes in the other order than this machine")
    if name is None:
        raise Unsupported(f"dtype {text} is not supported; there are {' '.join(DTYPE_BYTES)}")
    return name


def _dtype_text(dtype: Any) -> str | None:
    name = getattr(dtype, "name", None)
    if isinstance(name, str):  # NumPy's dtype
        return name
    text = str(dtype)
    if text.startswith("torch."):
        return text[6:]
    if isinstance(dtype, type):  # numpy.float32, ml_dtypes.bfloat16
        return dtype.__name__
    return None


def in_words(tensor: str | None) -> str:
    return "" if tensor is None else f"tensor '{tensor}': "


def typestr_name(typestr: str) -> str:
    order, kind, size = typestr[0], typestr[1], typestr[2:]
    name = sized({"f": "f", "i": "i", "u": "u", "c": "c", "b": "bool"}.get(kind), size)
    if name is None or order not in NATIVE_ORDERS:
        raise Unsupported(f"dtype {typestr} is not supported; there are {' '.join(DTYPE_BYTES)}")
    return name


def sized(kind: str | None, size: Any) -> str | None:
    if kind is None:
        return None
    name = kind if kind == "bool" else f"{kind}{int(size) * 8}"
    return name if DTYPE_BYTES.get(name) == int(size) else None
