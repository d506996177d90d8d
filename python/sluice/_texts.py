"""Texts and numbers that the extension can take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import InvalidSpec

INT64_MAX = (1 << 63) - 1


def check_text(what: str, value: Any) -> str:
    """The value, if the extension can take it as a text. InvalidSpec says `what` it was for.

    Names of files that are not UTF-8 have lone surrogates, as os.fsdecode gives them.
    """
    if not isinstance(value, str) or not is_utf8(value):
        raise InvalidSpec(f"{what} is {value!r}; it has to be a str that UTF-8 can hold")
    return value


def check_names_map(what: str, given: Any) -> None:
    """InvalidSpec unless `given`, which says something for names, can be asked, or is None."""
    if given is not None and not isinstance(given, Mapping) and not callable(given):
        raise InvalidSpec(f"{what} is {given!r}; it has to be a dict or a function")


def with_article(noun: str) -> str:
    """Such as "an int"."""
    return f"{'an' if noun[0] in 'aeiouAEIOU' else 'a'} {noun}"


def listed(texts: Sequence[str], most: int) -> str:
    """The first texts with commas between, and how many more there are."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def check_made(native: Any, kind: type, what: str, how: str) -> None:
    """TypeError, which says `how` users get an object that they cannot make by its class."""
    if not isinstance(native, kind):
        raise TypeError(f"{what} is not made by its class: use {how}")


def is_utf8(text: str) -> bool:
    """Whether it has no lone surrogates. The extension takes no others."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
