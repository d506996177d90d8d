"""What an engine's own loader does with each tensor, as boxes of it and places in parameters.

The loader runs with tensors that have no values and record how they are cut and copied. After that,
transfers write into the parameters directly. Tensors that it uses otherwise, it is given whole.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import Any

from . import _recording
from ._captured import Captured, Copy, Load, Spec, named
from ._dtypes import DTYPE_BYTES, dtype_name
from ._errors import InvalidSpec, Unsupported
from ._layouts import Tensor
from ._memory import Described, dense_strides
from ._recording import Place, Recorder, Write, meet, place_of
from ._strided import Piece, Strided, TooManyPieces, pair
from ._views import Uncapturable


def capture(load: Load, tensors: Any, params: Any, *, device: Any = "cpu") -> Captured:
    """Runs `load` once or more, and finds where it puts what.

    `load`: takes an iterator of (name, tensor), as an engine's load_weights. `tensors`: those that
    are to come, as a mapping of names to (shape, dtype) or to anything with both, or an iterable of
    (name, shape, dtype) or of Tensor. `params`: a module of PyTorch, or names with its parameters
    and buffers, as a mapping or as pairs; on meta, too, see `Captured.bind`. `device`: what the
    recording tensors say, and where whole tensors are received.

    Views are recorded (narrow, select, slices, view, t, permute, chunk and so on), copies into
    dense memory, and copy_ into parameters with its broadcast and cast. A tensor falls back where
    the loader calls anything else with it, or needs its values. It falls back, too, where it is
    copied into something else than a parameter, or onto what another tensor has written.
    What the loader writes without these tensors, it writes: zeros as padding, for instance.

    InvalidSpec: a parameter cannot be written to, or names are there twice. Errors of the loader
    are raised as they are, unless they come of what a recording does not have.
    """
    specs = _specs(tensors)
    if not hasattr(params, "named_parameters") and not isinstance(params, Mapping):
        params = dict(params)  # pairs, as named_parameters() gives them: once
    found = named(params)
    places = {name: place_of(value, name) for name, value in found.items()}
    uses_torch = any(hasattr(value, "untyped_storage") for value in found.values())
    own = _Params(found, places)
    recorder = _record(load, list(specs.values()), own, uses_torch, device)
    copies, seen = _copies(recorder, places)
    untold = {name: "the loader keeps it, or copies it nowhere"
              for name in recorder.touched - seen if name not in recorder.fallback}
    recorder.fallback.update(untold)
    _mind_kept(recorder)
    _mind_own_writes(recorder, places)
    if 0 < len(recorder.fallback) < len(specs):
        _mind_strictness(load, specs, recorder, own, uses_torch, device)
    fallback = {name: recorder.fallback[name] for name in specs if name in recorder.fallback}
    ignored = [name for name in specs if name not in seen and name not in fallback]
    written = recorder.places_written()
    return Captured(specs, [copy for copy in copies if copy.source not in fallback], fallback,
                    ignored, load, params, device, uses_torch,
                    _forms={name: place.memory for name, place in places.items()},
                    _fallen={name: written.get(name, frozenset()) for name in fallback
                             if name not in recorder.stopped},
                    _own=recorder.places_of_own())


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


class _Params:
    """The parameters as they were. A loader may put a recording tensor in place of one's memory."""

    def __init__(self, params: dict[str, Any], places: dict[str, Place]) -> None:
        self.places = places
        self._tensors = {name: (value, value.detach()) for name, value in params.items()
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

    def in_hand(self) -> frozenset[str]:
        """What the loader may be at: the latest tensor, or any, once it has taken all of them."""
        own = self._specs if self.given == len(self._specs) else self._specs[:self.given][-1:]
        return frozenset(spec.name for spec in own)

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
    fallen: list[Write] = []
    while True:
        recorder = Recorder(params.places)
        recorder.fallen_writes = fallen  # also of passes before, with tensors that are left out now
        make = _maker(recorder, uses_torch, device)
        found: dict[str, str] = {}
        replaced: list[str] = []
        rest = [spec for spec in specs if spec.name not in stopped]
        # After such a tensor the loader is called again with the others, to find all of them.
        while rest:
            feeder = _Feeder(rest, make, params, watched)
            try:
                with _watching(recorder, params.places, feeder, uses_torch):
                    load(feeder)
            except Uncapturable as error:
                names, reason = error.sources, error.reason
            except (RuntimeError, TypeError, NotImplementedError) as error:
                names, reason = frozenset(), _text_of(error)
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
            recorder.stopped = frozenset(stopped)
            return recorder
        # With nothing found, the next pass looks at each step which tensor it was.
        stopped.update(found)


def _watching(recorder: Recorder, places: dict[str, Place], feeder: _Feeder,
              uses_torch: bool) -> AbstractContextManager[Any]:
    """What a loader does to parameters of PyTorch by itself, told to `recorder`."""
    def read(tensor: Any) -> None:
        if not recorder.writes:
            return
        for own in recorder.meeting(tensor):
            names = frozenset().union(*(write.names
                                        for write in recorder.writes_to.get(own.param, ())
                                        if meet(own, write, places)))
            if names:
                # The memory has no values yet, and what the loader does with them nobody knows.
                names |= feeder.in_hand()
                reason = f"the loader reads '{own.param}' after a copy into it"
                recorder.fall_back(names, reason)  # also if the loader catches the error
                raise Uncapturable(names, reason)

    return _watched(recorder.wrote, read, uses_torch)


def _mind_kept(recorder: Recorder) -> None:
    """Has those fall back that the loader keeps, as attributes for instance."""
    if any(made() is not None for made in recorder.made):
        gc.collect()  # it may only have been in a cycle
    for made in recorder.made:
        if (tensor := made()) is not None:
            recorder.fall_back(tensor._names, "the loader keeps it")


def _mind_strictness(load: Load, specs: dict[str, Spec], recorder: Recorder,
                     params: _Params, uses_torch: bool, device: Any) -> None:
    """Has all tensors fall back where some of them alone are not taken, or go to other places."""
    def alone(names: Iterable[str]) -> Recorder | Exception:
        """What the loader does with these, or why it does not go on with them."""
        apart = Recorder(params.places)
        make = _maker(apart, uses_torch, device)
        try:
            with _watched(apart.wrote, lambda tensor: None, uses_torch):
                load((name, make(specs[name])) for name in names)
        except Exception as error:
            return error
        finally:
            params.mend()
        return apart

    def refuse(error: Exception) -> None:
        recorder.fall_back(specs, "the loader does not take some of the tensors without the "
                                  f"others: {_text_of(error)}")

    groups = [[name for name in specs
               if name in recorder.fallback and name not in recorder.stopped]]
    before, own = recorder.places_written(), recorder.places_of_own()
    if recorder.stopped:
        done = alone([name for name in specs if name in recorder.fallback])
        # Recording tensors have no values; and an error may be why one of them falls back.
        if (isinstance(done, Exception) and not isinstance(done, Uncapturable)
                and _text_of(done) not in recorder.fallback.values()):
            return refuse(done)
        # The recording has left them out. Do the places of the others depend on who is there?
        rest = [name for name in specs if name in before and name not in recorder.fallback]
        if len(rest) == 1:
            recorder.fall_back(rest, "nothing shows that its place is the same with the others")
        groups += [rest[::2], rest[1::2]]
    for group in filter(None, groups):
        done = alone(group)
        if isinstance(done, Exception):
            return refuse(done)
        now = done.places_written()
        moved = [name for name in group if now.get(name) != before.get(name)]
        if moved or not done.places_of_own() <= own:
            recorder.fall_back(specs, "the loader writes to other places without the others" + (
                f": of '{moved[0]}'" if moved else ""))
            return


def _watched(wrote: Callable[[Any], None], read: Callable[[Any], None],
             uses_torch: bool) -> AbstractContextManager[Any]:
    """Tells what a loader does to parameters of PyTorch by itself."""
    if not uses_torch:
        return nullcontext()
    from . import _recording_torch
    return _recording_torch.Watching(wrote, read)


def _text_of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


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
    for write in (*recorder.writes, *recorder.fallen_writes):
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
    """Those fall back whose elements the loader changes by itself, now or when it runs again."""
    met = [(write, i < before) for own, before in recorder.own_writes
           for i, write in enumerate(recorder.writes_to.get(own.param, ()))
           if meet(own, write, places)]
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
            if meet(one, write, places):
                yield one, write
        own.append(write)
