"""Values of a state dict that are no tensors: kept as JSON in a checkpoint's metadata.

A nested state has names with dots: {"state": {0: {"step": 3}}} has "state.0.step". A list or tuple
without tensors is one value, and one with tensors has its elements by number: "groups.0.lr".
In the JSON a tuple is {"!tuple": [..]}. A dict in a list whose keys are no texts, or begin with
"!", is {"!dict": [[key, value], ..]}.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ._errors import InvalidSpec

#: Of the metadata: JSON of {name: value}.
KEY = "sluice_values"

_SCALARS = (type(None), bool, int, float, str)


@dataclass
class Value:
    """A value that is no tensor, and where in the state it is."""

    name: str
    value: Any
    holder: Any
    key: Any

    def put(self, value: Any) -> None:
        """Puts another value in its place."""
        self.holder[self.key] = value


def split(state: Any, whole: Container[str] | None = None) -> tuple[Any, list[Value]]:
    """A state without the values that are no tensors, and these. Other states have none.

    `whole`: the lists, tuples and dicts that are one value, by their names. None: all lists and
    tuples without tensors.
    """
    if not isinstance(state, Mapping):
        return state, []
    tensors: dict[str, Any] = {}
    values: list[Value] = []
    seen: set[str] = set()
    for name, value, holder, key, plain in _leaves("", state, whole):
        if name in seen:
            raise InvalidSpec(f"'{name}' is there twice", tensor=name)
        seen.add(name)
        if plain:
            values.append(Value(name, value, holder, key))
        else:
            tensors[name] = value
    return tensors, values


def _leaves(prefix: str, holder: Any, whole: Container[str] | None
            ) -> Iterator[tuple[str, Any, Any, Any, bool]]:
    """Of each leaf its name, itself, what holds it under which key, and whether it is plain."""
    items = holder.items() if isinstance(holder, Mapping) else enumerate(holder)
    for key, value in items:
        if type(key) is not int and not isinstance(key, str):
            raise InvalidSpec(f"a name is {key!r}; it has to be a text")
        name = f"{prefix}{key}"
        if not name:
            raise InvalidSpec("a tensor has no name")
        try:
            holds = isinstance(value, Mapping) or type(value) in (list, tuple)
            if whole is None:
                plain = not isinstance(value, Mapping) and is_plain(value)
            else:
                plain = (not holds or name in whole) and is_plain(value)
            if holds and not plain:
                yield from _leaves(f"{name}.", value, whole)
                continue
            if plain:
                json.dumps(encoded(value))
        except InvalidSpec:
            raise
        except (RecursionError, ValueError) as error:
            top = name.partition(".")[0]
            said = "it holds itself, or is nested too deeply" if isinstance(
                error, RecursionError) else str(error)
            raise InvalidSpec(f"'{top}' cannot be kept: {said}", tensor=top) from None
        yield name, value, holder, key, plain


def is_plain(value: Any) -> bool:
    """Whether it is a number, a text, None, or a list, tuple or dict of these."""
    if type(value) in (list, tuple):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return all(type(key) in (str, int) for key in value) and all(map(is_plain, value.values()))
    return type(value) in _SCALARS


def encoded(value: Any) -> Any:
    """The plain value as `json` writes it, so that `decoded` gives an equal one."""
    if type(value) is tuple:
        return {"!tuple": [encoded(each) for each in value]}
    if type(value) is list:
        return [encoded(each) for each in value]
    if isinstance(value, dict):
        if all(type(key) is str and not key.startswith("!") for key in value):
            return {key: encoded(each) for key, each in value.items()}
        return {"!dict": [[key, encoded(each)] for key, each in value.items()]}
    return value


def decoded(value: Any) -> Any:
    """What `encoded` was given."""
    if isinstance(value, list):
        return [decoded(each) for each in value]
    if isinstance(value, dict):
        if value.keys() == {"!tuple"}:
            return tuple(decoded(each) for each in value["!tuple"])
        if value.keys() == {"!dict"}:
            return {key: decoded(each) for key, each in value["!dict"]}
        return {key: decoded(each) for key, each in value.items()}
    return value
