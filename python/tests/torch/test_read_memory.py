"""Real tensors of PyTorch: where their memory is, and which dtypes it has."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

from sluice._dtypes import dtype_name  # noqa: E402
from sluice._errors import InvalidSpec, Unsupported  # noqa: E402
from sluice._memory import describe  # noqa: E402
from sluice._state import DST, SRC, halves  # noqa: E402

DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2", "float8_e8m0fnu": "f8e8m0",
    "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2fnuz": "f8e5m2fnuz",
    "float4_e2m1fn_x2": "f4e2m1x2", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "bool",
    "complex64": "c64", "complex128": "c128",
}


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name: str) -> None:
    dtype = getattr(torch, name, None)
    if dtype is None:
        pytest.skip(f"this PyTorch has no {name}")
    tensor = torch.empty(2, 3, dtype=dtype)
    found = describe(tensor, writable=True)
    assert found.view == (tensor.data_ptr(), (2, 3), None, DTYPES[name], 1, 0)
    assert found.nbytes == tensor.nbytes
    assert dtype_name(dtype) == dtype_name(str(dtype)) == DTYPES[name]
    assert describe(tensor.t(), writable=True).strides == (1, 3)


def test_all_other_dtypes_are_refused_by_name() -> None:
    others = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    others -= {getattr(torch, name, None) for name in DTYPES}
    assert torch.complex32 in others
    for dtype in others:
        with pytest.raises(Unsupported, match=f"tensor 'w': dtype {str(dtype)[6:]} is not"):
            dtype_name(dtype, tensor="w")


def test_views_have_their_strides_and_offset() -> None:
    tensor = torch.zeros(4, 6)
    found = describe(tensor[1:, 2:4], writable=True)
    assert found.view == (tensor.data_ptr() + 4 * 8, (3, 2), (6, 1), "f32", 1, 0)
    assert describe(tensor[:1, ::2], writable=True).strides == (6, 2)
    assert describe(tensor[2], writable=True).strides is None
    assert describe(torch.zeros(0, 5), writable=True).view[:2] == (0, (0, 5))
    assert describe(torch.zeros(()), writable=True).shape == ()


def test_parameters_and_their_gradients() -> None:
    parameter = torch.nn.Parameter(torch.zeros(3))
    assert describe(parameter, writable=True).ptr == parameter.data_ptr()


def test_repeated_elements_are_sources_and_no_destinations() -> None:
    tensor = torch.zeros(3, 1).expand(3, 4)
    assert describe(tensor, writable=False).strides == (1, 0)
    with pytest.raises(InvalidSpec, match="'w': several elements .* have one place in memory"):
        describe(tensor, writable=True, tensor="w")


def test_tensors_without_memory() -> None:
    with pytest.raises(InvalidSpec, match="'w': it has no memory"):
        describe(torch.zeros(3, device="meta"), writable=True, tensor="w")
    assert describe(torch.zeros(3, device="meta"), writable=True, late=True).ptr == 0
    freed = torch.zeros(8)
    part = freed[4:]
    freed.untyped_storage().resize_(0)
    for tensor in (freed, part):
        with pytest.raises(InvalidSpec, match="'w': it has no memory"):
            describe(tensor, writable=True, tensor="w")
    fake = pytest.importorskip("torch._subclasses.fake_tensor").FakeTensorMode()
    with fake:
        tensor = torch.zeros(3)
    with pytest.raises(InvalidSpec, match="'w': .*FakeTensor has no memory"):
        describe(tensor, writable=True, tensor="w")


@pytest.mark.parametrize("make, text", [
    (lambda: torch.eye(3).to_sparse(), "sparse"),
    (lambda: torch.zeros(3, dtype=torch.complex64).conj(), "resolve_conj"),
    (lambda: torch.zeros(3, dtype=torch.complex64).conj().imag, "resolve_neg"),
    (lambda: torch.quantize_per_tensor(torch.zeros(3), 1.0, 0, torch.qint8), "qint8"),
])
def test_tensors_whose_memory_is_not_their_values(make: Any, text: str) -> None:
    with pytest.raises(Unsupported, match=f"'w': .*{text}"):
        describe(make(), writable=False, tensor="w")


def test_a_storage_that_was_resized_under_a_tensor() -> None:
    tensor = torch.zeros(16)
    tensor[:].untyped_storage().resize_(8)
    with pytest.raises(InvalidSpec, match="^its storage was resized to 8 bytes; it needs 64$"):
        describe(tensor, writable=True)


def test_modules() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    half = halves(model, DST, rank=0)
    entries = {entry.name: entry for entry in half.entries}
    assert entries["0.weight"].native_view[0] == model[0].weight.data_ptr()
    assert entries["1.num_batches_tracked"].shape == (1,)
    assert entries["1.num_batches_tracked"].dtype == "i64"


def test_tied_weights_and_meta_tensors_that_share_a_storage() -> None:
    model = torch.nn.Sequential(torch.nn.Embedding(4, 3), torch.nn.Linear(3, 4, bias=False))
    model[1].weight = model[0].weight
    half = halves(model, DST, rank=0)
    assert half.aliases == {"1.weight": "0.weight"} and len(half.entries) == 1
    assert len(halves(model, SRC, rank=0).entries) == 2
    on_meta = halves(model.to("meta"), DST, rank=0)
    assert on_meta.aliases == {} or on_meta.aliases == {"1.weight": "0.weight"}
    flat = torch.zeros(8, device="meta")
    apart = halves({"a": flat[:4], "b": flat[4:], "c": flat[:4]}, DST, rank=0)
    assert apart.aliases == {"c": "a"} and [one.name for one in apart.entries] == ["a", "b"]
