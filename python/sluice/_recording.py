"""Tensors without values that record how a loader copies them into parameters.

Those here need no PyTorch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import get_ident
from typing import Any

from ._dtypes import DTYPE_BYTES, FLOATS, dtype_name
from ._errors import InvalidSpec, Unsupported
from ._layouts import Box
from ._memory import Described, dense_strides, describe, span_bytes
from ._strided import Base, Strided, TooManyPieces, pair
from ._views import Misfit, Uncapturable, UnknownMethod, View


@dataclass(frozen=True)
class Place:
    """Memory of a parameter. `address` counts bytes within `space`, one for each device.

    A tensor on meta is a space of its own, and has `ptr` 0.
    """

    space: Any
    address: int
    memory: Described

    @cached_property
    def end(self) -> int:
        """The byte behind its last element."""
        memory = self.memory
        return self.address + span_bytes(memory.shape, memory.strides, memory.dtype)


def place_of(obj: Any, name: str | None = None) -> Place:
    """Where `obj` is, as a destination. InvalidSpec, Unsupported: as `describe`."""
    memory = describe(obj, writable=True, tensor=name, late=True)
    if memory.ptr or not hasattr(obj, "untyped_storage"):
        return Place((memory.device, memory.ordinal), memory.ptr, memory)
    storage = obj.untyped_storage()
    return Place(("meta", storage._cdata), obj.storage_offset() * DTYPE_BYTES[memory.dtype], memory)


@dataclass(frozen=True)
class Write:
    """A copy into a parameter. Without `source` its values are not those of one tensor.

    Without `names` the loader writes by itself. `what` is equal for what gives equal values.
    """

    names: frozenset[str]
    source: Strided | None
    param: str
    place: Place
    what: Any = None


#: The parameter of a write, bytes from its first element on, shape, strides and dtype.
Key = tuple[str, int, tuple[int, ...], "tuple[int, ...] | None", str]


class Recorder:
    """What one call of a loader has done."""

    def __init__(self, params: dict[str, Place]) -> None:
        self.writes: list[Write] = []
        self.writes_to: dict[str, list[Write]] = {}  # the same by parameter
        #: Where each operation has written to parameters, by all names that the memory has.
        self.steps: list[frozenset[Key]] = []
        #: What it has looked at of parameters, other than to overwrite it.
        self.reads: dict[str, list[Write]] = {}
        #: Recording tensors, each by a function that returns it, or None once it is gone.
        self.made: list[Callable[[], Any]] = []
        self.fallback: dict[str, str] = {}
        #: Why all tensors fall back if one does: the recording does not tell what the loader does.
        self.unsure: str | None = None
        self.touched: set[str] = set()
        self.thread = get_ident()
        self._params = params
        # By space, ascending: begin, end, the largest end up to here, name.
        self._spaces: dict[Any, list[tuple[int, int, int, str]]] = {}
        for name, place in sorted(params.items(), key=lambda item: item[1].address):
            places = self._spaces.setdefault(place.space, [])
            reach = max(place.end, places[-1][2] if places else 0)
            places.append((place.address, place.end, reach, name))

    def fall_back(self, names: Iterable[str], reason: str) -> None:
        """These tensors are to be received whole."""
        for name in names:
            self.fallback.setdefault(name, reason)

    def give_up(self, names: Iterable[str], reason: str) -> None:
        """The same, where what the loader does then is not known: all others fall back, too."""
        self.fall_back(names, reason)
        named = ", ".join(f"'{name}'" for name in sorted(names))
        self.unsure = self.unsure or (f"all fall back with {named}: {reason}" if named else reason)

    def copy(self, names: frozenset[str], source: Strided | None, dtype: str, target: Any,
             what: Any = None) -> None:
        """target.copy_(source)."""
        self.touched |= names
        try:
            place = place_of(target)
        except (InvalidSpec, NotImplementedError) as error:
            self.give_up(names, f"it is copied into something else than a parameter: {error}")
            return
        if 0 in place.memory.shape:
            self.writes.append(Write(names, None, "", place))
            return
        param = self._param_at(place)
        if param is None:
            self.give_up(names, "it is copied into a tensor that is no parameter")
            return
        if source is not None:
            shape = place.memory.shape
            source = broadcast(source, shape)
            if source is None:
                reason = f"it is copied into another shape, {list(shape)}"
                self.give_up(names, reason)  # also if the loader catches the error
                raise Misfit(names, reason)
            to = place.memory.dtype
            if dtype != to and not (dtype in FLOATS and to in FLOATS):
                self.fall_back(names, f"there is no cast from {dtype} to {to}")
        self._add([Write(names, source, param, place, what)])

    def wrote(self, target: Any, what: Any) -> None:
        """The loader has written to `target` by itself."""
        self._add([replace(own, what=what) for own in self.meeting(target)])

    def _add(self, writes: list[Write]) -> None:
        for write in writes:
            self.writes.append(write)
            self.writes_to.setdefault(write.param, []).append(write)
        if writes:
            self.steps.append(self.keys(writes[0].place))

    def keys(self, place: Place) -> frozenset[Key]:
        """What parameters call this memory."""
        return frozenset(self.key(Write(frozenset(), None, param, place))
                         for param in self.params_meeting(place))

    def key(self, write: Write) -> Key:
        """Where it goes, whatever memory the parameter has."""
        memory = write.place.memory
        begin = write.place.address - self._params[write.param].address
        return write.param, begin, memory.shape, memory.strides, memory.dtype

    def meeting(self, memory: Any) -> list[Write]:
        """A write of all of a tensor, into each parameter that shares memory with it."""
        try:
            place = place_of(memory)
        except (InvalidSpec, Unsupported, RuntimeError):
            return []  # no parameter has such memory
        if 0 in place.memory.shape:
            return []
        return [Write(frozenset(), None, param, place) for param in self.params_meeting(place)]

    def meet(self, one: Write, other: Write) -> bool:
        """False if their elements are surely apart, as boxes of the parameter."""
        if one.place.space == other.place.space and (
                one.place.end <= other.place.address or other.place.end <= one.place.address):
            return False
        param = self._params[one.param]
        if one.param != other.param or param.memory.strides is not None:
            return True
        try:
            boxes = [_boxes_in(write.place, param) for write in (one, other)]
        except TooManyPieces:
            return True
        return any(a.overlaps(b) for a in boxes[0] for b in boxes[1])

    def params_meeting(self, place: Place) -> list[str]:
        """Those that have a byte between the first and the last one of `place`."""
        places = self._spaces.get(place.space, [])
        i = bisect_left(places, place.end, key=lambda one: one[0]) - 1
        found = []
        while i >= 0 and places[i][2] > place.address:
            if places[i][1] > place.address:
                found.append(places[i][3])
            i -= 1
        return found

    def _param_at(self, place: Place) -> str | None:
        places = self._spaces.get(place.space, [])
        i = bisect_right(places, place.address, key=lambda one: one[0]) - 1
        while i >= 0 and places[i][2] > place.address:
            begin, end, _, name = places[i]
            if begin <= place.address and place.end <= end:
                return name
            i -= 1
        return None


def broadcast(source: Strided, shape: Sequence[int]) -> Strided | None:
    """The view repeated to `shape`, or None."""
    missing = len(shape) - len(source.shape)
    own, strides = source.shape, source.strides
    if missing < 0:  # copy_ takes leading dimensions of one element away
        if any(n != 1 for n in own[:-missing]):
            return None
        own, strides, missing = own[-missing:], strides[-missing:], 0
    new = [0] * missing
    for n, stride, wanted in zip(own, strides, shape[missing:]):
        if n != wanted and n != 1:
            return None
        new.append(stride if n == wanted else 0)
    return Strided(source.base, source.offset, tuple(shape), tuple(new))


class RecordingTensor(View):
    """Stands for a tensor that is to come. It has no values."""

    def __init__(self, base: Base, dtype: Any, recorder: Recorder, shape: Sequence[int],
                 strides: Sequence[int], offset: int) -> None:
        super().__init__(tuple(shape), tuple(strides), offset)
        self.dtype = dtype
        self._base = base
        self._recorder = recorder

    @classmethod
    def of(cls, name: str, shape: Sequence[int], dtype: Any, recorder: Recorder) -> RecordingTensor:
        """The whole tensor."""
        return cls(Base(name, tuple(shape)), dtype, recorder, shape, dense_strides(shape), 0)

    @property
    def strided(self) -> Strided:
        return Strided(self._base, self._offset, self.shape, self._strides)

    def _view(self, shape: Sequence[int], strides: Sequence[int], offset: int) -> RecordingTensor:
        self._recorder.touched.add(self._base.name)
        return RecordingTensor(self._base, self.dtype, self._recorder, shape, strides, offset)

    def _dense_copy(self) -> RecordingTensor:
        base = Base(self._base.name, self.shape, self.strided)
        return RecordingTensor(base, self.dtype, self._recorder, self.shape,
                               dense_strides(self.shape), 0)

    def _cannot(self, what: str) -> Uncapturable:
        reason = f"the loader needs {what} of it"
        self._recorder.give_up((self._base.name,), reason)  # also if the loader catches the error
        return Uncapturable((self._base.name,), reason)

    def to(self, *args: Any, **kwargs: Any) -> RecordingTensor:
        wanted = kwargs.get("dtype", args[0] if args else None)
        if len(args) > 1 or set(kwargs) - {"dtype"} or wanted is None or (
                dtype_name(wanted) != dtype_name(self.dtype)):
            raise self._cannot("to()")
        return self

    def __getattr__(self, name: str) -> Any:
        raise UnknownMethod((self._base.name,), f"the loader needs {name} of it")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise self._cannot("the values")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        # numpy.copyto(array, tensor) is NumPy's copy_.
        if function.__name__ == "copyto" and len(args) == 2 and not kwargs and args[1] is self:
            self._recorder.copy(frozenset((self._base.name,)), self.strided,
                                dtype_name(self.dtype), args[0])
            return None
        raise self._cannot(f"numpy.{function.__name__}")

    def _refused(self, *args: Any, **kwargs: Any) -> Any:
        raise self._cannot("the values")

    __bool__ = __float__ = __int__ = __index__ = _refused
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _refused
    __rtruediv__ = __matmul__ = __rmatmul__ = __neg__ = __pow__ = __setitem__ = _refused

    def __repr__(self) -> str:
        return f"RecordingTensor('{self._base.name}', {list(self.shape)}, {self.dtype})"


class Destination(View):
    """Memory with the methods of a parameter that loaders use, where there is no PyTorch.

    `obj`: an array, or what else has memory that can be written to.
    """

    def __init__(self, obj: Any, memory: Described | None = None) -> None:
        self._memory = memory or describe(obj, writable=True)
        self._obj = obj
        self.dtype = getattr(obj, "dtype", self._memory.dtype)
        strides = self._memory.strides or dense_strides(self._memory.shape)
        super().__init__(self._memory.shape, strides, 0)

    def _view(self, shape: Sequence[int], strides: Sequence[int], offset: int) -> Destination:
        old = self._memory
        at = old.ptr + (offset - self._offset) * DTYPE_BYTES[old.dtype]
        shape, strides = tuple(shape), tuple(strides)
        dense = strides == dense_strides(shape)
        made = Destination(self._obj, Described(at, shape, None if dense else strides, old.dtype,
                                                old.device, old.ordinal, old.owner))
        made._offset = offset
        return made

    def copy_(self, source: RecordingTensor) -> Destination:
        """Records that `source` is copied here."""
        source._recorder.copy(frozenset((source._base.name,)), source.strided,
                              dtype_name(source.dtype), self._memory)
        return self

    def __setitem__(self, key: Any, source: RecordingTensor) -> None:
        self[key].copy_(source)


def _boxes_in(place: Place, param: Place) -> list[Box]:
    memory = place.memory
    strides = memory.strides or dense_strides(memory.shape)
    offset = (place.address - param.address) // DTYPE_BYTES[memory.dtype]
    if memory.dtype != param.memory.dtype:
        raise TooManyPieces
    view = Strided(Base("", param.memory.shape), offset, memory.shape, strides)
    return [Box(piece.begin, piece.shape) for piece in pair(view, 0, (0,) * len(strides))]
