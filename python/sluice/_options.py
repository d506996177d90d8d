"""Which keyword options the calls of a session take, and what values the extension can read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._errors import InvalidSpec

Kinds = tuple[type, ...]

INT64_MAX = (1 << 63) - 1

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

# What the extension reads as something else than int64_t.
_INT32 = (-(1 << 31), (1 << 31) - 1)
_RANGES: Mapping[str, tuple[int, int]] = {
    "max_in_flight": _INT32,
    "attempts_max": _INT32,
    "connections": _INT32,
    "generator_threads": _INT32,
    "buffers": _INT32,
    "seed": (0, (1 << 64) - 1),
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
        if isinstance(value, str):
            check_text(f"option '{name}'", value)
        low, high = _RANGES.get(name, (-INT64_MAX - 1, INT64_MAX))
        if isinstance(value, int) and not low <= value <= high:
            raise InvalidSpec(f"option '{name}' is {value}; it has to be {low} to {high}")
        if value != value:
            raise InvalidSpec(f"option '{name}' is not a number")
        choices = _CHOICES.get(name)
        if choices is not None and value not in choices:
            raise InvalidSpec(f"option '{name}' is {value!r}; it has to be one of {choices}")
    return dict(options)


def check_text(what: str, value: Any) -> str:
    """The value, if the extension can take it as a text. InvalidSpec says `what` it was for.

    Names of files that are not UTF-8 have lone surrogates, as os.fsdecode gives them.
    """
    if not isinstance(value, str) or not is_utf8(value):
        raise InvalidSpec(f"{what} is {value!r}; it has to be a str that UTF-8 can hold")
    return value


def is_utf8(text: str) -> bool:
    """Whether it has no lone surrogates. The extension takes no others."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
