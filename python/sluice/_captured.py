"""What `capture` has found: boxes of tensors, and where their elements lie in parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from . import _recording
from ._dtypes import DTYPE_BYTES, dtype_name
from ._errors import InvalidSpec
from ._layouts import Box, Boxes, Tensor
from ._memory import Described, describe
from ._prints import unless_same
from ._recording import Key, Place, Recorder
from ._tables import table

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
    _copies_of: dict[str, list[Copy]] = field(default_factory=dict)  # by destination
    _forms: dict[str, Described] = field(default_factory=dict)  # of the parameters
    #: Where the loader writes, step by step, when it runs with those that fall back alone.
    _expected: list[frozenset[Key]] = field(default_factory=list)

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

    def watch(self) -> Callable[[], InvalidSpec | None]:
        """Says why `targets` are not to be had any more, or None."""
        def moved() -> InvalidSpec | None:
            try:
                self.targets  # noqa: B018 - it looks
            except InvalidSpec as error:
                return error.with_traceback(None)
            return None

        return unless_same(self._params, lambda: list(self.current().values()), moved)

    def current(self) -> dict[str, Any]:
        """The parameters that are written to, as they are now."""
        return self._written(self._params)

    def _written(self, params: Any) -> dict[str, Any]:
        found = named(params)
        names = {copy.param: None for copy in self.copies}
        names.update((name, None) for step in self._expected for name, *_ in step)
        for name in names:
            if name not in found:
                raise InvalidSpec(f"there is no parameter '{name}'", tensor=name)
        return {name: found[name] for name in names}

    def _made(self) -> list[Tensor]:
        if self._targets is None:
            self._targets = [*self._boxed(), *self._whole()]
        return self._targets

    @property
    def renames(self) -> dict[str, str]:
        """Of a destination: its source. A source that goes to places twice has several."""
        self._made()
        return dict(self._renames)

    def params_of(self, target: str) -> list[str]:
        """The parameters that one of `targets` is written to; none of a tensor that falls back.

        InvalidSpec: there is no such destination.
        """
        return list(dict.fromkeys(copy.param for copy in self._parts(target)))

    def memory_of(self, target: str, params: Any = None) -> Any:
        """What `Run.supply` takes for one of `targets`: its boxes in the parameters as they are.

        `params`: where these are, in place of what was captured. Others than those of `params_of`
        may be on meta. Of a tensor that falls back, the memory that `finish` reads.
        InvalidSpec: a parameter has no memory, or another shape, dtype or strides.
        """
        copies = self._parts(target)
        if not copies:
            shape = self.specs[target].shape or (1,)
            return [_of_shape(self._buffers[target], shape)] if prod(shape) else []
        found = named(self._params if params is None else params)
        bases: dict[str, Described] = {}
        for name in self.params_of(target):
            if name not in found:
                raise InvalidSpec(f"there is no parameter '{name}'", tensor=name)
            bases[name] = _same_form(self._forms[name], found[name], name)
        return [_moved(copy, bases[copy.param]) for copy in copies]

    def _parts(self, target: str) -> list[Copy]:
        self._made()
        copies = self._copies_of.get(target)
        if copies is None and target not in self._buffers:
            raise InvalidSpec(f"there is no destination '{target}'", tensor=target)
        return copies or []

    def bind(self, params: Any, load: Load | None = None) -> Captured:
        """The same for other memory of the same parameters, as after a capture on meta.

        `load`: the loader of whoever has that memory; None: the one that was captured. It gets the
        tensors that fall back, so it has to write into `params`.
        InvalidSpec: a parameter is missing, or has another shape, dtype or strides.
        """
        places = {name: _same_form(self._forms[name], param, name)
                  for name, param in self._written(params).items()}
        copies = [replace(copy, memory=_moved(copy, places[copy.param])) for copy in self.copies]
        return replace(self, copies=copies, _load=load or self._load, _params=params,
                       _targets=None, _renames={}, _copies_of={}, _buffers={},
                       _forms={**self._forms, **places})

    def finish(self) -> None:
        """Gives the loader what has been received whole. A transfer calls it after each run.

        InvalidSpec: the loader writes elsewhere than when it was captured.
        """
        if not self.fallback:
            return
        self._made()
        # The loader may give a tensor another shape or memory, and the next run needs these.
        whole = [(name, buffer.detach() if hasattr(buffer, "detach") else buffer)
                 for name in self.specs if (buffer := self._buffers.get(name)) is not None]
        if not self.copies:  # the loader does all, as it does alone
            self._load(iter(whole))
            return
        from . import _recording_torch
        recorder = Recorder({name: Place((form.device, form.ordinal), form.ptr, form)
                             for name, form in self._forms.items()})
        given = ""

        def pairs() -> Iterator[tuple[str, Any]]:
            nonlocal given
            for given, tensor in whole:
                yield given, tensor

        def check(target: Any, what: Any) -> None:
            done = len(recorder.steps)
            recorder.wrote(target, what)
            if recorder.steps[done:] != self._expected[done:len(recorder.steps)]:
                raise InvalidSpec(f"the loader writes to '{recorder.writes[-1].param}' elsewhere "
                                  f"than when it was captured, after it has taken '{given}': it "
                                  "cannot be captured", tensor=given or None)

        with _recording_torch.Watching(check, lambda tensor: None):
            self._load(pairs())
        if len(recorder.steps) < len(self._expected):
            raise InvalidSpec(f"the loader writes {len(recorder.steps)} times for the tensors that "
                              f"fall back, and when it was captured {len(self._expected)} times: "
                              "it cannot be captured")

    def _boxed(self) -> Iterator[Tensor]:
        # Boxes of one destination do not overlap, and have one dtype.
        layers: dict[str, list[tuple[str, list[Box], list[Copy]]]] = {}
        for copy in self.copies:
            box = Box(copy.begin, copy.memory.shape, copy.memory)
            own = layers.setdefault(copy.source, [])
            for dtype, boxes, copies in own:
                if dtype == copy.memory.dtype and not any(box.overlaps(one) for one in boxes):
                    boxes.append(box)
                    copies.append(copy)
                    break
            else:
                own.append((copy.memory.dtype, [box], [copy]))
        for source, own in layers.items():
            shape = self.specs[source].shape or (1,)
            for i, (dtype, boxes, copies) in enumerate(own):
                name = source
                while i > 0 and (name == source or name in self.specs):
                    name = f"{source}#{i + 1}" if name == source else f"{name}'"
                if name != source:
                    self._renames[name] = source
                self._copies_of[name] = copies
                yield Tensor(name, shape, dtype, Boxes(boxes))

    def _whole(self) -> Iterator[Tensor]:
        for name in self.fallback:
            spec = self.specs[name]
            dtype = dtype_name(spec.dtype, tensor=name)
            if name not in self._buffers:
                self._buffers[name] = self._buffer(name, spec.shape, dtype)
            memory = self._buffers[name]
            if not prod(spec.shape):
                yield Tensor(name, spec.shape, dtype, None, memory)
                continue
            # A box of all, as other ranks may have boxes of the same tensor.
            shape = spec.shape or (1,)
            box = Box((0,) * len(shape), shape, _of_shape(memory, shape))
            yield Tensor(name, shape, dtype, Boxes([box]))

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

    def _repr_html_(self) -> str:
        boxes = Counter(copy.source for copy in self.copies)
        ways = {**{name: f"{count} boxes" for name, count in boxes.items()},
                **{name: f"falls back: {why}" for name, why in self.fallback.items()},
                **dict.fromkeys(self.ignored, "ignored")}
        return table(((name, list(spec.shape), spec.dtype, ways.get(name, ""))
                      for name, spec in self.specs.items()),
                     ("tensor", "shape", "dtype", "way"))


def named(params: Any) -> dict[str, Any]:
    """Parameters and buffers by name, of what `capture` takes."""
    if hasattr(params, "named_parameters"):
        # Those that share memory under two names are one place.
        return {**dict(params.named_parameters()), **dict(params.named_buffers())}
    return {name: value._memory if isinstance(value, _recording.Destination) else value
            for name, value in dict(params).items()}


def _of_shape(memory: Any, shape: tuple[int, ...]) -> Any:
    """The same memory; a scalar has shape (1,)."""
    if tuple(memory.shape) == shape:
        return memory
    return replace(memory, shape=shape) if isinstance(memory, Described) else memory.view(shape)


def _moved(copy: Copy, param: Described) -> Described:
    """The memory of a copy into a parameter that is there now."""
    return replace(copy.memory, ptr=param.ptr + copy.offset, device=param.device,
                   ordinal=param.ordinal, owner=param.owner)


def _same_form(form: Described, param: Any, name: str, late: bool = False) -> Described:
    found = describe(param, writable=True, tensor=name, late=late)
    for what in ("shape", "dtype", "strides"):
        if getattr(found, what) != getattr(form, what):
            raise InvalidSpec(f"parameter '{name}' was captured with {what} {getattr(form, what)}, "
                              f"and has {getattr(found, what)}", tensor=name)
    return found
