"""Moves tensors of PyTorch into memory that the ranks of a node share, and back."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from . import _sluice
from ._errors import InvalidSpec, Unsupported
from ._memory import hidden_values, settled, span_bytes

if TYPE_CHECKING:
    from ._session import Session

_ALIGNMENT = 64  # bytes, of each storage

#: Of each storage in shared memory, by its address: the array that it lies in.
_shared: WeakValueDictionary[int, Any] = WeakValueDictionary()


class _Storage:
    """One storage of PyTorch, and all tensors given that lie in it."""

    def __init__(self, name: str, first: Any) -> None:
        self.name = name
        self.tensors = [first]

    @property
    def memory(self) -> Any:
        return self.tensors[0].untyped_storage()

    def check(self) -> None:
        """Unsupported: others hold it. They would keep the memory that it has now."""
        import torch

        if self.memory.is_shared():
            raise Unsupported(f"'{self.name}' is shared with other processes already, by PyTorch",
                              tensor=self.name)
        holders = torch._C._storage_Use_Count(self.memory._cdata) - 1  # less what asks
        if holders > len(self.tensors) or any(map(self._is_held, self.tensors)):
            raise Unsupported(
                f"something else holds the memory of '{self.name}', such as a view, NumPy, DLPack, "
                "a graph of gradients or what wraps the module: share before that, or give the "
                "view, too",
                tensor=self.name)

    def _is_held(self, one: Any) -> bool:
        if not hasattr(one, "_use_count"):
            raise Unsupported("this version of PyTorch does not tell who holds a tensor")
        return bool(one._use_count() > 1 + sum(view._base is one for view in self.tensors))

    def views(self, memory: Any) -> list[tuple[Any, Any]]:
        """Each tensor, and what is as that in `memory`, which gets the values."""
        import torch

        memory.copy_(self.memory)
        with torch.inference_mode(False):
            return [(one, torch.empty(0, dtype=one.dtype, device="cpu").set_(
                memory, one.storage_offset(), one.shape, one.stride())) for one in self.tensors]


def share(session: Session, what: Any) -> Any:
    """As `Session.share`."""
    storages: list[_Storage] = []

    def check() -> None:
        storages.extend(_to_move(what, False))

    session._exchange("share", check)
    places: list[int] = []
    end = 0
    for one in storages:
        places.append(end)
        end += -(-one.memory.nbytes() // _ALIGNMENT) * _ALIGNMENT
    allocated = session._native.allocate(end)
    _point([view for one, place in zip(storages, places)
            for view in one.views(_storage_in(allocated, place, one.memory.nbytes()))])
    return what


def unshare(what: Any) -> Any:
    """As `Session.unshare`."""
    import torch

    _point([view for one in _to_move(what, True)
            for view in one.views(torch.UntypedStorage(one.memory.nbytes()))])
    return what


def _point(views: list[tuple[Any, Any]]) -> None:
    import torch

    with torch.inference_mode(False), torch.no_grad():
        for one, view in views:
            one.data = view


def _storage_in(allocated: _sluice.Memory, place: int, nbytes: int) -> Any:
    """A storage of PyTorch in allocated memory, which it keeps."""
    import torch

    kind: Any = type("SharedPiece", (ctypes.c_char * nbytes,), {})  # for it to have weak references
    piece = kind.from_buffer(allocated.memory, place)
    storage = torch.frombuffer(piece, dtype=torch.uint8).untyped_storage()
    _shared[storage.data_ptr()] = piece
    return storage


def _to_move(what: Any, is_shared: bool) -> list[_Storage]:
    """The storages that are in shared memory, or those that are not. Nobody else holds them."""
    found = [one for one in _storages(what) if (one.memory.data_ptr() in _shared) == is_shared]
    for one in found:
        one.check()
    return found


def _storages(what: Any) -> list[_Storage]:
    """InvalidSpec, Unsupported: something in `what` is not dense memory of the host."""
    found: dict[int, _Storage] = {}
    seen = set()
    for name, given in _tensors("", what):
        one = settled(given)
        one = getattr(one, "_local_tensor", one)  # a DTensor's
        _check_tensor(name, one)
        if id(one) in seen or one.untyped_storage().nbytes() == 0:
            continue
        seen.add(id(one))
        key = one.untyped_storage()._cdata
        if key in found:
            found[key].tensors.append(one)
        else:
            found[key] = _Storage(name, one)
    return list(found.values())


def _tensors(name: str, what: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(what, "named_parameters"):
        yield from what.named_parameters(remove_duplicate=False)
        yield from what.named_buffers(remove_duplicate=False)
    elif isinstance(what, Mapping):
        for key, value in what.items():
            yield from _tensors(f"{name}.{key}" if name else str(key), value)
    elif isinstance(what, (list, tuple)):
        for i, value in enumerate(what):
            yield from _tensors(f"{name}.{i}" if name else str(i), value)
    else:
        yield name or "the tensor", what


def _check_tensor(name: str, one: Any) -> None:
    import torch

    if not isinstance(one, torch.Tensor):
        raise InvalidSpec(f"'{name}' is a {type(one).__name__}: give a module, or tensors of "
                          "PyTorch in dicts or lists", tensor=name)
    if type(one) not in (torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", None)):
        raise Unsupported(f"'{name}' is a {type(one).__name__}, which is more than memory",
                          tensor=name)
    if one.is_nested or one.is_quantized or one.is_inference():
        raise Unsupported(f"'{name}' is nested, quantized by PyTorch, or made in inference mode",
                          tensor=name)
    if why := hidden_values(one):
        raise Unsupported(f"tensor '{name}': {why}", tensor=name)
    if one.layout != torch.strided or one.device.type != "cpu" or one.is_pinned():
        form = "pinned" if one.device.type == "cpu" and one.layout == torch.strided else (
            f"on '{one.device}', {str(one.layout).removeprefix('torch.')}")
        raise Unsupported(f"'{name}' is {form}: tensors of ordinary memory of the host can be "
                          "shared", tensor=name)
    elements = one.storage_offset() + span_bytes(tuple(one.shape), one.stride(), "u8")
    if one.numel() and one.untyped_storage().nbytes() < elements * one.element_size():
        raise InvalidSpec(f"the memory of '{name}' was freed or made smaller", tensor=name)
    if one.grad_fn is not None:
        raise Unsupported(f"'{name}' is the outcome of an operation that PyTorch differentiates: "
                          "give leaves", tensor=name)
