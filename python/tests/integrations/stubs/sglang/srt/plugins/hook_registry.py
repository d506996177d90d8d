"""Stands for SGLang's module of this name: hooks around its functions, by their dotted names."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from enum import Enum
from typing import Any


class HookType(Enum):
    BEFORE = "before"
    AFTER = "after"
    AROUND = "around"
    REPLACE = "replace"


class HookRegistry:
    _hooks: list[tuple[str, Callable[..., Any]]] = []

    @classmethod
    def register(cls, target: str, hook: Callable[..., Any], hook_type: HookType = HookType.AFTER,
                 *, source: Any = None) -> None:
        assert hook_type is HookType.AROUND, hook_type
        cls._hooks.append((target, hook))

    @classmethod
    def apply_hooks(cls) -> None:
        for target, hook in cls._hooks:
            path, _, name = target.rpartition(".")
            module, _, owner_name = path.rpartition(".")
            owner = getattr(importlib.import_module(module), owner_name)
            setattr(owner, name, functools.partialmethod(_call, hook, getattr(owner, name)))
        cls._hooks = []


def _call(self: Any, hook: Callable[..., Any], original: Any, *args: Any, **kwargs: Any) -> Any:
    return hook(original, self, *args, **kwargs)
