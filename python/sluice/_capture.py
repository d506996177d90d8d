"""What an engine's own loader does with each tensor, as boxes of it and places in parameters.

The loader runs with tensors that have no values and record how they are cut and copied. After that,
transfers write into the parameters directly. Tensors that it uses otherwise, it is given whole.
"""

from __future__ import annotations

import gc
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from . import _recording
from ._captured import Captured, Copy, Load, Spec, named
from ._dtypes import DTYPE_BYTES, dtype_name
from ._errors import InvalidSpec
from ._layouts import Tensor
from ._memory import Described, dense_strides
from ._recording import Key, Place, Recorder, Write, place_of
from ._strided import Piece, Strided, TooManyPieces, pair
from ._views import Misfit, Uncapturable


def capture(load: Load, tensors: Any, params: Any, *, device: Any = "cpu") -> Captured:
    """Runs `load` once or more, and finds where it puts what.

    `load`: takes an iterator of (name, tensor), as an engine's load_weights. `tensors`: those that
    are to come, as a mapping of names to (shape, dtype) or to anything with both, or an iterable of
    (name, shape, dtype) or of Tensor. `params`: a module of PyTorch, or names with its parameters
    and buffers, as a mapping or as pairs; on meta, too, see `Captured.bind`. `device`: what the
    recording tensors say, and where whole tensors are received.

    Views are recorded (narrow, select, slices, view, t, permute, chunk and so on), copies into
    dense memory, casts of floats, and copy_ into parameters with its broadcast and cast. A tensor
    falls back where the loader computes with it, or writes twice where it belongs. The loader then
    runs with those alone, and all tensors fall back where that might change what it writes. All
    do, too, where the loader needs values, or where there is no PyTorch to see what it writes.
    What the loader writes without these tensors, it writes: zeros as padding, for instance.

    InvalidSpec: a parameter cannot be written to, names are there twice, or a tensor does not fit
    where the loader copies it. Errors of the loader are raised as they are, unless they come of
    what a recording does not have.
    """
    specs = _specs(tensors)
    if not hasattr(params, "named_parameters") and not isinstance(params, Mapping):
        params = dict(params)  # pairs, as named_parameters() gives them: once
    found = named(params)
    places = {name: place_of(value, name) for name, value in found.items()}
    uses_torch = any(hasattr(value, "untyped_storage") for value in found.values())
    loader = _Loader(load, specs, found, places, uses_torch, device)
    recorder = loader.record()
    copies, seen = _copies(recorder, places)
    recorder.fall_back(recorder.touched - seen, "the loader keeps it, or copies it nowhere")
    _mind_own_writes(recorder)
    expected: list[frozenset[Key]] = []
    if recorder.fallback or recorder.unsure or recorder.reads:
        reason = recorder.unsure or _mind_others(loader, recorder, expected)
        if reason:
            recorder.fall_back(specs, reason)
            loader.undo()
    fallback = {name: recorder.fallback[name] for name in specs if name in recorder.fallback}
    ignored = [name for name in specs if name not in seen and name not in fallback]
    return Captured(specs, [copy for copy in copies if copy.source not in fallback], fallback,
                    ignored, load, params, device, uses_torch,
                    _forms={name: place.memory for name, place in places.items()},
                    _expected=expected)


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

    def mend(self) -> list[str]:
        """Those that were replaced. They get their memory back."""
        replaced = []
        for name, (value, before) in self._tensors.items():
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


class _Loader:
    """Runs the loader with recording tensors."""

    def __init__(self, load: Load, specs: dict[str, Spec], params: dict[str, Any],
                 places: dict[str, Place], uses_torch: bool, device: Any) -> None:
        self._load = load
        self._specs = specs
        self._params = _Params(params, places)
        self.uses_torch = uses_torch
        self._device = device
        #: What of parameters the loader has changed after a look at it, and what was there.
        self._undo: list[tuple[Any, Any]] = []

    def record(self, names: Container[str] | None = None) -> Recorder:
        """What it does with all tensors; or what it would do with these, to other places maybe."""
        recorder = Recorder(self._params.places)
        given = ""

        def pairs() -> Iterator[tuple[str, Any]]:
            nonlocal given
            for given, spec in self._specs.items():
                if names is None or given in names:
                    yield given, self._make(spec, recorder)

        try:
            with self._watching(recorder, names is not None):
                self._load(pairs())
        except Misfit as error:
            name = min(error.sources, default=given)
            raise InvalidSpec(f"tensor '{name}' of shape {list(self._specs[name].shape)}: "
                              f"{error.reason}, so the loader does not take it",
                              tensor=name) from None
        except Uncapturable as error:
            recorder.give_up(error.sources or (given,), error.reason)
        except (RuntimeError, TypeError, NotImplementedError) as error:
            if not given:
                raise
            recorder.give_up((given,), _text_of(error))
        finally:
            replaced = self._params.mend()
        if replaced:
            recorder.give_up((), f"the loader replaces the memory of '{replaced[0]}'")
        if any(made() is not None for made in recorder.made):
            gc.collect()  # it may only have been in a cycle
        for made in recorder.made:
            if (tensor := made()) is not None:
                recorder.give_up(tensor._names, "the loader keeps it")
        return recorder

    def undo(self) -> None:
        """Gives parameters back what the loader is to find there when it runs again."""
        if self._undo:
            from . import _recording_torch
            _recording_torch.put_back(self._undo)

    def _make(self, spec: Spec, recorder: Recorder) -> Any:
        if not self.uses_torch:
            return _recording.RecordingTensor.of(spec.name, spec.shape, spec.dtype, recorder)
        from . import _recording_torch
        return _recording_torch.RecordingTensor.of(spec.name, spec.shape, spec.dtype, recorder,
                                                   self._device)

    def _watching(self, recorder: Recorder, dry: bool) -> AbstractContextManager[Any]:
        if not self.uses_torch:
            return nullcontext()
        from . import _recording_torch
        return _recording_torch.watching(recorder, self._undo, dry)


def _mind_others(loader: _Loader, recorder: Recorder,
                 expected: list[frozenset[Key]]) -> str | None:
    """Why the loader may not run with those that fall back alone, or None.

    A run with them alone has to do to memory what the whole run has done to the same memory, step
    by step. So neither captured tensors nor how many come may play a part.
    `expected`: where it then writes, in order.
    """
    if not loader.uses_torch:
        return "another tensor falls back, and nothing shows what the loader does without PyTorch"
    if recorder.reads:
        return f"the loader looks at '{min(recorder.reads)}', which a later run may find changed"
    try:
        alone = loader.record(recorder.fallback)
    except Exception as error:
        return f"the loader does not take some of the tensors without the others: {_text_of(error)}"
    if alone.unsure or alone.reads:
        return f"the loader does something else without the others: {alone.unsure or 'it reads'}"
    whole = [write for write in recorder.writes if write.names & recorder.fallback.keys()
             or any(recorder.meet(write, other)
                    for param in recorder.params_meeting(write.place)
                    for other in alone.writes_to.get(param, ()))]
    steps, others = ([(write.names, write.what, recorder.key(write)) for write in writes
                      if write.param] for writes in (whole, alone.writes))
    for step, other in zip(steps, others):
        if step != other:
            return f"the loader does something else to '{step[2][0]}' without the others"
    if len(steps) != len(others):
        return "the loader does not do the same without the others"
    expected += alone.steps
    return None


def _text_of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _copies(recorder: Recorder, places: dict[str, Place]) -> tuple[list[Copy], set[str]]:
    """The boxes of what was written, and the names of all tensors that were written anywhere."""
    seen: set[str] = set()
    writes: list[Write] = []
    known: set[Any] = set()
    for write in recorder.writes:
        seen |= write.names
        if not write.names or not write.param:
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
    for one, other in _collisions(writes, recorder):
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


def _mind_own_writes(recorder: Recorder) -> None:
    """Those fall back whose elements the loader changes by itself after the copy."""
    for writes in recorder.writes_to.values():
        for i, own in enumerate(writes):
            for write in writes[:i] if not own.names else ():
                if write.names and recorder.meet(own, write):
                    recorder.fall_back(write.names, f"the loader changes '{write.param}' after it "
                                                    "has copied this")


def _form(source: Strided) -> Any:
    behind = source.base.copy_of
    return (source.offset, source.shape, source.strides, source.base.name,
            behind and _form(behind))


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    return all(n == 1 or stride == dense for n, stride, dense in
               zip(shape, strides, dense_strides(shape)))


def _collisions(writes: list[Write], recorder: Recorder) -> Iterator[tuple[Write, Write]]:
    """Pairs that write to one byte, or may."""
    ahead: dict[Any, list[Write]] = {}
    for write in sorted(writes, key=lambda one: one.place.address):
        own = ahead.setdefault(write.place.space, [])
        own[:] = [one for one in own if one.place.end > write.place.address]
        for one in own:
            if recorder.meet(one, write):
                yield one, write
        own.append(write)
