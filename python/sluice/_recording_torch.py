"""Recording tensors that are tensors of PyTorch. Imported only where PyTorch is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import ref

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ._dtypes import TORCH_NAMES, dtype_name
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


class Watching(TorchDispatchMode):  # type: ignore[misc]
    """Tells of the memory that operations read and write, before they do.

    Of views, which do neither, it tells nothing; nor of recording tensors. It sees its own thread
    alone, and not what goes by NumPy.
    """

    supports_higher_order_operators = True

    def __init__(self, wrote: Callable[[torch.Tensor], None],
                 read: Callable[[torch.Tensor], None]) -> None:
        super().__init__()
        self._wrote = wrote
        self._read = read

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _VIEWS and not kwargs:
            return func(*args)
        if not hasattr(func, "_schema"):
            return func(*args, **kwargs)
        known = False
        written: list[torch.Tensor] = []
        for tensor, alias in _tensors(func, args, kwargs):
            if isinstance(tensor, RecordingTensor):
                known = True
            elif alias is None:
                self._read(tensor)
            elif alias.is_write:
                written.append(tensor)
        if not known:  # or the recording tensor has told, or falls back
            for tensor in written:
                self._wrote(tensor)
        return func(*args, **kwargs)


def _tensors(func: Any, args: Any, kwargs: Any) -> Iterator[tuple[torch.Tensor, Any]]:
    """Those that an operation gets, and how it shares their memory: None, or PyTorch's object."""
    for i, argument in enumerate(func._schema.arguments):
        value = args[i] if i < len(args) else kwargs.get(argument.name)
        for leaf in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(leaf, torch.Tensor):
                yield leaf, argument.alias_info


class RecordingTensor(torch.Tensor):
    """Stands for a tensor that is to come. It has a shape, strides and a dtype, and no values.

    A tensor on meta beside it says what each view is. `_known` is None for what an operation other
    than a view has made: nobody knows its values, and its sources fall back.
    """

    _meta: torch.Tensor
    _known: Base | None
    _names: frozenset[str]
    _recorder: Recorder

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def _make(meta: torch.Tensor, known: Base | None, names: frozenset[str], recorder: Recorder,
              device: Any) -> RecordingTensor:
        made = torch.Tensor._make_wrapper_subclass(
            RecordingTensor, meta.shape, strides=meta.stride(),
            storage_offset=meta.storage_offset(), dtype=meta.dtype, device=device,
            requires_grad=False)
        made._meta, made._known, made._names, made._recorder = meta, known, names, recorder
        recorder.made.append(ref(made))
        return made

    @classmethod
    def of(cls, name: str, shape: Sequence[int], dtype: Any, recorder: Recorder,
           device: Any = "cpu") -> RecordingTensor:
        """The whole tensor, as if on `device`."""
        meta = torch.empty(tuple(shape), dtype=torch_dtype(dtype), device="meta")
        return cls._make(meta, Base(name, tuple(shape)), frozenset((name,)), recorder, device)

    @property
    def strided(self) -> Strided | None:
        if self._known is None:
            return None
        return Strided(self._known, self._meta.storage_offset(), tuple(self._meta.shape),
                       tuple(self._meta.stride()))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _VIEWS and not kwargs:
            one = args[0]
            one._recorder.touched |= one._names
            return cls._make(func(one._meta, *args[1:]), one._known, one._names, one._recorder,
                             one.device)
        kwargs = kwargs or {}
        leaves = pytree.tree_leaves((args, kwargs))
        own = [leaf for leaf in leaves if isinstance(leaf, RecordingTensor)]
        recorder = own[0]._recorder
        names = frozenset().union(*(one._names for one in own))
        recorder.touched |= names
        packet = func.overloadpacket
        if packet is _aten.copy_ and not isinstance(args[0], RecordingTensor):
            recorder.copy(names, args[1].strided, dtype_name(args[1].dtype), args[0])
            return args[0]
        if packet in (_aten.clone, _aten._to_copy) and own[0].strided is not None:
            made = _copied(func, own[0], kwargs)
            if made is not None:
                return made
        if func._schema.is_mutable:
            return _mutated(func, args, kwargs, own, names)
        return _made(func, args, kwargs, own, names)

    def _values(self, *args: Any, **kwargs: Any) -> Any:
        reason = "the loader needs its values"
        self._recorder.fall_back(self._names, reason)  # also if the loader catches the error
        raise Uncapturable(self._names, reason)

    item = tolist = numpy = data_ptr = __array__ = __bool__ = _values  # type: ignore[assignment]
    __dlpack__ = _values  # type: ignore[assignment]

    def __repr__(self) -> str:  # type: ignore[override]
        return f"RecordingTensor({sorted(self._names)}, {list(self.shape)}, {self.dtype})"


def _copied(func: Any, one: RecordingTensor, kwargs: Any) -> RecordingTensor | None:
    """A copy with the same elements: a tensor of its own, of which there are views again."""
    if kwargs.get("dtype") not in (None, one.dtype):
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
    return RecordingTensor._make(meta, base, one._names, one._recorder, device)


def _mutated(func: Any, args: Any, kwargs: Any, own: list[RecordingTensor],
             names: frozenset[str]) -> Any:
    reason = f"the loader calls {_title(func)}"
    recorder = own[0]._recorder
    recorder.fall_back(names, reason)
    for tensor, alias in _tensors(func, args, kwargs):
        if alias is not None and alias.is_write and not isinstance(tensor, RecordingTensor):
            recorder.fallen_writes += recorder.meeting(tensor, names)
    first = args[0] if args else None
    if isinstance(first, RecordingTensor) and func._schema.name.endswith("_"):
        first._names = names
        first._known = None
        return first
    raise Uncapturable(names, reason)


def _made(func: Any, args: Any, kwargs: Any, own: list[RecordingTensor],
          names: frozenset[str]) -> Any:
    recorder, device = own[0]._recorder, own[0].device
    by_storage = {one._meta.untyped_storage()._cdata: one for one in own}
    reason = f"the loader calls {_title(func)}"

    def to_meta(leaf: Any) -> Any:
        if isinstance(leaf, RecordingTensor):
            return leaf._meta
        if isinstance(leaf, torch.Tensor):
            return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device="meta")
        return leaf

    try:
        meta_args, meta_kwargs = pytree.tree_map(to_meta, (args, kwargs))
        result = func(*meta_args, **meta_kwargs)
    except (RuntimeError, NotImplementedError, TypeError) as error:
        if _is_view(func):
            raise  # what the loader asks for does not exist: its own error
        recorder.fall_back(names, reason)
        raise Uncapturable(names, reason) from error

    def wrap(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            if leaf is None:
                return None
            recorder.fall_back(names, reason)
            raise Uncapturable(names, reason)
        if leaf.device.type != "meta":
            return leaf
        behind = by_storage.get(leaf.untyped_storage()._cdata)
        if behind is not None and leaf.dtype == behind.dtype and not (
                leaf.is_conj() or leaf.is_neg()):
            return RecordingTensor._make(leaf, behind._known, behind._names, recorder, device)
        recorder.fall_back(names, reason)
        return RecordingTensor._make(leaf, None, names, recorder, device)

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
