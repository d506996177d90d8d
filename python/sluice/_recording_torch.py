"""Recording tensors that are tensors of PyTorch. Imported only where PyTorch is there."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import get_ident
from typing import Any
from weakref import ref

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ._dtypes import FLOATS, TORCH_NAMES, dtype_name
from ._errors import InvalidSpec, Unsupported
from ._recording import Recorder
from ._strided import Base, Strided
from ._views import Uncapturable

_aten = torch.ops.aten

# The views that loaders make most, for which the general way is slow.
_VIEWS = frozenset((
    _aten.slice.Tensor, _aten.select.int, _aten.view.default, _aten.detach.default,
    _aten.t.default, _aten.transpose.int, _aten.permute.default, _aten.unsqueeze.default,
    _aten.squeeze.dim, _aten.alias.default,
))


_COPY = _aten.copy_.default
_EMPTY = _aten.empty.memory_format

# Casts of floats that change no value.
_EXACT = {"f32": {"f64"}, "f16": {"f32", "f64"}, "bf16": {"f32", "f64"},
          "f8e4m3": {"f16", "bf16", "f32", "f64"}, "f8e5m2": {"f16", "bf16", "f32", "f64"}}

# What only overwrites.
_OVERWRITES = frozenset((_aten.copy_, _aten.fill_, _aten.zero_))


def _skips(code: Any) -> bool:
    """Has Dynamo not compile a function, without an import of it. False: this PyTorch cannot."""
    frames = torch._C._dynamo.eval_frame
    try:
        if hasattr(frames, "skip_code"):  # older ones
            frames.skip_code(code)
        else:
            action = frames._FrameAction
            frames.set_code_exec_strategy(
                code, frames._FrameExecStrategy(action.SKIP, action.DEFAULT))
        return True
    except (AttributeError, TypeError):
        return False


class Watching(TorchDispatchMode):  # type: ignore[misc]
    """Tells of the memory that operations read and write, before they do.

    Of views, which do neither, it tells nothing; nor of recording tensors. It sees its own thread
    alone, and not what goes by NumPy. `wrote` gets a function, too, that tells what is written. If
    it returns True, what only overwrites is left out.
    """

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # PyTorch's way imports Dynamo, which takes seconds.
        return not _skips(cls.__torch_dispatch__.__code__)

    def __init__(self, wrote: Callable[[torch.Tensor, Callable[[], Any]], bool | None],
                 read: Callable[[torch.Tensor], None]) -> None:
        super().__init__()
        self._wrote = wrote
        self._read = read

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        own = self._untraced if "torch._dynamo" in sys.modules else self._dispatch
        return own(func, args, kwargs or {})

    def _dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func in _VIEWS and not kwargs:
            # For PyTorch to make that call takes an import of all its distributed tensors.
            if isinstance(args[0], RecordingTensor):
                return args[0]._viewed(func, args[1:])
            return func(*args)
        if func is _COPY and isinstance(args[1], RecordingTensor) and (
                type(args[0]).__torch_dispatch__ is torch.Tensor.__torch_dispatch__):
            return _copied_to(args[0], args[1])  # it tells
        if func is _EMPTY:
            return func(*args, **kwargs)  # touches no memory
        if not hasattr(func, "_schema"):
            return func(*args, **kwargs)
        known = False
        written: list[torch.Tensor] = []
        for tensor, alias in _tensors(func, args, kwargs):
            if isinstance(tensor, RecordingTensor):
                known = True
            elif alias is not None and alias.is_write:
                written.append(tensor)
            elif alias is None:
                self._read(tensor)
        for tensor in written:
            if func.overloadpacket not in _OVERWRITES:
                self._read(tensor)
            # Or the recording tensor has told.
            if not known and self._wrote(tensor, lambda: _what(func, args[1:], kwargs)) and (
                    func.overloadpacket in _OVERWRITES):
                return args[0]
        return func(*args, **kwargs)

    _untraced = torch._disable_dynamo(_dispatch)


class _Lent(TorchFunctionMode):  # type: ignore[misc]
    """Has all fall back where a loader takes a parameter's memory to where nobody watches."""

    _TAKING = frozenset((torch.Tensor.numpy, torch.Tensor.tolist, torch.Tensor.__array__,
                         torch.Tensor.__dlpack__))

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in self._TAKING and args and not isinstance(args[0], RecordingTensor):
            for own in self._recorder.meeting(args[0]):
                self._recorder.give_up((), f"the loader takes the memory of '{own.param}' by "
                                           f"{func.__name__}()")
        return func(*args, **(kwargs or {}))


@contextmanager
def watching(recorder: Recorder, undo: list[tuple[torch.Tensor, torch.Tensor]],
             dry: bool) -> Iterator[None]:
    """Tells `recorder` what a loader does to parameters by itself, and keeps in `undo` what that
    changes after a look at it. `dry`: parameters are not overwritten."""
    def mind_memory(tensor: torch.Tensor) -> None:
        # A parameter that has a recording tensor as its data is none to PyTorch, which would end.
        if type(tensor) in _PLAIN and tensor.layout == torch.strided and tensor.numel() and (
                tensor.device.type != "meta" and tensor.data_ptr() == 0):
            reason = "the loader replaces the memory of a parameter, and uses it"
            recorder.give_up((), reason)
            raise Uncapturable((), reason)

    def read(tensor: torch.Tensor) -> None:
        mind_memory(tensor)
        for own in recorder.meeting(tensor):
            recorder.reads.setdefault(own.param, []).append(own)
            names = frozenset().union(*(write.names
                                        for write in recorder.writes_to.get(own.param, ())
                                        if write.names and recorder.meet(own, write)))
            if names:
                # The memory has no values yet.
                reason = f"the loader reads '{own.param}' after a copy into it"
                recorder.give_up(names, reason)  # also if the loader catches the error
                raise Uncapturable(names, reason)

    def wrote(tensor: torch.Tensor, what: Callable[[], Any]) -> bool:
        mind_memory(tensor)
        if any(recorder.meet(own, one) for own in recorder.meeting(tensor)
               for one in recorder.reads.get(own.param, ())):
            undo.append((tensor.detach(), tensor.detach().clone()))
        done = len(recorder.steps)
        recorder.wrote(tensor, what())
        return dry and len(recorder.steps) > done

    with Watching(wrote, read), _Lent(recorder):
        yield


def put_back(undo: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """What there was before."""
    for tensor, before in reversed(undo):
        tensor.copy_(before)
    undo.clear()


_PLAIN = (torch.Tensor, torch.nn.Parameter)
_unknown = itertools.count()


def _what(func: Any, args: Any, kwargs: Any) -> str:
    """A text that is the same for operations that give the same."""
    text = repr((str(func), _text(list(args)), _text(sorted(kwargs.items()))))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _identity(one: RecordingTensor) -> Any:
    """Equal for tensors that have equal values and strides."""
    meta = one._meta
    return (one._value, meta.storage_offset(), tuple(meta.shape), meta.stride(), meta.dtype)


def _text(value: Any) -> Any:
    if isinstance(value, RecordingTensor):
        return _identity(value)
    if isinstance(value, (list, tuple)):
        return [_text(one) for one in value]
    if type(value) in _PLAIN and value.layout == torch.strided and (
            value.device.type != "meta"):
        dense = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
        count = dense.numel() * dense.element_size()
        data = (ctypes.c_char * count).from_address(dense.data_ptr()) if count else b""
        return [hashlib.blake2b(data).hexdigest(), tuple(value.shape), value.stride(),
                str(value.dtype)]
    if value is None or isinstance(value, (bool, int, float, complex, str, torch.dtype,
                                           torch.device, torch.layout, torch.memory_format)):
        return repr(value)
    return f"unknown {next(_unknown)}"  # equal to nothing


def _tensors(func: Any, args: Any, kwargs: Any) -> Iterator[tuple[torch.Tensor, Any]]:
    """Those that an operation gets, and how it shares their memory: None, or PyTorch's object."""
    for i, (name, alias) in enumerate(_arguments(func)):
        value = args[i] if i < len(args) else kwargs.get(name)
        for leaf in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(leaf, torch.Tensor):
                yield leaf, alias


@cache
def _arguments(func: Any) -> list[tuple[str, Any]]:
    return [(argument.name, argument.alias_info) for argument in func._schema.arguments]


class RecordingTensor(torch.Tensor):
    """Stands for a tensor that is to come. It has a shape, strides and a dtype, and no values.

    A tensor on meta beside it says what each view is. `_known` is None for what an operation other
    than a view or a copy has made: its sources fall back. `_value` is equal for storages that the
    same operations have filled. `_origin` is the dtype that the tensor comes with.
    """

    _meta: torch.Tensor
    _known: Base | None
    _value: str
    _origin: str
    _names: frozenset[str]
    _recorder: Recorder

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def _make(meta: torch.Tensor, known: Base | None, value: str, origin: str,
              names: frozenset[str], recorder: Recorder, device: Any) -> RecordingTensor:
        made = torch.Tensor._make_wrapper_subclass(
            RecordingTensor, meta.shape, strides=meta.stride(),
            storage_offset=meta.storage_offset(), dtype=meta.dtype, device=device,
            requires_grad=False)
        made._meta, made._known, made._names, made._recorder = meta, known, names, recorder
        made._value, made._origin = value, origin
        recorder.made.append(ref(made))
        return made

    @classmethod
    def of(cls, name: str, shape: Sequence[int], dtype: Any, recorder: Recorder,
           device: Any = "cpu") -> RecordingTensor:
        """The whole tensor, as if on `device`."""
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():  # nobody minds it
            meta = torch.empty(tuple(shape), dtype=torch_dtype(dtype), device="meta")
        return cls._make(meta, Base(name, tuple(shape)), f"tensor {name}", dtype_name(dtype),
                         frozenset((name,)), recorder, device)

    def _view(self, meta: torch.Tensor) -> RecordingTensor:
        return self._make(meta, self._known, self._value, self._origin, self._names,
                          self._recorder, self.device)

    def _viewed(self, func: Any, args: Any) -> RecordingTensor:
        self._recorder.touched |= self._names
        return self._view(func(self._meta, *args))

    @property
    def strided(self) -> Strided | None:
        if self._known is None:
            return None
        return Strided(self._known, self._meta.storage_offset(), tuple(self._meta.shape),
                       tuple(self._meta.stride()))

    @property
    def is_rounded(self) -> bool:
        """Whether a cast may have changed its values."""
        own = dtype_name(self.dtype)
        return own != self._origin and own not in _EXACT.get(self._origin, ())

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _VIEWS and not kwargs:
            return args[0]._viewed(func, args[1:])
        kwargs = kwargs or {}
        if func is _COPY and not isinstance(args[0], RecordingTensor):
            return _copied_to(args[0], args[1])
        leaves = pytree.tree_leaves((args, kwargs))
        own = [leaf for leaf in leaves if isinstance(leaf, RecordingTensor)]
        recorder = own[0]._recorder
        names = frozenset().union(*(one._names for one in own))
        recorder.touched |= names
        if recorder.thread != get_ident():
            recorder.give_up(names, "the loader uses it in another thread")
        if not hasattr(func, "_schema"):
            reason = f"the loader calls {func}"
            recorder.give_up(names, reason)
            raise Uncapturable(names, reason)
        packet = func.overloadpacket
        if packet in (_aten.clone, _aten._to_copy) and own[0].strided is not None:
            made = _copied(func, own[0], kwargs)
            if made is not None:
                return made
        if func._schema.is_mutable:
            return _mutated(func, args, own, names)
        return _made(func, args, kwargs, own, names)

    def _values(self, *args: Any, **kwargs: Any) -> Any:
        reason = "the loader needs its values"
        self._recorder.give_up(self._names, reason)  # also if the loader catches the error
        raise Uncapturable(self._names, reason)

    def _replace(self, value: Any) -> None:
        reason = "the loader replaces its memory"
        self._recorder.give_up(self._names, reason)  # also if the loader catches the error
        raise Uncapturable(self._names, reason)

    data = property(lambda self: torch._C.TensorBase.data.__get__(self), _replace)
    item = tolist = numpy = data_ptr = __array__ = __bool__ = _values  # type: ignore[assignment]
    __dlpack__ = _values  # type: ignore[assignment]

    def __repr__(self) -> str:  # type: ignore[override]
        return f"RecordingTensor({sorted(self._names)}, {list(self.shape)}, {self.dtype})"


def _copied_to(target: torch.Tensor, one: RecordingTensor) -> torch.Tensor:
    """A copy into what is no recording tensor. Most operations of a loader are such."""
    recorder = one._recorder
    recorder.touched |= one._names
    if recorder.thread != get_ident():
        recorder.give_up(one._names, "the loader uses it in another thread")
    source = one.strided
    if source is not None and one.is_rounded and target.dtype != one.dtype:
        source = None
        recorder.fall_back(one._names, f"the loader rounds it to {dtype_name(one.dtype)} first")
    recorder.copy(one._names, source, one._origin, target, ("copy_", *_identity(one)))
    return target


def _copied(func: Any, one: RecordingTensor, kwargs: Any) -> RecordingTensor | None:
    """A copy with the same elements: a tensor of its own, of which there are views again."""
    if kwargs.get("dtype") not in (None, one.dtype) and (
            one.is_rounded or not {dtype_name(kwargs["dtype"]), one._origin} <= {*FLOATS}):
        return None
    known = one.strided
    assert known is not None
    # PyTorch may keep the order of strides. The copy is dense, its dimensions in that order.
    device = kwargs.get("device") or one.device
    meta = func(one._meta, **{**kwargs, "device": "meta"} if "device" in kwargs else kwargs)
    order = range(meta.ndim)
    if not meta.is_contiguous():
        order = sorted(order, key=lambda dim: (-meta.stride(dim), dim))
        if not meta.permute(order).is_contiguous():
            return None
    shape, strides = ([sizes[dim] for dim in order] for sizes in (known.shape, known.strides))
    behind = Strided(known.base, known.offset, tuple(shape), tuple(strides))
    base = Base(known.base.name, behind.shape, behind)
    return RecordingTensor._make(meta, base, _what(func, [one], kwargs), one._origin, one._names,
                                 one._recorder, device)


def _mutated(func: Any, args: Any, own: list[RecordingTensor], names: frozenset[str]) -> Any:
    reason = f"the loader calls {_title(func)}"
    own[0]._recorder.give_up(names, reason)
    first = args[0] if args else None
    if isinstance(first, RecordingTensor) and func._schema.name.endswith("_"):
        first._names = names
        first._known = None
        return first
    raise Uncapturable(names, reason)


def _made(func: Any, args: Any, kwargs: Any, own: list[RecordingTensor],
          names: frozenset[str]) -> Any:
    recorder = own[0]._recorder
    device = kwargs.get("device") or own[0].device
    by_storage = {one._meta.untyped_storage()._cdata: one for one in own}
    reason = f"the loader calls {_title(func)}"
    value = _what(func, args, kwargs)
    outputs = itertools.count()
    if torch.Tag.nondeterministic_seeded in func.tags:
        recorder.give_up(names, reason)

    def to_meta(leaf: Any) -> Any:
        if isinstance(leaf, RecordingTensor):
            return leaf._meta
        if isinstance(leaf, torch.Tensor):
            return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
        return leaf

    try:
        meta_args, meta_kwargs = pytree.tree_map(to_meta, (args, kwargs))
        if "device" in kwargs:
            meta_kwargs["device"] = "meta"
        result = func(*meta_args, **meta_kwargs)
    except (RuntimeError, NotImplementedError, TypeError) as error:
        if _is_view(func):
            raise  # what the loader asks for does not exist: its own error
        recorder.give_up(names, reason)
        raise Uncapturable(names, reason) from error

    def wrap(leaf: Any) -> Any:
        if leaf is None:
            return None
        if not isinstance(leaf, torch.Tensor) or leaf.device.type != "meta":
            recorder.give_up(names, reason)
            raise Uncapturable(names, reason)
        behind = by_storage.get(leaf.untyped_storage()._cdata)
        if behind is not None and leaf.dtype == behind.dtype and not (
                leaf.is_conj() or leaf.is_neg()):
            return behind._view(leaf)
        recorder.fall_back(names, reason)
        return RecordingTensor._make(leaf, None, f"{value} {next(outputs)}", "", names, recorder,
                                     device)

    return pytree.tree_map(wrap, result)


def _is_view(func: Any) -> bool:
    return any(arg.alias_info is not None and not arg.alias_info.is_write
               for arg in func._schema.arguments)


def _title(func: Any) -> str:
    return str(func.overloadpacket).rpartition(".")[2] + "()"


def torch_dtype(dtype: Any) -> torch.dtype:
    """PyTorch's dtype. Unsupported: it has none."""
    if isinstance(dtype, torch.dtype):
        return dtype
    name = dtype_name(dtype)
    for theirs, ours in TORCH_NAMES.items():
        if ours == name and isinstance(getattr(torch, theirs, None), torch.dtype):
            return getattr(torch, theirs)  # type: ignore[no-any-return]
    raise Unsupported(f"PyTorch has no dtype {name}")


def buffer(name: str, shape: Sequence[int], dtype: str, device: Any) -> torch.Tensor:
    """Memory for a tensor that is received whole."""
    try:
        return torch.empty(tuple(shape), dtype=torch_dtype(dtype), device=device)
    except RuntimeError as error:
        raise InvalidSpec(f"tensor '{name}': {error}", tensor=name) from error
