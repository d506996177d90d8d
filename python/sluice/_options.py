"""Which keyword options the calls of a session take, and as what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._errors import InvalidSpec

Kinds = tuple[type, ...]

_NONE = type(None)
_INT: Kinds = (int,)
_REAL: Kinds = (int, float)
_BOOL: Kinds = (bool,)
_TEXT: Kinds = (str,)


def _or_none(kinds: Kinds) -> Kinds:
    return (*kinds, _NONE)


SESSION: Mapping[str, Kinds] = {
    "bucket_bytes": _or_none(_INT),
    "max_in_flight": _or_none(_INT),
    "coalesce": _BOOL,
    "budget_buckets": _or_none(_INT),
    "budget_bytes": _or_none(_INT),
    "timeout": _REAL,
    "patience": _or_none(_REAL),
    "trace_events": _INT,
    "progress_thread": _BOOL,
    "direct": _BOOL,
    "accelerator": _or_none(_TEXT),
    "transport": _or_none(_TEXT),
}

CHECKPOINT: Mapping[str, Kinds] = {
    "budget_bytes": _INT,
    "slots": _or_none(_INT),
    "piece_bytes": _INT,
    "attempts_max": _INT,
    "backoff": _REAL,
    "request_timeout": _REAL,
    "timeout": _REAL,
    "connections": _INT,
    "ca_file": _TEXT,
    "shard_bytes_max": _INT,
}

STREAM: Mapping[str, Kinds] = {
    "format": _TEXT,
    "item_bytes": _INT,
    "generator_items": _INT,
    "generate_order": _TEXT,
    "generate_ahead": _INT,
    "generator_threads": _INT,
    "sized": _BOOL,
    "connections": _INT,
    "ca_file": _TEXT,
    "first": _INT,
    "step": _INT,
    "end": _or_none(_INT),
    "shuffle": _BOOL,
    "seed": _INT,
    "shuffle_block_items": _or_none(_INT),
    "epochs": _INT,
    "in_order": _BOOL,
    "budget_bytes": _INT,
    "slots": _or_none(_INT),
    "piece_bytes": _or_none(_INT),
    "exchange": _BOOL,
    "hedge": _BOOL,
    "hedge_quantile": _REAL,
    "hedge_extra_share_max": _REAL,
    "attempts_max": _INT,
    "backoff": _REAL,
    "request_timeout": _REAL,
    "buffers": _INT,
    "batch_items": _INT,
    "device": _INT,
    "await_in_stream": _BOOL,
    "timeout": _REAL,
    "trace_epochs": _or_none(_INT),
}

_CHOICES: Mapping[str, tuple[Any, ...]] = {
    "format": ("index", "raw", "npy", "safetensors"),
    "generate_order": ("free", "after_update", "one_ahead"),
    "device": (1, 2, 3),
}


def check(options: Mapping[str, Any], known: Mapping[str, Kinds]) -> dict[str, Any]:
    """The options, as the extension takes them. InvalidSpec names a wrong one."""
    for name, value in options.items():
        kinds = known.get(name)
        if kinds is None:
            raise InvalidSpec(f"there is no option '{name}'; there are "
                              + ", ".join(sorted(known)))
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = " or ".join("None" if kind is _NONE else kind.__name__ for kind in kinds)
            raise InvalidSpec(f"option '{name}' is {value!r}; it has to be {wanted}")
        if bool not in kinds and isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            raise InvalidSpec(f"option '{name}' is {value}, which 64 bits do not hold")
        choices = _CHOICES.get(name)
        if choices is not None and value not in choices:
            raise InvalidSpec(f"option '{name}' is {value!r}; it has to be one of {choices}")
    return dict(options)
