"""Views at random, by methods that tensors of PyTorch have and those that record."""

from __future__ import annotations

import random
from typing import Any


def random_view(rng: random.Random, view: Any) -> Any:
    for _ in range(rng.randint(0, 6)):
        kind, dims = rng.randint(0, 10), view.ndim
        dim = rng.randrange(dims) if dims else 0
        size = view.shape[dim] if dims else 0
        if kind == 0 and size:
            start = rng.randint(0, size - 1)
            view = view.narrow(dim, start, rng.randint(1, size - start))
        elif kind == 1 and dims:
            order = list(range(dims))
            rng.shuffle(order)
            view = view.permute(*order)
        elif kind == 2 and size:
            view = view.select(dim, rng.randrange(size))
        elif kind == 3:
            view = view.reshape(-1)
        elif kind == 4 and size:
            view = rng.choice(view.chunk(rng.randint(1, 3), dim))
        elif kind == 5 and size and size % 2 == 0:
            view = view.unflatten(dim, (2, size // 2))
        elif kind == 6:
            view = view.unsqueeze(dim)
        elif kind == 7:
            view = view.contiguous() if rng.random() < 0.5 else view.clone()
        elif kind == 8 and size:
            view = view[(slice(None),) * dim + (slice(None, None, rng.randint(1, 3)), ...)]
        elif kind == 9:
            view = view.squeeze().flatten() if dims else view[None]
        elif kind == 10 and dims > 1:
            view = view.transpose(0, 1)[..., None]
    return view
