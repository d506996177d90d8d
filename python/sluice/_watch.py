"""Finds bound tensors that were freed, moved or resized since they were bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._errors import InvalidSpec
from ._prints import print_of
from ._state import Entry


class Watch:
    """Of the memory of `entries`, to which it refers. Thread: any one at a time."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._tensors = _Watched()  # of PyTorch, or with its methods
        self._arrays = _Watched()
        for entry in entries:
            for memory in entry.memories:
                if hasattr(memory, "data_ptr") and hasattr(memory, "shape"):
                    self._tensors.add(entry.name, memory)
                elif hasattr(memory, "__array_interface__") and hasattr(memory, "shape"):
                    self._arrays.add(entry.name, memory)
        self._addresses = [tensor.data_ptr() for tensor in self._tensors.objects]
        self._strides = [_strides(tensor) for tensor in self._tensors.objects]
        self._print = print_of(self._tensors.objects)

    def changed(self) -> InvalidSpec | None:
        """What has changed, or None. About 0.03 us for each of PyTorch's tensors.

        An array of NumPy moves only where its size changes, so its address is not asked for.
        """
        if self._print is None or not self._print.same(self._tensors.objects):
            if (change := self._explain()) is not None:
                return change
        return self._arrays.resized()

    def _explain(self) -> InvalidSpec | None:
        tensors = self._tensors
        if (change := tensors.resized()) is not None:
            return change
        for name, tensor, address, strides in zip(tensors.names, tensors.objects, self._addresses,
                                                  self._strides):
            if (now := tensor.data_ptr()) != address:
                what = "was freed" if now == 0 else "has moved to other memory"
                return InvalidSpec(f"tensor '{name}' {what} since it was bound; give it to "
                                   "rebind, or make a new transfer", tensor=name)
            if _strides(tensor) != strides:
                return InvalidSpec(f"tensor '{name}' was bound with strides {strides} and now has "
                                   f"{_strides(tensor)}; give it to rebind, or make a new "
                                   "transfer", tensor=name)
        return None


def _strides(tensor: Any) -> tuple[int, ...]:
    stride: Callable[[], Any] | None = getattr(tensor, "stride", None)
    return () if stride is None else tuple(stride())


class _Watched:
    """Objects with the shapes that they had."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.objects: list[Any] = []
        self.shapes: list[Any] = []

    def add(self, name: str, memory: Any) -> None:
        self.names.append(name)
        self.objects.append(memory)
        self.shapes.append(memory.shape)

    def resized(self) -> InvalidSpec | None:
        if [memory.shape for memory in self.objects] == self.shapes:
            return None
        for name, memory, before in zip(self.names, self.objects, self.shapes):
            if memory.shape != before:
                return InvalidSpec(f"tensor '{name}' was bound with local shape {tuple(before)} "
                                   f"and now has {tuple(memory.shape)}: make a new transfer",
                                   tensor=name)
        return None
