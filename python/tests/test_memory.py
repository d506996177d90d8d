"""Where memory is: buffers, arrays of NumPy and ml_dtypes, DLPack, and stand-ins for the others."""

from __future__ import annotations

import array
import ctypes
import gc
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from stand_ins import ENDED, Pack, Tensor

from sluice import _memory as memory
from sluice._dtypes import dtype_name
from sluice._errors import InvalidSpec, Unsupported
from sluice._memory import describe


def test_a_bytearray_is_memory() -> None:
    data = bytearray(b"abcdef")
    found = describe(data, writable=True)
    address = ctypes.addressof(ctypes.c_char.from_buffer(data))
    assert found.view == (address, (6,), None, "u8", memory.CPU, 0)
    assert found.contiguous and found.nbytes == 6
    with pytest.raises(BufferError):  # what is described stays where it is
        data.extend(b"g")
    del found
    gc.collect()
    data.extend(b"g")


@pytest.mark.parametrize("code, dtype", [("b", "i8"), ("B", "u8"), ("h", "i16"), ("H", "u16"),
                                         ("i", "i32"), ("I", "u32"), ("q", "i64"), ("Q", "u64"),
                                         ("f", "f32"), ("d", "f64")])
def test_formats_of_buffers(code: str, dtype: str) -> None:
    data = array.array(code, [1, 2, 3])
    found = describe(data, writable=True)
    assert found.view == (data.buffer_info()[0], (3,), None, dtype, 1, 0)


def test_shapes_and_strides_of_buffers() -> None:
    data = bytearray(24)
    whole = memoryview(data).cast("B").cast("i", (2, 3))
    assert describe(whole, writable=True).view[1:4] == ((2, 3), None, "i32")
    steps = memoryview(array.array("i", range(6)))[1::2]
    found = describe(steps, writable=True)
    assert found.strides == (2,) and found.shape == (3,)
    assert ctypes.c_int.from_address(found.ptr).value == 1
    with pytest.raises(InvalidSpec, match="'w': strides .*backwards"):
        describe(memoryview(data)[::-1], writable=False, tensor="w")


def test_what_cannot_be_written_to_is_refused_by_name() -> None:
    assert describe(b"abc", writable=False).shape == (3,)
    with pytest.raises(InvalidSpec, match="'w': .*cannot be written") as error:
        describe(b"abc", writable=True, tensor="w")
    assert error.value.tensor == "w"


@pytest.mark.parametrize("what", [None, 3, "text", [1, 2], {"a": 1}, object()])
def test_what_is_no_tensor_is_refused_by_name(what: object) -> None:
    assert not memory.is_tensor(what)
    with pytest.raises(InvalidSpec, match=f"'w': an? {type(what).__name__} is no tensor"):
        describe(what, writable=False, tensor="w")


@pytest.mark.parametrize("given, name", [
    ("f32", "f32"), ("float32", "f32"), ("torch.float32", "f32"), ("F32", "f32"),
    ("bfloat16", "bf16"), ("BF16", "bf16"), ("F8_E4M3", "f8e4m3"), ("float8_e4m3fn", "f8e4m3"),
    ("half", "f16"), ("long", "i64"), ("bool", "bool"), ("BOOL", "bool"), ("complex64", "c64"),
    ("float8_e8m0fnu", "f8e8m0"), ("float4_e2m1fn_x2", "f4e2m1x2"), ("i4x2", "i4x2"),
    ("float8_e5m2fnuz", "f8e5m2fnuz"), ("uint16", "u16"),
])
def test_names_of_dtypes(given: str, name: str) -> None:
    assert dtype_name(given) == name


def test_other_dtypes_are_refused_by_name() -> None:
    for dtype in ("qint8", "float8_e4m3", "datetime64", "int4", "F6_E2M3"):
        with pytest.raises(Unsupported, match=f"tensor 'w': dtype {dtype} is not supported"):
            dtype_name(dtype, tensor="w")
    with pytest.raises(InvalidSpec, match="3 is not a dtype"):
        dtype_name(3)


Torch = partial(Tensor, pointer=4096)


def test_tensors_by_their_attributes() -> None:
    assert describe(Torch(), writable=True).view == (4096, (2, 3), None, "f32", 1, 0)
    found = describe(Torch(device="cuda", index=3, dtype="torch.float8_e5m2"), writable=True)
    assert found.view == (4096, (2, 3), None, "f8e5m2", 2, 3)
    assert describe(Torch(strides=(1, 2)), writable=True).strides == (1, 2)
    # Strides along dimensions of one element do not count.
    assert describe(Torch(shape=(1, 3), strides=(77, 1)), writable=True).strides is None
    tensor = Torch()
    assert describe(tensor, writable=True).owner is tensor


def test_empty_tensors_need_no_memory() -> None:
    found = describe(Torch(shape=(0, 3), pointer=0), writable=True)
    assert found.view == (0, (0, 3), None, "f32", 1, 0)


def test_tensors_without_memory() -> None:
    with pytest.raises(InvalidSpec, match="'w': it has no memory"):
        describe(Torch(pointer=0), writable=False, tensor="w")
    with pytest.raises(InvalidSpec, match="'w': it has no memory"):
        describe(Torch(device="meta"), writable=True, tensor="w")
    found = describe(Torch(device="meta"), writable=True, late=True)
    assert found.ptr == 0 and found.shape == (2, 3)
    # A freed storage gives the offset as an address.
    freed = SimpleNamespace(nbytes=lambda: 0)
    with pytest.raises(InvalidSpec, match="no memory"):
        describe(Torch(pointer=64, storage_offset=lambda: 16, untyped_storage=lambda: freed),
                 writable=True)


def test_tensors_that_are_not_what_they_seem() -> None:
    made_of_others = type("Quantized", (Tensor,), {"__tensor_flatten__": lambda self: ([], None)})
    for tensor, text in (
            (Torch(device="xpu"), "'w': memory of device"),
            (Torch(layout="torch.sparse_coo"), "layout torch.sparse_coo"),
            (Torch(dtype="torch.complex64", is_conj=lambda: True), "resolve_conj"),
            (Torch(dtype="torch.qint8"), "dtype qint8"),
            (made_of_others(pointer=4096), "Quantized is made of other tensors")):
        with pytest.raises(Unsupported, match=text):
            describe(tensor, writable=False, tensor="w")
    with pytest.raises(InvalidSpec, match=r"several elements .*\[0, 1\] have one place "
                       r"in memory, as after expand\(\); give memory of its own"):
        describe(Torch(strides=(0, 1)), writable=True)
    assert describe(Torch(strides=(0, 1)), writable=False).strides == (0, 1)


def test_a_tensor_that_waits_is_waited_for() -> None:
    class AsyncCollectiveTensor(Tensor):
        waits = 0

        def trigger_wait(self) -> Tensor:
            self.waits += 1
            return self.elem  # type: ignore[no-any-return]

    tensor = AsyncCollectiveTensor(pointer=1, elem=Torch(pointer=8192))
    assert describe(tensor, writable=False).ptr == 8192 and tensor.waits == 1


def cuda_array(**more: Any) -> Any:
    interface = {"data": (4096, False), "shape": (2, 3), "typestr": "<f2", "strides": None,
                 "version": 3, **more}
    return SimpleNamespace(__cuda_array_interface__=interface, device=SimpleNamespace(id=2))


def test_arrays_on_devices() -> None:
    assert describe(cuda_array(), writable=True).view == (4096, (2, 3), None, "f16", 2, 2)
    assert describe(cuda_array(strides=(2, 4)), writable=True).strides == (1, 2)
    with pytest.raises(InvalidSpec, match="cannot be written"):
        describe(cuda_array(data=(4096, True)), writable=True)
    for wrong, text in (({"strides": (7, 2)}, "not whole elements"), ({"mask": object()}, "mask"),
                        ({"typestr": ">f2"}, "dtype >f2")):
        with pytest.raises(Unsupported, match=text):
            describe(cuda_array(**wrong), writable=False)


def test_dlpack() -> None:
    pack = Pack(offset=8)
    before = len(ENDED)
    found = describe(pack, writable=True)
    assert found.view == (ctypes.addressof(pack.data) + 8, (2, 3), None, "f32", 1, 0)
    assert pack.asked == [{"stream": None, "max_version": (1, 3)}]
    assert len(ENDED) == before  # what the capsule holds is still there
    del found
    gc.collect()
    assert len(ENDED) == before + 1
    assert describe(Pack(strides=(1, 2)), writable=True).strides == (1, 2)
    device = Pack(device=2)
    assert describe(device, writable=True).device == 2
    assert device.asked[0]["stream"] == -1  # never an implicit order
    old = Pack(versioned=False)
    assert describe(old, writable=True).shape == (2, 3)
    assert old.asked[1] == {"stream": None}


@pytest.mark.parametrize("dtype, name", [
    ((10, 8, 1), "f8e4m3"), ((12, 8, 1), "f8e5m2"), ((14, 8, 1), "f8e8m0"), ((4, 16, 1), "bf16"),
    ((17, 4, 2), "f4e2m1x2"), ((0, 4, 2), "i4x2"), ((6, 8, 1), "bool"), ((5, 64, 1), "c64"),
    ((11, 8, 1), "f8e4m3fnuz"), ((13, 8, 1), "f8e5m2fnuz"), ((1, 16, 1), "u16")])
def test_dtypes_of_dlpack(dtype: tuple[int, int, int], name: str) -> None:
    assert describe(Pack(dtype=dtype), writable=True).dtype == name


def test_dlpack_that_is_refused() -> None:
    for pack, text in ((Pack(dtype=(2, 32, 4)), "32 bits and 4 lanes"),
                       (Pack(device=10), "device type 10"), (Pack(major=2), "version 2.0")):
        with pytest.raises(Unsupported, match=f"'w': .*{text}"):
            describe(pack, writable=False, tensor="w")
    with pytest.raises(InvalidSpec, match="cannot be written"):
        describe(Pack(flags=1), writable=True)
    with pytest.raises(InvalidSpec, match="backwards"):
        describe(Pack(strides=(-3, 1)), writable=False)


def test_arrays_of_numpy() -> None:
    np = pytest.importorskip("numpy")
    for name in ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64",
                 "uint32", "uint16", "uint8", "bool", "complex64", "complex128"):
        data = np.zeros((2, 3), name)
        found = describe(data, writable=True)
        assert found.view == (data.ctypes.data, (2, 3), None, dtype_name(name), 1, 0)
        assert dtype_name(data.dtype) == dtype_name(np.dtype(name)) == found.dtype
    assert dtype_name(np.float32) == "f32"
    assert describe(np.zeros((4, 6), "f4").T, writable=True).strides == (1, 6)
    assert describe(np.zeros((4, 6), "f4")[:, 1:3], writable=True).strides == (6, 1)
    assert describe(np.zeros((0, 6)), writable=True).shape == (0, 6)
    number = describe(np.float32(2.5), writable=False)
    assert number.shape == () and ctypes.c_float.from_address(number.ptr).value == 2.5


def test_arrays_of_numpy_that_are_refused() -> None:
    np = pytest.importorskip("numpy")
    data = np.zeros(4)
    data.flags.writeable = False
    assert describe(data, writable=False).shape == (4,)
    for array_, text in ((data, "cannot be written"), (np.float32(1), "written"),
                         (np.zeros(4)[::-1], "backwards"),
                         (np.broadcast_to(np.zeros(3), (2, 3)), "written")):
        with pytest.raises(InvalidSpec, match=f"'w': .*{text}"):
            describe(array_, writable=True, tensor="w")
    for array_, text in ((np.zeros(3, ">f4"), "other order"), (np.array(["a"]), "dtype str"),
                         (np.array([None]), "dtype object"), (np.zeros(2, "M8[s]"), "datetime"),
                         (np.zeros(3, [("a", "f4"), ("b", "i1")])["a"], "whole elements"),
                         (np.ma.zeros(3), "mask")):
        with pytest.raises(Unsupported, match=f"'w': .*{text}"):
            describe(array_, writable=False, tensor="w")


def test_arrays_of_ml_dtypes() -> None:
    np = pytest.importorskip("numpy")
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz",
                 "float8_e5m2fnuz"):
        dtype = getattr(ml_dtypes, name)
        assert describe(np.zeros((2, 2), dtype), writable=True).dtype == dtype_name(name)
        assert dtype_name(dtype) == dtype_name(name)
    for name in ("int4", "float8_e4m3", "float4_e2m1fn"):  # a byte for each element, or another
        with pytest.raises(Unsupported, match=name):
            describe(np.zeros(2, getattr(ml_dtypes, name)), writable=False)
