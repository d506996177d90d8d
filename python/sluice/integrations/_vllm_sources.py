"""Sources of a trainer's weights: what a rank holds of them, as a transfer takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

import torch
from vllm.distributed.weight_transfer.base import ModuleSource, WeightSource

from .. import InvalidSpec
from .._same import Seen


class SluiceModuleSource(ModuleSource):
    """The parameters of a module as they are: of an FSDP2 or tensor-parallel one, DTensors.

    Another backend of vLLM takes it as its own ModuleSource. Names are the module's, and have to be
    those of the checkpoint.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__(module)
        self._of = module

    def state(self) -> dict[str, Any]:
        return dict(self._of.named_parameters())


class State:
    """What a source holds on this rank. Thread: one."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read
        self._tensors: Any = None
        self._seen: Seen | None = None  # what `tensors` has given

    def renew(self) -> None:
        """Looks at the source. Of some sources it is collective over the trainer's ranks."""
        self._tensors = self._read()

    def tensors(self) -> Any:
        """As `Session.transfer` takes it as `src`. The next `has_moved` compares with this."""
        if self._tensors is None:
            self.renew()
        self._seen = Seen.of(self._tensors)
        return self._tensors

    def has_moved(self, transfer: Any) -> bool:
        """Whether the transfer is bound to other tensors than the source has, or other memory."""
        if self._seen is None or self._seen.keeps(self._tensors) is None:
            return True
        return transfer._moved() is not None


def state_of(source: Any, rank: int, size: int) -> State:
    """What `rank` of `size` trainers holds of a source. InvalidSpec: there is none."""
    if source is None:
        raise InvalidSpec("source is None; give a module, a state dict, or a WeightSource")
    # One that brings other tensors than the module's is asked for them.
    own = isinstance(source, ModuleSource) and all(
        getattr(type(source), name, None) is getattr(ModuleSource, name, None)
        for name in ("__iter__", "metadata", "iter_full", "iter_local"))
    module = getattr(source, "_module", None) if own else source
    if isinstance(module, torch.nn.Module):
        return State(SluiceModuleSource(module).state)
    if callable(read := getattr(source, "state", None)):
        return State(read)
    if isinstance(source, WeightSource):
        return State(_Copies(source, rank, size).state)
    if isinstance(source, Iterator):
        raise InvalidSpec(f"source is a {type(source).__name__}, which can be read once, and each "
                          "version is read anew: give a state dict or a WeightSource")
    return State(lambda: source)


class _Copies:
    """Of a source that brings whole tensors one by one: a share of them on each rank.

    Bringing them is collective, so each rank brings all.
    """

    def __init__(self, source: WeightSource, rank: int, size: int) -> None:
        self._source = source
        self._rank = rank
        self._size = size
        self._held: dict[str, torch.Tensor] = {}

    def state(self) -> dict[str, torch.Tensor]:
        held = self._source.held_names() if hasattr(self._source, "held_names") else None
        before, self._held = self._held, {}
        for name, tensor in self._bring():
            # A rank has the same names in each round, in whatever order they come.
            mine = name in held if held is not None else (
                crc32(name.encode()) % self._size == self._rank)
            if not mine or tensor is None:
                continue
            if name in self._held:
                raise InvalidSpec(f"the source brings '{name}' twice", tensor=name)
            kept = before.get(name)
            if kept is None or kept.shape != tensor.shape or kept.dtype != tensor.dtype:
                kept = tensor.detach().clone(memory_format=torch.contiguous_format)
            else:
                kept.copy_(tensor)
            self._held[name] = kept
        return self._held

    def _bring(self) -> Iterator[tuple[str, Any]]:
        # From 0.33 on a source brings whole tensors by a name of its own.
        whole = getattr(self._source, "iter_full", None)
        return iter(whole() if callable(whole) else self._source)
