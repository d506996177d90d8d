"""Views of strided memory with the methods of PyTorch's tensors, in Python alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any

from ._memory import dense_strides


class Uncapturable(Exception):
    """The loader needs something of `sources` that a recording does not have: values, mostly."""

    def __init__(self, sources: Iterable[str], reason: str) -> None:
        super().__init__(reason)
        self.sources = frozenset(sources)
        self.reason = reason


class Misfit(Uncapturable):
    """A shape that does not fit where the loader copies it, with values or without."""


class UnknownMethod(Uncapturable, AttributeError):
    """The same of an attribute, about which the loader may only have asked."""


def view_strides(shape: Sequence[int], strides: Sequence[int],
                 new: Sequence[int]) -> tuple[int, ...] | None:
    """The strides of a view of another shape with the same elements in order; None: a copy."""
    if 0 in shape or prod(shape) == 1:
        return dense_strides(new)
    # Runs of dimensions that lie dense behind each other can be cut anew.
    runs: list[tuple[int, int]] = []  # elements, innermost stride
    for n, stride in zip(shape, strides):
        if n == 1:
            continue
        if runs and runs[-1][1] == n * stride:
            runs[-1] = (runs[-1][0] * n, stride)
        else:
            runs.append((n, stride))
    made: list[int] = []
    left, stride = runs.pop()
    for n in reversed(new):
        if n == 1:
            made.append(stride)
            continue
        if left == 1 and runs:
            left, stride = runs.pop()
        if left % n:
            return None
        made.append(stride)
        left //= n
        stride *= n
    return tuple(reversed(made)) if left == 1 and not runs else None


def _sizes(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    return tuple(int(size) for size in sizes)


class View:
    """Shape, strides and offset with PyTorch's methods for views."""

    shape: tuple[int, ...]

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> None:
        self.shape = shape
        self._strides = strides
        self._offset = offset

    def _view(self, shape: Sequence[int], strides: Sequence[int], offset: int) -> Any:
        raise NotImplementedError

    def _dense_copy(self) -> Any:
        """The same elements, dense."""
        raise self._cannot("a copy")

    def _cannot(self, what: str) -> Uncapturable:
        return Uncapturable((), what)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def data(self) -> Any:
        return self.detach()

    @property
    def T(self) -> Any:
        return self.permute(*reversed(range(self.ndim)))

    @property
    def mT(self) -> Any:
        return self.transpose(-1, -2)

    def dim(self) -> int:
        return self.ndim

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        return prod(self.shape)

    def stride(self, dim: int | None = None) -> Any:
        return self._strides if dim is None else self._strides[dim]

    def storage_offset(self) -> int:
        return self._offset

    def is_contiguous(self) -> bool:
        return view_strides(self.shape, self._strides, (self.numel(),)) in ((1,), ()) or (
            self.numel() < 2)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.unbind(0))

    def detach(self) -> Any:
        return self._view(self.shape, self._strides, self._offset)

    def _dim(self, dim: int, extra: int = 0) -> int:
        dims = max(1, self.ndim + extra)  # a scalar has a dimension 0 to name
        if not -dims <= dim < dims:
            raise IndexError(f"dimension {dim} of a tensor of {dims}")
        return dim % dims

    def narrow(self, dim: int, start: int, length: int) -> Any:
        dim = self._dim(dim)
        start += self.shape[dim] if start < 0 else 0
        if start < 0 or length < 0 or start + length > self.shape[dim]:
            raise RuntimeError(f"narrow({dim}, {start}, {length}) of shape {list(self.shape)}")
        return self._sliced(dim, start, length, 1)

    def _sliced(self, dim: int, start: int, length: int, step: int) -> Any:
        shape, strides = list(self.shape), list(self._strides)
        shape[dim] = length
        offset = self._offset + start * strides[dim]
        strides[dim] *= step
        return self._view(shape, strides, offset)

    def select(self, dim: int, index: int) -> Any:
        dim = self._dim(dim)
        index += self.shape[dim] if index < 0 else 0
        if not 0 <= index < self.shape[dim]:
            raise IndexError(f"index {index} of dimension {dim} of shape {list(self.shape)}")
        return self._view(self.shape[:dim] + self.shape[dim + 1:],
                          self._strides[:dim] + self._strides[dim + 1:],
                          self._offset + index * self._strides[dim])

    def __getitem__(self, key: Any) -> Any:
        keys = list(key) if isinstance(key, tuple) else [key]
        used = sum(one is not None and one is not Ellipsis for one in keys)
        if Ellipsis in [one for one in keys if one is Ellipsis]:
            at = next(i for i, one in enumerate(keys) if one is Ellipsis)
            keys[at:at + 1] = [slice(None)] * (self.ndim - used)
        view, dim = self, 0
        for one in keys:
            if one is None:
                view, dim = view.unsqueeze(dim), dim + 1
            elif isinstance(one, slice):
                start, stop, step = one.indices(view.shape[view._dim(dim)])
                if step < 1:
                    raise ValueError("a step has to be positive")
                view = view._sliced(dim, start, len(range(start, stop, step)), step)
                dim += 1
            elif hasattr(one, "__index__") and not isinstance(one, bool):
                view = view.select(dim, one.__index__())
            else:
                raise self._cannot(f"an index by a {type(one).__name__}")
        return view

    def view(self, *sizes: Any) -> Any:
        return self._reshaped(_sizes(sizes), copy=False)

    def reshape(self, *sizes: Any) -> Any:
        return self._reshaped(_sizes(sizes), copy=True)

    def view_as(self, other: Any) -> Any:
        return self.view(tuple(other.shape))

    def _reshaped(self, sizes: tuple[int, ...], copy: bool) -> Any:
        if -1 in sizes:
            known = -prod(sizes)
            fill = self.numel() // known if known > 0 else 0
            sizes = tuple(fill if size == -1 else size for size in sizes)
        if prod(sizes) != self.numel() or min((0, *sizes)) < 0:
            raise RuntimeError(f"shape {list(sizes)} of {self.numel()} elements")
        strides = view_strides(self.shape, self._strides, sizes)
        if strides is None:
            if not copy:
                raise RuntimeError(f"a view of shape {list(sizes)} needs a copy")
            return self._dense_copy()._reshaped(sizes, copy=False)
        return self._view(sizes, strides, self._offset)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Any:
        if not self.shape:
            return self.reshape(1)
        first, last = self._dim(start_dim), self._dim(end_dim)
        middle = prod(self.shape[first:last + 1])
        return self.reshape(*self.shape[:first], middle, *self.shape[last + 1:])

    def unflatten(self, dim: int, sizes: Sequence[int]) -> Any:
        dim = self._dim(dim)
        sizes = list(sizes)
        if -1 in sizes:
            sizes[sizes.index(-1)] = self.shape[dim] // max(1, -prod(sizes))
        return self.view(*self.shape[:dim], *sizes, *self.shape[dim + 1:])

    def permute(self, *dims: Any) -> Any:
        order = [self._dim(dim) for dim in _sizes(dims)]
        if sorted(order) != list(range(self.ndim)):
            raise RuntimeError(f"permute({order}) of {self.ndim} dimensions")
        return self._view([self.shape[d] for d in order], [self._strides[d] for d in order],
                          self._offset)

    def transpose(self, dim0: int, dim1: int) -> Any:
        order = list(range(self.ndim))
        first, second = self._dim(dim0), self._dim(dim1)
        order[first], order[second] = second, first
        return self.permute(*order)

    swapaxes = transpose

    def t(self) -> Any:
        if self.ndim > 2:
            raise RuntimeError(f"t() of {self.ndim} dimensions")
        return self.T

    def unsqueeze(self, dim: int) -> Any:
        dim = self._dim(dim, 1)
        return self._view([*self.shape[:dim], 1, *self.shape[dim:]],
                          [*self._strides[:dim], 1, *self._strides[dim:]], self._offset)

    def squeeze(self, dim: int | None = None) -> Any:
        drop = range(self.ndim) if dim is None else [self._dim(dim)]
        keep = [d for d in range(self.ndim) if self.shape[d] != 1 or d not in drop]
        return self._view([self.shape[d] for d in keep], [self._strides[d] for d in keep],
                          self._offset)

    def expand(self, *sizes: Any) -> Any:
        wanted = _sizes(sizes)
        missing = len(wanted) - self.ndim
        own = [1] * missing + list(self.shape)
        strides = [0] * missing + list(self._strides)
        shape = [n if size == -1 else size for n, size in zip(own, wanted)]
        if missing < 0 or any(n not in (1, size) for n, size in zip(own, shape)):
            raise RuntimeError(f"expand({list(wanted)}) of shape {list(self.shape)}")
        return self._view(shape, [s if n == size else 0 for n, size, s in
                                  zip(own, shape, strides)], self._offset)

    def split(self, sizes: int | Sequence[int], dim: int = 0) -> tuple[Any, ...]:
        length = self.shape[self._dim(dim)]
        if isinstance(sizes, int):
            sizes = [min(sizes, length - at) for at in range(0, max(length, 1), sizes)]
        if sum(sizes) != length:
            raise RuntimeError(f"split({list(sizes)}) of {length}")
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        return tuple(self.narrow(dim, start, n) for start, n in zip(starts, sizes))

    def chunk(self, chunks: int, dim: int = 0) -> tuple[Any, ...]:
        return self.split(max(1, -(-self.shape[self._dim(dim)] // chunks)), dim)

    def unbind(self, dim: int = 0) -> tuple[Any, ...]:
        return tuple(self.select(dim, i) for i in range(self.shape[self._dim(dim)]))

    def contiguous(self) -> Any:
        return self if self.is_contiguous() else self._dense_copy()

    def clone(self) -> Any:
        return self._dense_copy()
