"""What a rank gives to a transfer, a load or a save: state dicts and so on, read into entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Optional, Union

from . import _dtensor, _prints
from ._dtypes import dtype_name
from ._errors import InvalidSpec
from ._layouts import Box, Boxes, Layout, Tensor, check_extents
from ._memory import CPU, Described, View, describe, is_tensor
from ._texts import check_names_map, is_utf8, with_article
from ._values import is_plain

SRC = "src"
DST = "dst"

_WINDOW_MAX = 65535  # kMaxWindow of sluice/transfer.h

WindowOf = Union[Mapping[str, int], Callable[[str], Optional[int]], None]


@dataclass
class Entry:
    """A tensor of which this rank has a part, in the form that the extension takes.

    A scalar has shape (1,), and `scalar` says so. `native_view` is None where this rank has no
    memory for its part yet.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    layout: Layout | Boxes
    native_view: View | list[View] | None
    owner: Any
    memories: list[Any]
    window: int | None = None
    rank: int = 0
    plain: bool = False  # a whole copy that nobody has given a layout
    owns: bool = True  # whether this rank has an element of it
    scalar: bool = False  # the tensor has no dimensions

    @property
    def native_layout(self) -> Any:
        """The extension's layout."""
        if isinstance(self.layout, Boxes):
            return self.layout.native(self.rank)
        return self.layout.native()

    @property
    def native(self) -> tuple[Any, ...]:
        """What the extension's `connect` takes."""
        return (self.name, self.shape, self.dtype, self.native_layout, self.native_view,
                self.window, self.owner)

    @property
    def is_partial(self) -> bool:
        return self.layout.is_partial

    @property
    def boxes(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """(offset, shape) of each box; none where placements say what the rank owns."""
        if not isinstance(self.layout, Boxes):
            return []
        return [(box.offset, box.shape) for box in self.layout]

    @property
    def signature(self) -> tuple[Any, ...]:
        """Equal where a plan may be used again. Refers to no memory."""
        layout = self.layout.bare if isinstance(self.layout, Boxes) else self.layout
        return (self.name, self.shape, self.dtype, layout, self.window)

    @property
    def lacks_memory(self) -> bool:
        """True where memory has to be supplied before bytes can come."""
        if not self.owns:
            return False
        views = self.native_view
        if views is None:
            return True
        return any(view[0] == 0 for view in (views if isinstance(views, list) else [views]))


@dataclass
class Half:
    """One side of a transfer on this rank."""

    entries: list[Entry] = field(default_factory=list)
    #: Destinations left out, as they share memory with the one that they map to: tied weights.
    aliases: dict[str, str] = field(default_factory=dict)
    #: Of a destination: the source that it comes from, where that has another name.
    renames: dict[str, str] = field(default_factory=dict)
    #: To call after each run, or None.
    finish: Callable[[], None] | None = None
    #: Says which parameter has other memory now than when it was read, or None.
    moved: Callable[[], InvalidSpec | None] | None = None
    #: Names that have None, which is left out.
    nones: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Into:
    """Destinations with names of their own. `sluice.into` makes it."""

    state: Any = field(repr=False)
    rename: Any = None
    views: Any = field(default=None, repr=False)


def into(params: Any, rename: Mapping[str, str] | Callable[[str], str] | None = None,
         views: Mapping[str, Any] | Callable[[str, Any], Any] | None = None) -> Into:
    """Destinations, and what their sources are called.

    `params`: what a transfer takes as `dst`, or a module of PyTorch. `rename`: the source's name of
    a destination, as a mapping or a function; names that it lacks stay. `views`: of a destination,
    the parts of its memory that have names of their own: {"qkv.weight": {"q.weight": qkv[:64]}}, or
    a function of name and tensor that returns such a mapping, or None to take the tensor whole.
    """
    return Into(params, rename, views)


def halves(state: Any, side: str, *, rank: int, rank_of: _dtensor.RankOf | None = None,
           window_of: WindowOf = None) -> Half:
    """Reads what a rank gives for one side, SRC or DST.

    `state`: None; a mapping of names, nested ones get dots; a module of PyTorch; an iterable of
    Tensor; what `into` or `capture` return. Values: DTensors, tensors and arrays, Tensor, Boxes;
    None is left out. `rank`: this one in the session. `rank_of`: session ranks of DTensor meshes.
    Destinations may lack memory, as `Entry.lacks_memory` says.
    InvalidSpec and Unsupported name the tensor.
    """
    if state is None:
        return Half()
    captured = is_captured(state)
    half = Half(renames=dict(state.renames)) if captured else Half()
    module = state.state if isinstance(state, Into) else state
    state = state_dict_of(state)
    if captured:
        half.finish, half.moved = state.finish, state.watch()
        items: Iterable[tuple[str, Any]] = _items(state.targets)
    elif isinstance(state, Into):
        items = _with_views(_items(state.state), state.views)
    else:
        items = _items(state)
    seen: set[str] = set()
    tied: dict[Any, str] = {}
    for name, value in items:
        if value is None:
            half.nones.append(name)
            continue
        if isinstance(value, Boxes) and not len(value):
            continue
        if isinstance(value, Tensor) and isinstance(value.layout, Boxes) and not len(value.layout):
            continue  # a rank that holds nothing of it
        if name in seen:
            raise InvalidSpec(f"tensor '{name}' is there twice", tensor=name)
        seen.add(check_name(name))
        if is_plain(value):
            raise _no_tensor(name, value)
        entry = read_entry(name, value, side, rank=rank, rank_of=rank_of)
        if (key := _memory_key(entry, value)) is not None and side == DST:
            first = tied.setdefault(key, name)
            if first != name:
                half.aliases[name] = first
                continue
        entry.window = _window(name, entry.window, window_of)
        half.entries.append(entry)
    if isinstance(state, Into):
        half.renames.update(_renames(state.rename, half.entries))
    if hasattr(module, "named_parameters") and hasattr(module, "named_buffers"):
        half.moved = _moved(module, {entry.name for entry in half.entries})
    return half


def _no_tensor(name: str, value: Any) -> InvalidSpec:
    instead = ", or make it a tensor" if isinstance(value, (int, float)) else ""
    return InvalidSpec(f"'{name}' is {with_article(type(value).__name__)}, and only tensors move: "
                       "leave it out, as by {k: v for k, v in state.items() if hasattr(v, 'shape')}"
                       f"{instead}; save and load keep numbers, texts and lists", tensor=name)


def _moved(module: Any, names: set[str]) -> Callable[[], InvalidSpec | None]:
    """Looks whether the parameters and buffers of these names lie elsewhere, or in another way."""

    def forms() -> dict[str, tuple[Any, ...]]:
        found = {}
        for name, value in (*module.named_parameters(), *module.named_buffers()):
            if name in names:
                local = getattr(value, "_local_tensor", value)
                found[name] = local.data_ptr(), local.dtype, local.shape, local.stride()
        return found

    before = {name: form for name, form in forms().items() if form[0]}

    def moved() -> InvalidSpec | None:
        now = forms()
        for name, form in before.items():
            own = now.get(name)
            if own is None:
                return InvalidSpec(f"tensor '{name}': the module has no '{name}' any more; make a "
                                   "new transfer", tensor=name)
            if own != form:
                what = "another dtype, shape or stride" if own[0] == form[0] else (
                    "other memory")
                return InvalidSpec(f"tensor '{name}': the module has {what} for it than when it "
                                   "was bound; give the module to rebind, or make a new transfer",
                                   tensor=name)
        return None

    def tensors() -> list[Any]:
        return [value for name, value in (*module.named_parameters(), *module.named_buffers())
                if name in before]

    return _prints.unless_same(module, tensors, moved)


def is_captured(state: Any) -> bool:
    """Whether `capture` has returned it: destinations that know their sources' names already."""
    return hasattr(state, "targets") and hasattr(state, "renames")


def state_dict_of(state: Any) -> Any:
    """The state dict of a module; anything else as it is. So it is for the state in an Into."""
    if isinstance(state, Into):
        return replace(state, state=state_dict_of(state.state))
    if hasattr(state, "state_dict") and not isinstance(state, Mapping):
        return state.state_dict()
    return state


def _items(state: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(state, Tensor):
        state = [state]
    if isinstance(state, Mapping):
        yield from _flat("", state)
        return
    if not isinstance(state, Iterable) or isinstance(state, (str, bytes)) or is_tensor(state):
        raise InvalidSpec(f"tensors are given as a {type(state).__name__}; it has to be a mapping "
                          "of names, or an iterable of sluice.Tensor")
    for one in state:
        if isinstance(one, Tensor):
            yield one.name, one
        elif isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str):
            yield one
        else:
            raise InvalidSpec(f"a list of tensors has a {type(one).__name__}; it has to have "
                              "sluice.Tensor, or pairs of a name and a tensor")


def _flat(prefix: str, state: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in state.items():
        if not isinstance(key, (str, int)):
            raise InvalidSpec(f"a name is {key!r}; it has to be a text")
        name = f"{prefix}{key}"
        if not name:
            raise InvalidSpec("a tensor has no name")
        if isinstance(value, Mapping):
            yield from _flat(f"{name}.", value)
        else:
            yield name, value


def _with_views(items: Iterable[tuple[str, Any]], views: Any) -> Iterator[tuple[str, Any]]:
    check_names_map("views", views)
    unknown = set(views) if isinstance(views, Mapping) else set()
    for name, value in items:
        if views is None:
            yield name, value
            continue
        parts = views.get(name) if isinstance(views, Mapping) else views(name, value)
        unknown.discard(name)
        if parts is None:
            yield name, value
        else:
            yield from _items(parts)
    if unknown:
        raise InvalidSpec(f"views name '{min(unknown)}', and there is no such destination",
                          tensor=min(unknown))


def _renames(rename: Any, entries: list[Entry]) -> dict[str, str]:
    check_names_map("rename", rename)
    if rename is None:
        return {}
    given: dict[str, str] = {}
    for entry in entries:
        source = rename.get(entry.name, entry.name) if isinstance(rename, Mapping) else (
            rename(entry.name))
        if not isinstance(source, str) or not source:
            raise InvalidSpec(f"tensor '{entry.name}': its rename gave {source!r}; it has to be "
                              "the name of a source", tensor=entry.name)
        if source != entry.name:
            given[entry.name] = source
    return given


def _window(name: str, own: int | None, window_of: WindowOf) -> int | None:
    given = None
    check_names_map("window_of", window_of)
    if window_of is not None:
        given = window_of.get(name) if isinstance(window_of, Mapping) else window_of(name)
    window = own if given is None else given
    if window is None:
        return None
    if not hasattr(window, "__index__") or not 0 <= window <= _WINDOW_MAX:
        raise InvalidSpec(f"tensor '{name}': window {window!r} has to be a number, 0 to "
                          f"{_WINDOW_MAX}", tensor=name)
    return int(window)


def check_name(name: str) -> str:
    """The name, if the extension can take it."""
    if not is_utf8(name):
        shown = name.encode(errors="backslashreplace").decode()
        raise InvalidSpec(f"tensor {shown!r}: a name has to be a text that UTF-8 can hold",
                          tensor=name)
    return name


def read_entry(name: str, value: Any, side: str, *, rank: int,
               rank_of: _dtensor.RankOf | None = None) -> Entry:
    """One tensor of `halves`."""
    writable = side == DST
    if isinstance(value, Tensor):
        entry = _read_tensor(name, value, writable, rank)
    elif isinstance(value, Boxes):
        entry = _read_boxes(name, value, None, None, writable, rank)
    elif _dtensor.is_dtensor(value):
        read = _dtensor.read(value, name, rank, rank_of)
        described = None
        if read.local is not None:
            described = describe(read.local, writable=writable, tensor=name, late=writable)
        entry = _placed(name, read.shape, dtype_name(value.dtype, tensor=name), read.layout,
                        described, rank)
    else:
        described = describe(value, writable=writable, tensor=name, late=writable)
        entry = _placed(name, described.shape, described.dtype, Layout.whole(rank), described, rank)
        entry.plain = True
    return entry


def _read_tensor(name: str, value: Tensor, writable: bool, rank: int) -> Entry:
    if isinstance(value.layout, Boxes):
        entry = _read_boxes(name, value.layout, tuple(value.shape), value.dtype, writable, rank)
        entry.window = value.window
        return entry
    layout = Layout.whole(rank) if value.layout is None else value.layout
    described = None
    if value.view is not None:
        described = describe(value.view, writable=writable, tensor=name, late=writable)
        if described.dtype != value.dtype:
            raise InvalidSpec(f"tensor '{name}' is of {value.dtype}, and its memory of "
                              f"{described.dtype}", tensor=name)
    entry = _placed(name, tuple(value.shape), value.dtype, layout, described, rank)
    entry.plain = value.layout is None
    entry.window = value.window
    return entry


def _placed(name: str, shape: tuple[int, ...], dtype: str, layout: Layout,
            described: Described | None, rank: int) -> Entry:
    if described is not None and not described.shape:
        described = replace(described, shape=(1,), strides=None)
    scalar, shape = not shape, shape or (1,)
    check_extents(name, shape, layout.ranks)
    layout = layout.with_dims(len(shape))
    whole = layout == Layout.whole(rank)
    expected = shape if whole else layout.local_shape(shape, rank)
    owns = prod(expected) > 0
    if described is not None and described.shape != expected and (
            owns or prod(described.shape)):
        raise InvalidSpec(f"tensor '{name}': its memory has shape {list(described.shape)}, and "
                          f"{layout} gives {list(expected)} of {list(shape)} to rank {rank}",
                          tensor=name)
    if not owns:
        nothing: View = (0, expected, None, dtype, CPU, 0)
        return Entry(name, shape, dtype, layout, nothing, None, [], rank=rank, owns=False,
                     scalar=scalar)
    if described is None:
        return Entry(name, shape, dtype, layout, None, None, [], rank=rank, scalar=scalar)
    return Entry(name, shape, dtype, layout, described.view if described.ptr else None,
                 keepers([described]), [described.owner], rank=rank, scalar=scalar)


def _read_boxes(name: str, value: Boxes, shape: tuple[int, ...] | None, dtype: str | None,
                writable: bool, rank: int) -> Entry:
    shape = value.shape if shape is None else shape
    if shape is None:
        raise InvalidSpec(f"tensor '{name}': Boxes that are a value of a state dict have to say "
                          "the shape of the whole", tensor=name)
    check_extents(name, shape)
    found: list[Described] = []
    for box in value:
        if box.view is None:
            continue
        described = describe(box.view, writable=writable, tensor=name, late=writable)
        if described.shape != box.shape:
            raise InvalidSpec(f"tensor '{name}': {box} has memory of shape "
                              f"{list(described.shape)}", tensor=name)
        if dtype is not None and described.dtype != dtype:
            raise InvalidSpec(f"tensor '{name}' is of {dtype}, and the memory of {box} of "
                              f"{described.dtype}", tensor=name)
        dtype = described.dtype
        found.append(described)
    if found and len(found) != len(value):
        raise InvalidSpec(f"tensor '{name}': {len(value) - len(found)} of {len(value)} boxes have "
                          "no memory", tensor=name)
    if dtype is None:
        raise InvalidSpec(f"tensor '{name}': no box has memory that says its dtype", tensor=name)
    if (pair := _overlap(value.boxes)) is not None:
        raise InvalidSpec(f"tensor '{name}': {pair[0]} and {pair[1]} overlap", tensor=name)
    views = [described.view for described in found] if all(one.ptr for one in found) else []
    owners = [described.owner for described in found]
    return Entry(name, shape, dtype, value, views or None, keepers(found), owners, rank=rank,
                 owns=bool(len(value)))


def keepers(found: list[Described]) -> list[Any]:
    """What keeps this memory: a tensor of PyTorch may be given other memory during a run."""
    owners = {id(described.owner): described.owner for described in found}
    kept: list[Any] = []
    for owner in owners.values():
        kept += [owner, *storages(owner)]
    return kept


def storages(tensor: Any) -> list[Any]:
    """That of a tensor of PyTorch, which keeps the memory that the tensor has now."""
    with suppress(AttributeError, RuntimeError, NotImplementedError):
        return [tensor.untyped_storage()]
    return []


def _overlap(boxes: Sequence[Box]) -> tuple[Box, Box] | None:
    ahead: list[Box] = []
    for box in sorted(boxes, key=lambda one: one.offset[0]):
        ahead = [one for one in ahead if one.offset[0] + one.shape[0] > box.offset[0]]
        for one in ahead:
            if one.overlaps(box):
                return one, box
        ahead.append(box)
    return None


def _memory_key(entry: Entry, value: Any) -> Any:
    """Equal for tensors that are one memory under two names; None where that cannot be told."""
    if isinstance(entry.native_view, list):
        return None
    layout = None if entry.plain else entry.layout
    if entry.native_view is not None and entry.owns:
        return (*entry.native_view, entry.shape, layout)
    # A rank that owns nothing has to find what the others find: by the storage, which is there.
    local = value.to_local() if _dtensor.is_dtensor(value) else value
    if not hasattr(local, "untyped_storage"):
        return (id(value), entry.shape, layout)
    return ("storage", local.untyped_storage()._cdata, local.storage_offset(),
            tuple(local.shape), tuple(local.stride()), entry.shape, entry.dtype, layout)
