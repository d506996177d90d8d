"""Checkpoints, straight into and out of tensors that lie over ranks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from . import _sluice
from ._catalog import CheckpointEntry, Row, rows_of
from ._dcp import Stored, check_same_kind
from ._dtypes import FLOATS, dtype_name
from ._errors import DataLoss, Disagreement, InvalidSpec, Unsupported
from ._group import Group
from ._halves import Entry, read_half
from ._layouts import Boxes
from ._paths import checkpoint_of, directory_of, shown
from ._progress import Display
from ._state import check_name, state_dict_of
from ._streams import Places, Stream, handle_of, wait_for_stream
from ._tables import Stats
from ._texts import check_names_map, listed
from ._transfer import Renames
from ._values import KEY as VALUES_KEY
from ._values import Value, decoded, encoded, is_plain, split

# What tells the destinations apart that one tensor of a checkpoint has on a rank: its name, their
# dtype, whether they are boxes, and a number.
_Key = tuple[str, str, bool, int]

# Of one rank's part: shape; of its layout sizes, ranks, placements and order; or its boxes.
_Part = dict[str, Any]


def load(session: Group, uri: str | os.PathLike[str], state: Any, *, rename: Renames = None,
         strict: bool | None = None, catalog: Iterable[CheckpointEntry] | None = None,
         progress: bool = True, stream: Stream = None, **options: Any) -> dict[str, Any]:
    """`Session.load`."""
    place = ""
    stored: Stored | None = None
    rows: list[Row] = []

    def check() -> str:
        nonlocal place, rows
        handle_of(stream)
        _sluice.check_checkpoint_options(options)
        place, is_dcp = checkpoint_of("uri", uri)
        rows = rows_of(catalog)
        if rows and is_dcp:
            raise InvalidSpec(f"uri is '{shown(uri)}', which says where its arrays are; it takes "
                              "no catalog")
        return place

    def read() -> Any:
        check()
        if strict not in (None, True, False):
            raise InvalidSpec(f"strict is {strict!r}; it has to be True, False or None")
        parts = entries.read(state, "dst", rename, None if stored is None else stored.values)
        entries.check_values()
        return [parts, {name: value.value is None for name, value in entries.values.items()},
                sorted(entries.tied), strict]

    entries = _Entries(session)
    if isinstance(uri, str) and uri.startswith("dcp:"):
        stored = Stored.find(session, check, options)
    answers = session._exchange("load", read)
    check_same_kind(answers, is_dcp=False)
    for rank, (*_, other) in enumerate(answers):
        if other != answers[0][-1]:
            raise Disagreement(f"strict is {answers[0][-1]} on rank 0, and {other} on rank {rank}",
                               ranks=(0, rank))
    merged = _merge([parts for parts, *_ in answers])
    # A rank without a tensor may give None for it. Other None may become what the checkpoint has.
    names = {name for name, *_ in merged}
    values = {name for _, own, *_ in answers for name in own} - names
    needed = {name for _, own, *_ in answers for name, is_none in own.items() if not is_none}
    wait_for_stream(session._native, stream, entries.places())
    found: _Found | None = None
    if values or needed or strict is not None:
        found = _Found(session, place, options, rows, stored)
        tied = {name for *_, own, _ in answers for name in own}
        found.compare(names, tied, values, needed, strict)
        merged = {key: tensor for key, tensor in merged.items() if key[0] in found.tensors}
    if stored is not None:
        if missing := sorted({key[0] for key in merged} - stored.tensors):
            raise InvalidSpec(f"the checkpoint lacks {_named(missing)}", tensor=missing[0])
        rows = rows_of(stored.catalog({key[0] for key in merged})) if merged else []
        if found is not None:
            found.values = {name: decoded(value)
                            for name, value in stored.read_values(values).items()}
    stats: dict[str, Any] = {}
    if merged or found is None and stored is None:
        with _shown(session, f"sluice: load {shown(place)}", merged, progress):
            stats = dict(session._native.load(place, entries.native(merged, None), options,
                                              catalog=rows))
    if stored is not None:
        stored.check_unchanged()
    if found is not None:
        stats.update(missing=found.missing, unexpected=found.unexpected)
        if values and stored is None and (
                _Found(session, place, options, rows).text != found.text):
            raise DataLoss(f"{shown(place)} was replaced while it was loaded")
        entries.put(found.values)
    if entries.finish is not None:
        entries.finish()
    return Stats(stats)


def save(session: Group, directory: str | os.PathLike[str], state: Any, *, dtype: Any = None,
         rename: Renames = None, progress: bool = True, stream: Stream = None,
         **options: Any) -> dict[str, Any]:
    """`Session.save`."""
    place = ""
    own_dtype: str | None = None

    def read() -> Any:
        nonlocal place, own_dtype
        handle_of(stream)
        _sluice.check_checkpoint_options(options)
        place = directory_of("directory", directory)
        own_dtype = None if dtype is None else dtype_name(dtype)
        if own_dtype is not None and own_dtype not in FLOATS:
            raise InvalidSpec(f"dtype is {own_dtype}; it has to be one of {', '.join(FLOATS)}")
        parts = entries.read(state, "src", rename)
        return [parts, {name: encoded(value.value) for name, value in entries.values.items()}]

    entries = _Entries(session)
    answers = session._exchange("save", read)
    merged = _merge([parts for parts, _ in answers])
    firsts: dict[str, _Tensor] = {}
    for key, tensor in merged.items():
        if (first := firsts.setdefault(key[0], tensor)) is not tensor:
            ranks = (first.parts[0][0], tensor.parts[0][0])
            raise Disagreement(f"tensor '{key[0]}': ranks {ranks[0]} and {ranks[1]} have it with "
                               "other dtypes, or one in boxes and one by placements", ranks=ranks,
                               tensor=key[0])
        tensor.check(key[0], ("scalar",))
    values = _merge_values([own for _, own in answers], firsts)
    if not merged and values:
        raise InvalidSpec("a checkpoint has a tensor at least, and no rank gives one")
    native = entries.native(merged, own_dtype)
    wait_for_stream(session._native, stream, entries.places())
    metadata = {VALUES_KEY: json.dumps(values)} if values else {}
    with _shown(session, f"sluice: save {place}", merged, progress):
        return Stats(session._native.save(place, native, options, metadata))


def _merge_values(answers: list[dict[str, Any]], tensors: Mapping[str, _Tensor]) -> dict[str, Any]:
    """The values of all ranks. A rank without a tensor may give None for it."""
    merged: dict[str, Any] = {}
    first: dict[str, int] = {}
    for rank, values in enumerate(answers):
        for name, value in values.items():
            if name in tensors:
                if value is not None:
                    owner = tensors[name].parts[0][0]
                    raise Disagreement(f"'{name}' is a tensor on rank {owner}, and "
                                       f"{decoded(value)!r} on rank {rank}", ranks=(owner, rank),
                                       tensor=name)
            elif name not in merged:
                merged[name] = value
                first[name] = rank
            elif json.dumps(merged[name]) != json.dumps(value):  # 1 is neither 1.0 nor True
                raise Disagreement(f"'{name}' is {_short(merged[name])} on rank {first[name]}, and "
                                   f"{_short(value)} on rank {rank}", ranks=(first[name], rank),
                                   tensor=name)
    return merged


def _short(value: Any) -> str:
    text = repr(decoded(value))
    return text if len(text) < 80 else f"{text[:80]}..."


class _Found:
    """What a checkpoint has. Collective; blocks."""

    def __init__(self, session: Group, place: str, options: Mapping[str, Any], rows: list[Row],
                 stored: Stored | None = None) -> None:
        self.values: dict[str, Any] = {}
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.text: str | None = None
        if stored is not None:
            self.tensors = stored.tensors
            self.values.update(dict.fromkeys(stored.values))  # read later
            return
        names, metadata = session._native.checkpoint_info(place, options, rows)
        self.tensors = set(names)
        self.text = text = metadata.get(VALUES_KEY)
        if text is not None:
            try:
                self.values = {name: decoded(value) for name, value in json.loads(text).items()}
            except (AttributeError, RecursionError, TypeError, ValueError):
                raise InvalidSpec(f"{shown(place)}: what it has as {VALUES_KEY} is not from a save"
                                  ) from None

    def compare(self, tensors: set[str], tied: set[str], values: set[str], needed: set[str],
                strict: bool | None) -> None:
        """Finds what either side lacks. InvalidSpec, as `strict` says.

        `tied`: other names of `tensors`. `needed`: those of `values` that are not None.
        """
        self.missing = sorted((tensors - self.tensors) | (needed - self.values.keys()))
        self.unexpected = sorted((self.tensors - tensors - tied - (values - needed)) |
                                 (self.values.keys() - values))
        wrong = [] if strict is False else [
            f"the checkpoint lacks {_named(self.missing)}"] if self.missing else []
        if strict and self.unexpected:
            wrong.append(f"the state lacks {_named(self.unexpected)} of the checkpoint")
        mixed = sorted(tensors & self.values.keys()) + sorted(needed & self.tensors)
        if wrong and mixed:
            wrong.append(f"{_named(mixed)} is a tensor on one side alone")
        if wrong:
            raise InvalidSpec("; ".join(wrong), tensor=(self.missing or self.unexpected)[0])


def _named(names: list[str]) -> str:
    return listed([f"'{name}'" for name in names], 3)


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
        #: Other names of tensors, in the checkpoint: of those that share memory.
        self.tied: set[str] = set()
        #: What is no tensor, by the names in the checkpoint.
        self.values: dict[str, Value] = {}
        self._module: tuple[Any, Any] | None = None  # and its state dict

    def read(self, state: Any, side: str, rename: Renames, whole: set[str] | None = None
             ) -> list[Any]:
        """[key, part] of each tensor, for the other ranks. `whole`: as `split` has it."""
        own = state_dict_of(state)
        tensors, values = split(own, whole)
        nested = values or isinstance(state, Mapping)
        half = read_half(self._session, tensors if nested else state, side)
        if values and not isinstance(state, Mapping):
            self._module = (state, own)
        for value in values:
            name = _renamed(rename, value.name)
            if name in self.values:
                raise InvalidSpec(f"two values have the name '{name}' in the checkpoint",
                                  tensor=name)
            self.values[name] = value
        self.finish = half.finish
        self.tied = {_renamed(rename, name) for name in half.aliases}
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

    def check_values(self) -> None:
        """Of a load."""
        for name, value in list(self.values.items()):
            if not isinstance(value.holder, (list, MutableMapping)):
                raise InvalidSpec(f"'{value.name}' is in a {type(value.holder).__name__}, into "
                                  "which nothing can be loaded; give a list or a dict",
                                  tensor=value.name)

    def put(self, found: Mapping[str, Any]) -> None:
        """Fills in what the checkpoint has."""
        for name, value in self.values.items():
            if name in found:
                value.put(found[name])
        if self._module is not None:  # its extra states
            module, own = self._module
            module.load_state_dict({name: value for name, value in own.items() if is_plain(value)},
                                   strict=False)

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
    check_names_map("rename", rename)
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
