"""Safetensors checkpoints, straight into and out of tensors that lie over ranks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from . import _agree, _options, _sluice
from ._errors import Disagreement, InvalidSpec, Unsupported
from ._halves import Entry, read_half
from ._layouts import Layout
from ._progress import Display
from ._transfer import Renames

if TYPE_CHECKING:
    from ._session import Session

_FLOATS = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2")

# What one rank has of a tensor: shape, dtype, and of its layout: sizes, ranks, placements, order.
_Part = tuple[list[int], str, list[int], list[int], list[str], list[int]]


def load(session: Session, uri: str, state: Any, *, rename: Renames = None, progress: bool = True,
         **options: Any) -> dict[str, Any]:
    """`Session.load`."""
    def read() -> list[Any]:
        _options.check(options, _options.CHECKPOINT)
        if not isinstance(uri, str):
            raise InvalidSpec(f"uri is {uri!r}; it has to be a str")
        return entries.read(state, "dst", rename)

    entries = _Entries(session)
    merged = _merge(_agree.exchange(session, "load", read))
    tensors = entries.native(merged, None)
    place = uri if ":" in uri.split("/")[0] else "file:" + os.path.abspath(uri)
    with _shown(session, f"sluice: load {uri}", entries, progress):
        return dict(session._native.load(place, tensors, options))


def save(session: Session, directory: str | os.PathLike[str], state: Any, *,
         dtype: str | None = None, rename: Renames = None, progress: bool = True,
         **options: Any) -> dict[str, Any]:
    """`Session.save`."""
    def read() -> list[Any]:
        _options.check(options, _options.CHECKPOINT)
        os.fspath(directory)
        if dtype is not None and dtype not in _FLOATS:
            raise InvalidSpec(f"dtype is {dtype!r}; it has to be one of {', '.join(_FLOATS)}")
        return entries.read(state, "src", rename)

    entries = _Entries(session)
    merged = _merge(_agree.exchange(session, "save", read))
    tensors = entries.native(merged, dtype)
    with _shown(session, f"sluice: save {os.fspath(directory)}", entries, progress):
        return dict(session._native.save(os.fspath(directory), tensors, options))


def _shown(session: Session, title: str, entries: _Entries, progress: bool) -> Display:
    return Display(title, entries.nbytes, enabled=progress and session.rank == 0, ticking=True)


class _Entries:
    """What this rank has of the tensors of a checkpoint, by their names there."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._entries: dict[str, Entry] = {}
        self.nbytes = 0

    def read(self, state: Any, side: str, rename: Renames) -> list[Any]:
        """[name, part] of each tensor, for the other ranks."""
        for entry in read_half(self._session, state, side).entries:
            name = _renamed(rename, entry.name)
            if name in self._entries:
                raise InvalidSpec(f"two tensors have the name '{name}' in the checkpoint: "
                                  f"'{self._entries[name].name}' and '{entry.name}'", tensor=name)
            if entry.is_partial:
                raise Unsupported(f"tensor '{entry.name}' has a Partial placement, which no "
                                  "checkpoint has", tensor=entry.name)
            if entry.boxes:
                raise Unsupported(f"tensor '{entry.name}' lies in boxes, which checkpoints do not "
                                  "take", tensor=entry.name)
            if entry.lacks_memory:
                raise InvalidSpec(f"tensor '{entry.name}' has no memory", tensor=entry.name)
            self._entries[name] = entry
            if isinstance(entry.native_view, tuple):
                self.nbytes += prod(entry.native_view[1]) * _sluice.dtype_bytes(entry.dtype)
        return [[name, [list(entry.shape), entry.dtype, *_mesh_layout(entry)]]
                for name, entry in self._entries.items()]

    def native(self, merged: Mapping[str, _Part], dtype: str | None) -> list[Any]:
        tensors = []
        for name, (shape, own, sizes, ranks, placements, order) in merged.items():
            entry = self._entries.get(name)
            layout = _sluice.Layout(sizes, ranks, placements, order)
            wanted = dtype if own in _FLOATS else None
            view = None if entry is None else entry.native_view
            owner = None if entry is None else entry.owner
            tensors.append((name, shape, own, layout, view, wanted, owner))
        return tensors


def _mesh_layout(entry: Entry) -> list[Any]:
    layout = entry.layout
    assert isinstance(layout, Layout)  # boxes are refused before
    return [list(layout.sizes), list(layout.ranks), [str(one) for one in layout.placements],
            list(layout.order)]


def _renamed(rename: Renames, name: str) -> str:
    if rename is None:
        return name
    renamed = rename.get(name, name) if isinstance(rename, Mapping) else rename(name)
    if not isinstance(renamed, str):
        raise InvalidSpec(f"rename of '{name}' gave {renamed!r}; it has to give a name",
                          tensor=name)
    return renamed


def _merge(answers: list[list[Any]]) -> dict[str, _Part]:
    """The tensors of all ranks: in the order of the lowest rank, then of those that add some."""
    given: dict[str, list[tuple[int, _Part]]] = {}
    for rank, parts in enumerate(answers):
        for name, part in parts:
            given.setdefault(name, []).append((rank, part))
    return {name: _merge_one(name, parts) for name, parts in given.items()}


def _merge_one(name: str, parts: list[tuple[int, _Part]]) -> _Part:
    first_rank, first = parts[0]
    meshes: dict[tuple[int, ...], int] = {}
    for rank, part in parts:
        for what, index in (("shape", 0), ("dtype", 1), ("mesh", 2), ("placements", 4),
                            ("order", 5)):
            if part[index] != first[index]:
                raise Disagreement(f"tensor '{name}': rank {first_rank} has {what} "
                                   f"{first[index]}, and rank {rank} has {part[index]}",
                                   ranks=(first_rank, rank), tensor=name)
        meshes.setdefault(tuple(part[3]), rank)
    having = {rank for rank, _ in parts}
    owner_of: dict[int, tuple[int, ...]] = {}
    for mesh, rank in meshes.items():
        for member in mesh:
            if member in owner_of:
                raise Disagreement(f"tensor '{name}': rank {rank} has a mesh of ranks "
                                   f"{list(mesh)}, and another rank has {list(owner_of[member])}",
                                   ranks=(rank, meshes[owner_of[member]]), tensor=name)
            owner_of[member] = mesh
            if member not in having:
                raise Disagreement(f"tensor '{name}': rank {member} is in its mesh {list(mesh)}, "
                                   "and does not give it", ranks=(member,), tensor=name)
    shape, dtype, sizes, ranks, placements, order = first
    if len(meshes) == 1:
        return shape, dtype, sizes, ranks, placements, order
    # Copies on several meshes.
    together = [member for mesh in sorted(meshes, key=min) for member in mesh]
    return (shape, dtype, [len(meshes), *sizes], together, ["R", *placements],
            [0, *(axis + 1 for axis in order)] if order else [])
