"""Weights for tests of updates: tensors of all kinds, that all ranks make from a number."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import torch

DTYPES = ["float32", "bfloat16", "float16", "float64", "int8", "uint8", "int64", "bool",
          "float8_e4m3fn", "complex64"]
BUCKET = 48 << 10
TENSORS = 300


def weights(seed: int, tensors: int = TENSORS) -> Iterator[tuple[str, Any]]:
    """Pairs of a name and a tensor: scalars, empty ones, odd sizes, one larger than BUCKET, and
    some that are not dense. Shapes and names depend on `tensors` alone, and values on `seed`."""
    draw = random.Random(tensors)
    generator = torch.Generator().manual_seed(seed)
    for i in range(tensors):
        dtype = getattr(torch, DTYPES[i % len(DTYPES)])
        shape = draw.choice([(), (0,), (3, 0), (1,), (draw.randint(1, 2000),),
                             (draw.randint(1, 37), draw.randint(1, 41)),
                             (2, draw.randint(1, 9), draw.randint(1, 11))])
        if i == tensors // 2:
            shape = (BUCKET // 2 + 1, 3)
        count = dtype.itemsize
        for size in shape:
            count *= size
        top = 2 if dtype == torch.bool else 256
        memory = torch.randint(0, top, (count,), generator=generator, dtype=torch.uint8)
        tensor = memory.view(dtype).view(shape)
        yield f"layers.{i}.weight", tensor.t().contiguous().t() if i % 7 == 0 and (
            len(shape) == 2) else tensor
