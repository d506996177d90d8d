"""Fingerprints of PyTorch's tensors: a quick look whether they lie as they lay."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from . import _sluice
from ._errors import InvalidSpec


def print_of(tensors: list[Any]) -> _sluice.Fingerprint | None:
    """Where these tensors of PyTorch lie; None where one cannot be looked at quickly."""
    return fingerprint(tensors, [None] * len(tensors)) if tensors else None


def fingerprint(values: list[Any], memories: list[Any]) -> _sluice.Fingerprint | None:
    """As `print_of`, of `memories` where there are some in place of a value's own."""
    return _sluice.fingerprint(values, memories, *_types())


def unless_same(params: Any, tensors: Callable[[], list[Any]],
                look: Callable[[], InvalidSpec | None]) -> Callable[[], InvalidSpec | None]:
    """`look`, asked only where something may have changed since it last found nothing.

    `params`: a module or a mapping; `tensors`: those of its tensors that count, as they are now.
    """
    same: Callable[[], bool] | None = None

    def changed() -> InvalidSpec | None:
        nonlocal same
        if same is not None and same():
            return None
        change = look()
        same = _same(params, tensors()) if change is None else None
        return change

    return changed


def _same(params: Any, tensors: list[Any]) -> Callable[[], bool] | None:
    """Tells whether the same places have tensors that lie as these do; None: not quickly."""
    parts: list[tuple[Any, str, Any]] = []  # of modules: which has which
    holders = [params]
    if hasattr(params, "modules"):
        modules = list(params.modules())
        parts = [(each._modules, name, part)
                 for each in modules for name, part in each._modules.items()]
        holders = [held for each in modules for held in (each._parameters, each._buffers)]
    wanted = {id(tensor) for tensor in tensors}
    places = [(held, name) for held in holders for name, value in held.items()
              if id(value) in wanted]
    print_ = print_of([held[name] for held, name in places])
    if print_ is None or {id(held[name]) for held, name in places} != wanted:
        return None

    def same() -> bool:
        return (all(held.get(name) is part for held, name, part in parts) and
                print_.same([held.get(name) for held, name in places]))

    return same


def _types() -> tuple[tuple[type, ...], type | None]:
    """PyTorch's tensors that are nothing but memory, and its DTensor; of what is imported."""
    torch = sys.modules.get("torch")
    if torch is None:
        return (), None
    plain = [torch.Tensor, torch.nn.Parameter]
    if (buffer := getattr(torch.nn, "Buffer", None)) is not None:
        plain.append(buffer)
    placed = getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", None)
    return tuple(plain), placed
