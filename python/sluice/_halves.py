"""What a rank gives to a transfer: both of its sides, read for a session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from . import _state
from ._errors import InvalidSpec
from ._group import Group
from ._layouts import Layout
from ._memory import Described, describe, span_bytes
from ._state import Entry, WindowOf
from ._streams import Places

__all__ = ["Entry", "Halves", "as_views", "read_half", "read_halves"]


@dataclass
class Halves:
    """The tensors of this rank on both sides."""

    sources: list[Entry] = field(default_factory=list)
    targets: list[Entry] = field(default_factory=list)
    #: Destinations left out, as they share the memory of the one that they map to.
    aliases: dict[str, str] = field(default_factory=dict)
    #: Of a destination: the source that it comes from, where that has another name.
    renames: dict[str, str] = field(default_factory=dict)
    #: To call after each run, or None.
    finish: Callable[[], None] | None = None
    #: Of each side: says which parameter has other memory now, or None.
    moved: tuple[Callable[[], InvalidSpec | None] | None, ...] = (None, None)
    #: Names for which this rank gives None: for errors.
    sources_none: list[str] = field(default_factory=list)
    targets_none: list[str] = field(default_factory=list)

    def first_without_memory(self) -> str | None:
        """A destination of which this rank owns elements, and has no memory for them."""
        return next((entry.name for entry in self.targets if entry.lacks_memory), None)

    def places(self, late: bool = False) -> Places:
        """Where all of it is. `late`: more may come, wherever that is."""
        entries = [*self.sources, *self.targets]
        return Places([entry.native_view for entry in entries],
                      [memory for entry in entries for memory in entry.memories], late)

    def bindings(self) -> tuple[list[Any], list[Any]]:
        """What the extension's `rebind` takes: (name, view, owner) of each tensor of both sides.

        InvalidSpec: a tensor has no memory.
        """
        for entry in (*self.sources, *self.targets):
            if entry.lacks_memory:
                raise InvalidSpec(f"tensor '{entry.name}' has no memory", tensor=entry.name)
        sources, targets = ([(entry.name, entry.native_view, entry.owner) for entry in side]
                            for side in (self.sources, self.targets))
        return sources, targets


def read_half(session: Group, state: Any, side: str, window_of: WindowOf = None) -> _state.Half:
    """One side, "src" or "dst". Errors are those of `_state.halves`."""
    return _state.halves(state, side, rank=session.rank, rank_of=session._rank_of,
                         window_of=window_of)


def read_halves(session: Group, src: Any, dst: Any, *, windows: WindowOf) -> Halves:
    """Both sides. Errors are those of `_state.halves`."""
    sources = read_half(session, src, _state.SRC, windows)
    targets = read_half(session, dst, _state.DST, windows)
    return Halves(_held(sources.entries), _held(targets.entries), targets.aliases,
                  {**sources.renames, **targets.renames}, targets.finish,
                  (sources.moved, targets.moved), sources.nones, targets.nones)


def _held(entries: list[Entry]) -> list[Entry]:
    """Without those on meshes that lack this rank. A job's code gives such tensors on all ranks."""
    return [entry for entry in entries
            if entry.owns or not isinstance(entry.layout, Layout)
            or entry.rank in entry.layout.ranks]


def as_views(memory: Any, name: str, writable: bool) -> tuple[Any, Any]:
    """The extension's view of memory for a tensor of this rank, and what keeps it; a list of both
    where `memory` is one: of a rank with boxes."""
    if isinstance(memory, (list, tuple)):
        found = [describe(one, writable=writable, tensor=name) for one in memory]
        for one in found:
            _check_there(one, name)
        return [one.view for one in found], _state.keepers(found)
    described = describe(memory, writable=writable, tensor=name)
    _check_there(described, name)
    view = described.view
    if not described.shape:  # a scalar has shape (1,)
        view = (view[0], (1,), None, *view[3:])
    return view, _state.keepers([described])


def _check_there(described: Described, name: str) -> None:
    """InvalidSpec: a tensor of PyTorch has other memory than when it was described, as by
    `Captured.memory_of`."""
    if not described.ptr or not hasattr(described.owner, "untyped_storage"):
        return
    storage = described.owner.untyped_storage()
    end = described.ptr + span_bytes(described.shape, described.strides, described.dtype)
    if not storage.data_ptr() <= described.ptr <= end <= storage.data_ptr() + storage.nbytes():
        raise InvalidSpec(f"tensor '{name}': its memory was freed, or is other memory than when "
                          "memory_of gave it", tensor=name)
