"""Safetensors checkpoints, straight into and out of tensors that lie over ranks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _sluice
from ._dtypes import FLOATS
from ._errors import Disagreement, InvalidSpec, Unsupported
from ._group import Group
from ._halves import Entry, read_half
from ._layouts import Boxes
from ._progress import Display
from ._state import check_name
from ._streams import Places, Stream, handle_of, wait_for_stream
from ._texts import check_text
from ._transfer import Renames

# What tells the destinations apart that one tensor of a checkpoint has on a rank: its name, their
# dtype, whether they are boxes, and a number.
_Key = tuple[str, str, bool, int]

# Of one rank's part: shape; of its layout sizes, ranks, placements and order; or its boxes.
_Part = dict[str, Any]


_SCHEMES = ("file:", "buffered:", "mmap:", "http:", "https:")


def _path(what: str, given: Any) -> str:
    """As a text. InvalidSpec: it is neither a text nor a path, or is empty."""
    if not isinstance(given, (str, os.PathLike)) or not os.fspath(given):
        raise InvalidSpec(f"{what} is {given!r}; it has to be a str or a path, and not empty")
    return check_text(what, os.fspath(given))


def load(session: Group, uri: str | os.PathLike[str], state: Any, *, rename: Renames = None,
         progress: bool = True, stream: Stream = None, **options: Any) -> dict[str, Any]:
    """`Session.load`."""
    place = ""

    def read() -> list[Any]:
        nonlocal place
        handle_of(stream)
        _sluice.check_checkpoint_options(options)
        place = _path("uri", uri)
        if not place.startswith(_SCHEMES) and "://" not in place:
            place = "file:" + check_text("uri", os.path.abspath(place))
        return entries.read(state, "dst", rename)

    entries = _Entries(session)
    merged = _merge(session._exchange("load", read))
    wait_for_stream(session._native, stream, entries.places())
    with _shown(session, f"sluice: load {uri}", merged, progress):
        stats = dict(session._native.load(place, entries.native(merged, None), options))
    if entries.finish is not None:
        entries.finish()
    return stats


def save(session: Group, directory: str | os.PathLike[str], state: Any, *,
         dtype: str | None = None, rename: Renames = None, progress: bool = True,
         stream: Stream = None, **options: Any) -> dict[str, Any]:
    """`Session.save`."""
    def read() -> list[Any]:
        handle_of(stream)
        _sluice.check_checkpoint_options(options)
        _path("directory", directory)
        if dtype is not None and dtype not in FLOATS:
            raise InvalidSpec(f"dtype is {dtype!r}; it has to be one of {', '.join(FLOATS)}")
        return entries.read(state, "src", rename)

    entries = _Entries(session)
    merged = _merge(session._exchange("save", read))
    firsts: dict[str, _Tensor] = {}
    for key, tensor in merged.items():
        if (first := firsts.setdefault(key[0], tensor)) is not tensor:
            ranks = (first.parts[0][0], tensor.parts[0][0])
            raise Disagreement(f"tensor '{key[0]}': ranks {ranks[0]} and {ranks[1]} have it with "
                               "other dtypes, or one in boxes and one by placements", ranks=ranks,
                               tensor=key[0])
        tensor.check(key[0], ("scalar",))
    native = entries.native(merged, dtype)
    wait_for_stream(session._native, stream, entries.places())
    with _shown(session, f"sluice: save {os.fspath(directory)}", merged, progress):
        return dict(session._native.save(os.fspath(directory), native, options))


def _shown(session: Group, title: str, merged: Mapping[_Key, _Tensor],
           progress: bool) -> Display:
    """On the lowest rank that has tensors: it sees how the work goes on."""
    shown = min((rank for tensor in merged.values() for rank, _ in tensor.parts), default=0)
    return Display(title, 0, enabled=progress and session.rank == shown,
                   look=session._native.checkpoint_progress)


class _Entries:
    """What this rank has of the tensors of a checkpoint."""

    def __init__(self, session: Group) -> None:
        self._session = session
        self._entries: dict[_Key, Entry] = {}
        self.finish: Callable[[], None] | None = None

    def read(self, state: Any, side: str, rename: Renames) -> list[Any]:
        """[key, part] of each tensor, for the other ranks."""
        half = read_half(self._session, state, side)
        self.finish = half.finish
        for entry in half.entries:
            own = half.renames.get(entry.name, entry.name)
            key = self._key(_renamed(rename, own), entry)
            if side == "src" and key[3] > 0:
                raise InvalidSpec(f"two tensors have the name '{key[0]}' in the checkpoint: "
                                  f"'{self._entries[(*key[:3], 0)].name}' and '{entry.name}'",
                                  tensor=key[0])
            if entry.is_partial:
                raise Unsupported(f"tensor '{entry.name}' has a Partial placement, which no "
                                  "checkpoint has", tensor=entry.name)
            if entry.lacks_memory:
                raise InvalidSpec(f"tensor '{entry.name}' has no memory", tensor=entry.name)
            self._entries[key] = entry
        return [[key, _part(entry)] for key, entry in self._entries.items()]

    def _key(self, name: str, entry: Entry) -> _Key:
        in_boxes = isinstance(entry.layout, Boxes)
        number = 0
        while (name, entry.dtype, in_boxes, number) in self._entries:
            number += 1
        return (name, entry.dtype, in_boxes, number)

    def places(self) -> Places:
        """Where all of it is."""
        entries = self._entries.values()
        return Places([entry.native_view for entry in entries],
                      [memory for entry in entries for memory in entry.memories])

    def native(self, merged: Mapping[_Key, _Tensor], dtype: str | None) -> list[Any]:
        """What the extension's `load` and `save` take."""
        tensors = []
        for key, tensor in merged.items():
            name, own, *_ = key
            entry = self._entries.get(key)
            wanted = dtype if own in FLOATS else None
            view = None if entry is None else entry.native_view
            owner = None if entry is None else entry.owner
            tensors.append((name, tensor.shape, own, tensor.layout, view, wanted, owner))
        return tensors


def _part(entry: Entry) -> _Part:
    layout = entry.layout
    part = {"shape": list(entry.shape), "scalar": entry.scalar}
    if isinstance(layout, Boxes):
        return {**part, "boxes": entry.boxes}
    return {**part, "mesh": list(layout.sizes), "ranks": list(layout.ranks),
            "placements": [str(one) for one in layout.placements], "order": list(layout.order)}


def _renamed(rename: Renames, name: str) -> str:
    if rename is None:
        return name
    renamed = rename.get(name, name) if isinstance(rename, Mapping) else rename(name)
    if not isinstance(renamed, str):
        raise InvalidSpec(f"rename of '{name}' gave {renamed!r}; it has to give a name",
                          tensor=name)
    return check_name(renamed)


@dataclass
class _Tensor:
    """A tensor of the checkpoint, as the ranks have it that have it alike."""

    parts: list[tuple[int, _Part]] = field(default_factory=list)  # rank and part
    layout: _sluice.Layout | None = None  # made once all parts are there

    @property
    def shape(self) -> list[int]:
        """None of a scalar."""
        first = self.parts[0][1]
        return [] if first["scalar"] else list(first["shape"])

    def check(self, name: str, whats: tuple[str, ...]) -> None:
        """Disagreement where ranks differ in one of these."""
        first_rank, first = self.parts[0]
        for rank, part in self.parts:
            for what in whats:
                if part[what] != first[what]:
                    raise Disagreement(f"tensor '{name}': rank {first_rank} has {what} "
                                       f"{first[what]}, and rank {rank} has {part[what]}",
                                       ranks=(first_rank, rank), tensor=name)

    def boxes(self) -> _sluice.Layout:
        """The boxes of all ranks."""
        return _sluice.Layout.boxes_of([(rank, part["boxes"]) for rank, part in self.parts])

    def _has_elements(self, mesh: tuple[int, ...], rank: int) -> bool:
        # One without any cannot tell tied tensors from empty parts of one buffer.
        part = self.parts[0][1]
        layout = _sluice.Layout(part["mesh"], list(mesh), part["placements"], part["order"])
        return 0 not in layout.local_shape(part["shape"], rank)

    def placed(self, name: str) -> _sluice.Layout:
        """The placements; of copies on several meshes, those of all together."""
        self.check(name, ("mesh", "placements", "order"))
        meshes: dict[tuple[int, ...], int] = {}
        for rank, part in self.parts:
            meshes.setdefault(tuple(part["ranks"]), rank)
        having = {rank for rank, _ in self.parts}
        owner_of: dict[int, tuple[int, ...]] = {}
        for mesh, rank in meshes.items():
            for member in mesh:
                if member in owner_of:
                    raise Disagreement(f"tensor '{name}': rank {rank} has a mesh of ranks "
                                       f"{list(mesh)}, and another rank has "
                                       f"{list(owner_of[member])}",
                                       ranks=(rank, meshes[owner_of[member]]), tensor=name)
                owner_of[member] = mesh
                if member not in having and self._has_elements(mesh, member):
                    raise Disagreement(f"tensor '{name}': rank {member} is in its mesh "
                                       f"{list(mesh)}, and does not give it", ranks=(member,),
                                       tensor=name)
        first = self.parts[0][1]
        sizes, placements, order = first["mesh"], first["placements"], first["order"]
        if len(meshes) == 1:
            return _sluice.Layout(sizes, first["ranks"], placements, order)
        together = [member for mesh in sorted(meshes, key=min) for member in mesh]
        return _sluice.Layout([len(meshes), *sizes], together, ["R", *placements],
                              [0, *(axis + 1 for axis in order)] if order else [])


def _merge(answers: list[list[Any]]) -> dict[_Key, _Tensor]:
    """The tensors of all ranks: in the order of the lowest rank, then of those that add some."""
    merged: dict[_Key, _Tensor] = {}
    alike: dict[str, _Tensor] = {}
    for rank, parts in enumerate(answers):
        for key, part in parts:
            merged.setdefault(tuple(key), _Tensor()).parts.append((rank, part))
            alike.setdefault(key[0], _Tensor()).parts.append((rank, part))
    for name, tensor in alike.items():
        tensor.check(name, ("shape",))
    placed: dict[tuple[str, int], list[tuple[str, _Tensor]]] = {}
    for (name, dtype, in_boxes, number), tensor in merged.items():
        if in_boxes:
            tensor.layout = tensor.boxes()
        else:
            placed.setdefault((name, number), []).append((dtype, tensor))
    for (name, _), tensors in placed.items():
        if len(tensors) > 1:
            _check_dtypes(name, tensors)
        for _, tensor in tensors:
            tensor.layout = tensor.placed(name)
    return merged


def _check_dtypes(name: str, tensors: list[tuple[str, _Tensor]]) -> None:
    """Disagreement where ranks of one mesh have a tensor with several dtypes."""
    for dtype, tensor in tensors:
        mesh = {member for _, part in tensor.parts for member in part["ranks"]}
        mesh -= {rank for rank, _ in tensor.parts}
        for other, same in tensors:
            for rank in mesh.intersection(rank for rank, _ in same.parts):
                first = tensor.parts[0][0]
                raise Disagreement(f"tensor '{name}': rank {first} has dtype {dtype}, and rank "
                                   f"{rank} has {other}", ranks=(first, rank), tensor=name)
