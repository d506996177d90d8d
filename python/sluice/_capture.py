"""What an engine's own loader does with each tensor, as boxes of it and places in parameters.

The loader runs with tensors that have no values and record how they are cut and copied. After that,
transfers write into the parameters directly. Tensors that it uses otherwise, it is given whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from . import _recording
from ._dtypes import DTYPE_BYTES, dtype_name
from ._errors import InvalidSpec, Unsupported
from ._layouts import Box, Boxes, Tensor
from ._memory import Described, dense_strides, describe
from ._recording import Place, Recorder, Write, place_of
from ._strided import Base, Piece, Strided, TooManyPieces, pair
from ._views import Uncapturable

Load = Callable[[Iterator[tuple[str, Any]]], Any]


@dataclass(frozen=True)
class Spec:
    """A tensor that is to come: the whole one."""

    name: str
    shape: tuple[int, ...]
    dtype: Any


@dataclass(frozen=True)
class Copy:
    """Elements of `source` from `begin` on, as many as `memory` has, and where they go.

    `memory` is a view of the parameter `param`, from `offset` bytes behind its first element on.
    Its `ptr` is 0 where the parameter has no memory yet.
    """

    source: str
    begin: tuple[int, ...]
    param: str
    offset: int
    memory: Described


@dataclass
class Captured:
    """What `capture` has found. A transfer takes it as `dst`.

    Thread: any one at a time. It refers to the parameters.
    """

    specs: dict[str, Spec]
    copies: list[Copy]
    #: Tensors that the loader has to get whole, and why. `finish` does that.
    fallback: dict[str, str]
    #: Tensors that the loader did not look at. No memory waits for them.
    ignored: list[str]
    _load: Load
    _params: Any  # what `capture` or `bind` was given
    _device: Any = None
    _uses_torch: bool = False
    _buffers: dict[str, Any] = field(default_factory=dict)
    _targets: list[Tensor] | None = None
    _renames: dict[str, str] = field(default_factory=dict)
    _forms: dict[str, Described] = field(default_factory=dict)  # of the parameters

    @property
    def targets(self) -> list[Tensor]:
        """The destinations: boxes in the parameters, and whole tensors for what falls back.

        InvalidSpec: a parameter is gone, or has other memory than when it was captured or bound.
        """
        for name, param in self.current().items():
            now = _same_form(self._forms[name], param, name, late=True)
            if now.ptr != self._forms[name].ptr:
                raise InvalidSpec(f"parameter '{name}' has other memory than when it was captured; "
                                  "use what Captured.bind returns", tensor=name)
        return list(self._made())

    def current(self) -> dict[str, Any]:
        """The parameters that are written to, as they are now."""
        named = _named(self._params)
        params: dict[str, Any] = {}
        for copy in self.copies:
            if copy.param not in named:
                raise InvalidSpec(f"there is no parameter '{copy.param}'", tensor=copy.param)
            params[copy.param] = named[copy.param]
        return params

    def _made(self) -> list[Tensor]:
        if self._targets is None:
            self._targets = [*self._boxed(), *self._whole()]
        return self._targets

    @property
    def renames(self) -> dict[str, str]:
        """Of a destination: its source. A source that goes to places twice has several."""
        self._made()
        return dict(self._renames)

    def bind(self, params: Any, load: Load | None = None) -> Captured:
        """The same for other memory of the same parameters, as after a capture on meta.

        `load`: the loader of whoever has that memory; None: the one that was captured. It gets the
        tensors that fall back, so it has to write into `params`.
        InvalidSpec: a parameter is missing, or has another shape, dtype or strides.
        """
        named = _named(params)
        places: dict[str, Described] = {}
        copies = []
        for copy in self.copies:
            if copy.param not in named:
                raise InvalidSpec(f"there is no parameter '{copy.param}'", tensor=copy.param)
            if copy.param not in places:
                places[copy.param] = _same_form(self._forms[copy.param], named[copy.param],
                                                copy.param)
            param = places[copy.param]
            memory = replace(copy.memory, ptr=param.ptr + copy.offset, device=param.device,
                             ordinal=param.ordinal, owner=param.owner)
            copies.append(replace(copy, memory=memory))
        return replace(self, copies=copies, _load=load or self._load, _params=params,
                       _targets=None, _renames={}, _buffers={}, _forms={**self._forms, **places})

    def finish(self) -> None:
        """Gives the loader what has been received whole. A transfer calls it after each run.

        InvalidSpec: the loader writes over what a tensor after this one has filled already.
        """
        if not self.fallback:
            return
        self._made()
        order = _Order(self)
        if not self._uses_torch:
            self._load(order)
            return
        from . import _recording_torch
        with _recording_torch.Watching(order.check, lambda tensor: None):
            self._load(order)

    def _boxed(self) -> Iterator[Tensor]:
        # Boxes of one destination do not overlap, and have one dtype.
        layers: dict[str, list[tuple[str, list[Box]]]] = {}
        for copy in self.copies:
            box = Box(copy.begin, copy.memory.shape, copy.memory)
            own = layers.setdefault(copy.source, [])
            for dtype, boxes in own:
                if dtype == copy.memory.dtype and not any(box.overlaps(one) for one in boxes):
                    boxes.append(box)
                    break
            else:
                own.append((copy.memory.dtype, [box]))
        for source, own in layers.items():
            shape = self.specs[source].shape or (1,)
            for i, (dtype, boxes) in enumerate(own):
                name = source
                while i > 0 and (name == source or name in self.specs):
                    name = f"{source}#{i + 1}" if name == source else f"{name}'"
                if name != source:
                    self._renames[name] = source
                yield Tensor(name, shape, dtype, Boxes(boxes))

    def _whole(self) -> Iterator[Tensor]:
        for name in self.fallback:
            spec = self.specs[name]
            dtype = dtype_name(spec.dtype, tensor=name)
            if name not in self._buffers:
                self._buffers[name] = self._buffer(name, spec.shape, dtype)
            yield Tensor(name, spec.shape, dtype, None, self._buffers[name])

    def _buffer(self, name: str, shape: tuple[int, ...], dtype: str) -> Any:
        if self._uses_torch:
            from . import _recording_torch
            return _recording_torch.buffer(name, shape, self.specs[name].dtype, self._device)
        memory = bytearray(max(1, prod(shape) * DTYPE_BYTES[dtype]))
        held = describe(memory, writable=True, tensor=name)
        return Described(held.ptr, shape, None, dtype, held.device, held.ordinal, held.owner)

    def __repr__(self) -> str:
        return (f"<sluice.Captured: {len(self.copies)} boxes of {len(self.specs)} tensors, "
                f"{len(self.fallback)} fall back, {len(self.ignored)} ignored>")


class _Order:
    """The whole tensors for the loader, in order; and what it may not write to meanwhile.

    The loader alone would have been given a tensor after another one, and the later one's elements
    would have stayed. Those have been received before.
    """

    def __init__(self, captured: Captured) -> None:
        self._number = {name: i for i, name in enumerate(captured.specs)}
        self._whole = iter([(name, captured._buffers[name]) for name in captured.specs
                            if name in captured._buffers])
        self._given = ""
        self._places = {name: Place((form.device, form.ordinal), form.ptr, form)
                        for name, form in captured._forms.items()}
        self._finder = Recorder(self._places)
        self._writes: dict[str, list[Write]] = {}
        for copy in captured.copies:
            place = Place((copy.memory.device, copy.memory.ordinal), copy.memory.ptr, copy.memory)
            write = Write(frozenset((copy.source,)), None, copy.param, place)
            self._writes.setdefault(copy.param, []).append(write)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self

    def __next__(self) -> tuple[str, Any]:
        self._given, tensor = next(self._whole)
        return self._given, tensor

    def check(self, target: Any) -> None:
        """Before the loader writes to `target`."""
        try:
            place = place_of(target)
        except (InvalidSpec, Unsupported, NotImplementedError):
            return  # no parameter has such memory
        now = self._number.get(self._given, -1)
        for param in self._finder.params_meeting(place):
            own = Write(frozenset(), None, param, place)
            for write in self._writes.get(param, ()):
                (source,) = write.names
                if self._number[source] > now and _meet(own, write, self._places):
                    raise InvalidSpec(
                        f"the loader writes to '{param}' where '{source}' has come already, which "
                        "it would have been given later: it cannot be captured", tensor=source)


def capture(load: Load, tensors: Any, params: Any, *, device: Any = "cpu") -> Captured:
    """Runs `load` once or more, and finds where it puts what.

    `load`: takes an iterator of (name, tensor), as an engine's load_weights. `tensors`: those that
    are to come, as a mapping of names to (shape, dtype) or to anything with both, or an iterable of
    (name, shape, dtype) or of Tensor. `params`: a module of PyTorch, or a mapping of names to its
    parameters and buffers; on meta, too, see `Captured.bind`. `device`: what the recording tensors
    say, and where whole tensors are received.

    Views are recorded (narrow, select, slices, view, t, permute, chunk and so on), copies into
    dense memory, and copy_ into parameters with its broadcast and cast. A tensor falls back where
    the loader calls anything else with it, or needs its values. It falls back, too, where it is
    copied into something else than a parameter, or onto what another tensor has written.
    What the loader writes without these tensors, it writes: zeros as padding, for instance.

    InvalidSpec: a parameter cannot be written to, or names are there twice. Errors of the loader
    are raised as they are, unless they come of what a recording does not have.
    """
    specs = _specs(tensors)
    named = _named(params)
    places = {name: place_of(value, name) for name, value in named.items()}
    uses_torch = any(hasattr(value, "untyped_storage") for value in named.values())
    recorder = _record(load, list(specs.values()), _Params(named, places), uses_torch, device)
    copies, seen = _copies(recorder, places)
    untold = {name: "the loader keeps it, or copies it nowhere"
              for name in recorder.touched - seen if name not in recorder.fallback}
    recorder.fallback.update(untold)
    _mind_own_writes(recorder, places)
    fallback = {name: recorder.fallback[name] for name in specs if name in recorder.fallback}
    ignored = [name for name in specs if name not in seen and name not in fallback]
    return Captured(specs, [copy for copy in copies if copy.source not in fallback], fallback,
                    ignored, load, params, device, uses_torch,
                    _forms={name: place.memory for name, place in places.items()})


def _specs(tensors: Any) -> dict[str, Spec]:
    items: Iterable[Any] = tensors.items() if isinstance(tensors, Mapping) else tensors
    specs: dict[str, Spec] = {}
    for one in items:
        if isinstance(one, Tensor):
            name, shape, dtype = one.name, one.shape, one.dtype
        elif len(one) == 3:
            name, shape, dtype = one
        else:
            name, value = one
            shape, dtype = value if isinstance(value, tuple) else (value.shape, value.dtype)
        if name in specs:
            raise InvalidSpec(f"tensor '{name}' is there twice", tensor=name)
        dtype_name(dtype, tensor=name)
        specs[name] = Spec(name, tuple(int(size) for size in shape), dtype)
    return specs


def _named(params: Any) -> dict[str, Any]:
    if hasattr(params, "named_parameters"):
        # Those that share memory under two names are one place.
        return {**dict(params.named_parameters()), **dict(params.named_buffers())}
    return {name: value._memory if isinstance(value, _recording.Destination) else value
            for name, value in dict(params).items()}


def _same_form(form: Described, param: Any, name: str, late: bool = False) -> Described:
    found = describe(param, writable=True, tensor=name, late=late)
    for what in ("shape", "dtype", "strides"):
        if getattr(found, what) != getattr(form, what):
            raise InvalidSpec(f"parameter '{name}' was captured with {what} {getattr(form, what)}, "
                              f"and has {getattr(found, what)}", tensor=name)
    return found


class _Params:
    """The parameters as they were. A loader may put a recording tensor in place of one's memory."""

    def __init__(self, named: dict[str, Any], places: dict[str, Place]) -> None:
        self.places = places
        self._tensors = {name: (value, value.detach()) for name, value in named.items()
                         if hasattr(value, "untyped_storage")}

    def mend(self, names: Iterable[str] | None = None) -> list[str]:
        """Of these, or of all: those that were replaced. They get their memory back."""
        replaced = []
        for name in self._tensors if names is None else names:
            value, before = self._tensors[name]
            try:
                place = place_of(value)
                same = place.space == self.places[name].space and (
                    place.address == self.places[name].address)
            except (InvalidSpec, NotImplementedError, Uncapturable):
                same = False
            if not same:
                replaced.append(name)
                value.data = before
        return replaced


class _Feeder:
    """The pairs that the loader takes, and how far it has come."""

    def __init__(self, specs: Sequence[Spec], make: Callable[[Spec], Any], params: _Params,
                 watched: list[str]) -> None:
        self._specs = specs
        self._make = make
        self._params = params
        self._watched = watched
        self.given = 0
        self.replaced: dict[str, str] = {}

    def look(self) -> None:
        """Whether the tensor before has replaced a parameter."""
        if self._watched and (names := self._params.mend(self._watched)):
            self.replaced[self._specs[self.given - 1].name] = (
                f"the loader replaces the memory of '{names[0]}'")

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self

    def __next__(self) -> tuple[str, Any]:
        self.look()
        if self.given == len(self._specs):
            raise StopIteration
        spec = self._specs[self.given]
        self.given += 1
        return spec.name, self._make(spec)


def _record(load: Load, specs: list[Spec], params: _Params, uses_torch: bool,
            device: Any) -> Recorder:
    """A whole call of the loader, with those tensors left out that it cannot go on with."""
    stopped: dict[str, str] = {}
    watched: list[str] = []
    while True:
        recorder = Recorder(params.places)
        make = _maker(recorder, uses_torch, device)
        found: dict[str, str] = {}
        replaced: list[str] = []
        rest = [spec for spec in specs if spec.name not in stopped]
        # After such a tensor the loader is called again with the others, to find all of them.
        while rest:
            feeder = _Feeder(rest, make, params, watched)
            try:
                with _watching(recorder, params.places, uses_torch):
                    load(feeder)
            except Uncapturable as error:
                names, reason = error.sources, error.reason
            except (RuntimeError, TypeError, NotImplementedError) as error:
                names, reason = frozenset(), f"{type(error).__name__}: {error}"
                if feeder.given == 0:
                    raise
            else:
                feeder.look()
                found.update(feeder.replaced)
                break
            finally:
                replaced = params.mend()
                watched = sorted({*watched, *replaced})
            found.update(feeder.replaced)
            found.update(dict.fromkeys(names or (rest[feeder.given - 1].name,), reason))
            rest = rest[feeder.given:]
        if not found and not replaced:
            recorder.fallback.update(stopped)
            return recorder
        # With nothing found, the next pass looks at each step which tensor it was.
        stopped.update(found)


def _watching(recorder: Recorder, places: dict[str, Place],
              uses_torch: bool) -> AbstractContextManager[Any]:
    """What a loader does to parameters of PyTorch by itself, told to `recorder`."""
    if not uses_torch:
        return nullcontext()
    from . import _recording_torch

    def read(tensor: Any) -> None:
        if not recorder.writes:
            return
        with suppress(InvalidSpec, Unsupported, NotImplementedError):
            place = place_of(tensor)
            for param in recorder.params_meeting(place):
                own = Write(frozenset(), None, param, place)
                for write in recorder.writes:
                    if write.param == param and _meet(own, write, places):
                        recorder.fall_back(write.names, f"the loader reads '{param}' after it has "
                                                        "copied this into it")

    return _recording_torch.Watching(recorder.wrote, read)


def _maker(recorder: Recorder, uses_torch: bool, device: Any) -> Callable[[Spec], Any]:
    if not uses_torch:
        return lambda spec: _recording.RecordingTensor.of(spec.name, spec.shape, spec.dtype,
                                                          recorder)
    from . import _recording_torch
    return lambda spec: _recording_torch.RecordingTensor.of(spec.name, spec.shape, spec.dtype,
                                                            recorder, device)


def _copies(recorder: Recorder, places: dict[str, Place]) -> tuple[list[Copy], set[str]]:
    """The boxes of what was written, and the names of all tensors that were written anywhere."""
    seen: set[str] = set()
    writes: list[Write] = []
    known: set[Any] = set()
    for write in recorder.writes:
        seen |= write.names
        if prod(write.place.memory.shape) == 0:
            continue
        key = (write.names, write.source and _form(write.source), write.place.space,
               write.place.address, write.place.memory.strides, write.place.memory.shape)
        if key not in known:
            known.add(key)
            writes.append(write)
    pieces: dict[int, list[Piece]] = {}
    for i, write in enumerate(writes):
        if write.source is None:
            continue
        memory = write.place.memory
        try:
            pieces[i] = pair(write.source, 0, memory.strides or dense_strides(memory.shape))
        except TooManyPieces:
            recorder.fall_back(write.names, "it is copied in too many pieces")
    for one, other in _collisions(writes, places):
        # Which of them is to stay, the loader's own order says.
        both = one.names | other.names
        recorder.fall_back(both, f"the loader writes a part of '{one.param}' twice, from "
                                 f"{', '.join(sorted(both))}")
    copies = []
    for i, own in pieces.items():
        write = writes[i]
        memory = write.place.memory
        begin = write.place.address - places[write.param].address
        for piece in own:
            at = piece.offset * DTYPE_BYTES[memory.dtype]
            dense = _is_dense(piece.shape, piece.strides)
            view = Described(memory.ptr + at if memory.ptr else 0, piece.shape,
                             None if dense else piece.strides, memory.dtype, memory.device,
                             memory.ordinal, memory.owner)
            (source,) = write.names
            copies.append(Copy(source, piece.begin, write.param, begin + at, view))
    return copies, seen


def _mind_own_writes(recorder: Recorder, places: dict[str, Place]) -> None:
    """Has those fall back whose elements the loader changes by itself, now or when it runs again."""
    of_param: dict[str, list[tuple[int, Write]]] = {}
    for i, write in enumerate(recorder.writes):
        of_param.setdefault(write.param, []).append((i, write))
    met = [(write, i < before) for own, before in recorder.own_writes
           for i, write in of_param.get(own.param, ()) if _meet(own, write, places)]
    for write, is_earlier in met:
        if is_earlier:
            recorder.fall_back(write.names, f"the loader changes '{write.param}' after it has "
                                            "copied this")
    if recorder.fallback:
        for write, _ in met:
            recorder.fall_back(write.names, f"the loader writes to '{write.param}' by itself, and "
                                            "has to run again for tensors that fall back")


def _form(source: Strided) -> Any:
    behind = source.base.copy_of
    return (source.offset, source.shape, source.strides, source.base.name,
            behind and _form(behind))


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    return all(n == 1 or stride == dense for n, stride, dense in
               zip(shape, strides, dense_strides(shape)))


def _collisions(writes: list[Write], places: dict[str, Place]) -> Iterator[tuple[Write, Write]]:
    """Pairs that write to one byte, or may."""
    ahead: dict[Any, list[Write]] = {}
    for write in sorted(writes, key=lambda one: one.place.address):
        own = ahead.setdefault(write.place.space, [])
        own[:] = [one for one in own if one.place.end > write.place.address]
        for one in own:
            if _meet(one, write, places):
                yield one, write
        own.append(write)


def _meet(one: Write, other: Write, places: dict[str, Place]) -> bool:
    """False if their elements are surely apart, as boxes of the parameter."""
    param = places[one.param]
    if one.param != other.param or param.memory.strides is not None:
        return True
    try:
        boxes = [_boxes_in(write.place, param) for write in (one, other)]
    except TooManyPieces:
        return True
    return any(a.overlaps(b) for a in boxes[0] for b in boxes[1])


def _boxes_in(place: Place, param: Place) -> list[Box]:
    memory = place.memory
    strides = memory.strides or dense_strides(memory.shape)
    offset = (place.address - param.address) // DTYPE_BYTES[memory.dtype]
    if memory.dtype != param.memory.dtype:
        raise TooManyPieces
    view = Strided(Base("", param.memory.shape), offset, memory.shape, strides)
    return [Box(piece.begin, piece.shape) for piece in pair(view, 0, (0,) * len(strides))]
