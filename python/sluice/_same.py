"""Recognises a state that was read before, so that its tensors are not read again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import ref

from ._errors import InvalidSpec
from ._layouts import Boxes, Tensor
from ._prints import fingerprint, print_of
from ._state import Into, is_captured, storages


class Seen:
    """One side of a call, as it was given: names, and where the tensors of PyTorch lay.

    Refers to no tensor. Thread: any one at a time.
    """

    def __init__(self, captured: Any, names: list[Any], print_: Any,
                 rename: dict[str, str] | None) -> None:
        self._captured = captured
        self._names = names
        self._print = print_
        self._rename = rename

    @classmethod
    def of(cls, state: Any) -> Seen | None:
        """None where it cannot be told later whether a state is this one.

        So it is of states that are nested, and where a tensor is none of PyTorch's, is complex, or
        lies in no memory.
        """
        if is_captured(state):
            params = _params(state)
            print_ = print_of(list(params.values())) if params else None
            return None if print_ is None else cls(ref(state), list(params or ()), print_, None)
        parts = _parts(state)
        if parts is None:
            return None
        names, values, rename = parts
        memories = [_memories(value) for value in values]
        print_ = fingerprint(values, memories)
        return None if print_ is None else cls(None, names, print_, rename)

    def keeps(self, state: Any) -> list[Any] | None:
        """The tensors of `state`, if they are what was seen; None if not.

        They keep their memory as long as nobody gives them other memory: see `storages_of`.
        """
        if self._captured is not None:
            params = _params(state) if self._captured() is state else None
            if params is None or list(params) != self._names:
                return None
            values = list(params.values())
            return [*values, state] if self._print.same(values) else None
        parts = None if is_captured(state) else _parts(state)
        if parts is None:
            return None
        names, values, rename = parts
        if names == self._names and rename == self._rename and self._print.same(values):
            return values
        return None


def storages_of(tensors: list[Any]) -> list[Any]:
    """What keeps the memory that tensors of `Seen.keeps` have now."""
    return [storage for memory in memories_of(tensors) for storage in storages(memory)]


def memories_of(tensors: list[Any]) -> list[Any]:
    """The local tensors of PyTorch behind tensors of `Seen.keeps`."""
    return [getattr(tensor, "_local_tensor", tensor)
            for one in tensors for tensor in _memories(one) or [one]]


def _params(captured: Any) -> dict[str, Any] | None:
    """The parameters that it writes to, as they are now; None where one is gone."""
    try:
        params: dict[str, Any] = captured.current()
        return params
    except InvalidSpec:
        return None


_Parts = tuple["list[Any]", "list[Any]", "dict[str, str] | None"]


def _parts(state: Any) -> _Parts | None:
    """Names, values, and what is renamed."""
    rename = None
    if isinstance(state, Into):
        if state.views is not None or not isinstance(state.rename, (dict, type(None))):
            return None
        rename = None if state.rename is None else dict(state.rename)
        state = state.state
    if state is None:
        return [], [], rename
    if isinstance(state, Mapping):
        return list(state), list(state.values()), rename
    if isinstance(state, (list, tuple)):
        return [], list(state), rename
    return None


def _memories(value: Any) -> list[Any] | None:
    """What a Tensor of Sluice's stands for; None for others."""
    if type(value) is not Tensor:
        return None
    if isinstance(value.layout, Boxes):
        return [box.view for box in value.layout]
    return [value.view]
