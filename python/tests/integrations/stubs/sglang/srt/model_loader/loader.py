"""Stands for SGLang's module of this name."""

from __future__ import annotations

from typing import Any


def post_load_weights(model: Any) -> None:
    model.post_load_weights()
