"""Layers of a vLLM model: those that take weights as loaded, and those that repack them.

A repacked layer is staged: it gets memory in the form that its loader writes, and vLLM's layer-wise
reload makes the kernel's tensors from that, in the memory that these have.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from vllm.model_executor.layers.attention import is_deferred_attention_layer
from vllm.model_executor.layers.linear import UnquantizedLinearMethod
from vllm.model_executor.layers.quantization.base_config import QuantizeMethodBase
from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload
from vllm.model_executor.model_loader.reload.layerwise import get_layerwise_info
from vllm.model_executor.model_loader.reload.meta import (SKIP_TENSORS, materialize_layer,
                                                          restore_layer_on_meta)
from vllm.model_executor.model_loader.reload.utils import (get_layer_params_buffers,
                                                           get_layer_tensors)

# These leave matrices as they are loaded, or put an empty one in their place. On CPUs they may keep
# a packed copy besides.
_PLAIN = (UnquantizedLinearMethod, UnquantizedEmbeddingMethod)

# Kernels of these devices hold addresses of what they were made of, such as scales. Elsewhere it is
# graphs that hold addresses: of what was there first.
_BY_ADDRESS = ("cpu",)


@dataclass
class Layer:
    """One that is staged, with all modules in it. `is_open`: they are on meta, or in staging."""

    name: str
    module: Any
    parts: list[Any] = field(default_factory=list)
    is_open: bool = False


class Layers:
    """The layers of one model. Thread: one; PyTorch records no gradients meanwhile."""

    def __init__(self, model: Any, model_config: Any) -> None:
        self._model_config = model_config
        self.staged: list[Layer] = []
        self._plain: list[Any] = []
        self._attention: list[Any] = []
        self._held_on: list[Any] = []  # of updates that have failed since the last whole one
        covered: set[Any] = set()
        for name, module in model.named_modules():
            if is_deferred_attention_layer(module):
                self._attention.append(module)
                continue
            method = getattr(module, "quant_method", None)
            if module in covered or not isinstance(method, QuantizeMethodBase) or (
                    not get_layer_tensors(module) and not _loaded_form(module)):
                continue
            if type(method) in _PLAIN and _is_as_loaded(module):
                self._plain.append(module)
                continue
            parts = [part for part in module.modules() if not is_deferred_attention_layer(part)]
            covered.update(parts)
            self.staged.append(Layer(name, module, parts))

    @contextmanager
    def on_meta(self) -> Iterator[None]:
        """Staged layers have parameters as their loaders write them, without memory."""
        try:
            for layer in self.staged:
                self._restore(layer)
            yield
        finally:
            for layer in self.staged:
                self.leave(layer)

    def open(self, layer: Layer) -> None:
        """Gives the layer memory that its loader may write. It is zero."""
        self._restore(layer)
        with torch.no_grad():
            for part in layer.parts:
                empty = [name for name, one in get_layer_tensors(part).items() if one.is_meta]
                materialize_layer(part, get_layerwise_info(part))
                for name in empty:
                    tensor = getattr(part, name)
                    if not tensor.is_meta:
                        tensor.data.zero_()

    def close(self, layer: Layer) -> None:
        """The memory is whole: makes the kernel's tensors of it, and lets it go."""
        kernels, kept = [], []
        for part in layer.parts:
            if any(one.device.type in _BY_ADDRESS for one in get_layer_tensors(part).values()):
                # vLLM would copy what it has made into the tensors that were there.
                kept.append(_Kept.take(part))
                method: Any = getattr(part, "quant_method", None)
                if getattr(method, "moe_kernel", None) is not None:
                    # Experts are packed with the first kernel alone, and are garbage without.
                    kernels.append((method, method.moe_kernel))
                    method.moe_kernel = None
        try:
            self._finalize(layer, 1, 2)
            for each in kept:
                each.take_over()
        except BaseException:
            # Kernels that were made hold addresses of what goes now.
            self._held_on.extend(one for part in layer.parts
                                 for one in get_layer_tensors(part).values())
            for each in kept:
                each.put_back()
            for method, kernel in kernels:
                method.moe_kernel = kernel
            raise
        for each in kept:
            each.put_back()

    def leave(self, layer: Layer) -> None:
        """Puts the kernel's tensors back as they were."""
        self._finalize(layer, 0, 0)

    def has_made(self, module: Any) -> bool:
        """Whether a module's parameters come of others, as those of attention may."""
        return any(module is one for one in self._attention)

    def finish(self) -> None:
        """Renews what attention and plain layers have made of the weights that were there."""
        self._held_on.clear()
        with torch.no_grad():
            for module in self._plain:
                if module.weight.device.type == "cpu":
                    module.quant_method.process_weights_after_loading(module)
            for module in self._attention:
                module.process_weights_after_loading(self._model_config.dtype)

    def _restore(self, layer: Layer) -> None:
        layer.is_open = True
        for part in layer.parts:
            info = get_layerwise_info(part)
            info.kernel_tensors = get_layer_params_buffers(part)
            info.kernel_non_persistent_buffers = set(part._non_persistent_buffers_set)
            info.load_numel = info.load_numel_total = 0  # it may be finalized from now on
            restore_layer_on_meta(part, info)
            for tensor in get_layer_tensors(part).values():
                # One that vLLM has wrapped for a reload before keeps what it is given.
                loader: Any = getattr(tensor, "weight_loader", None)
                while getattr(loader, "__name__", "") == "online_process_loader":
                    loader = tensor.weight_loader = loader.__wrapped__

    def _finalize(self, layer: Layer, loaded: int, total: int) -> None:
        # vLLM processes a layer that has got a part of its elements, and counts them by its own
        # loaders, which have written nothing here.
        if not layer.is_open:
            return
        layer.is_open = False
        for part in layer.parts:
            info = get_layerwise_info(part)
            if info.load_numel_total is not None:
                info.load_numel, info.load_numel_total = loaded, total
        try:
            with torch.no_grad():
                finalize_layerwise_reload(layer.module, self._model_config)
        except BaseException:
            for part in layer.parts:
                if get_layerwise_info(part).kernel_tensors is not None:
                    _Kept.take(part).put_back()
            raise


class _Kept:
    """The tensors of a part's kernel, and none of vLLM's to copy into."""

    def __init__(self, part: Any, tensors: Any, non_persistent: set[str]) -> None:
        self._part = part
        self._parameters, self._buffers = tensors
        self._non_persistent = non_persistent

    @classmethod
    def take(cls, part: Any) -> _Kept:
        info = get_layerwise_info(part)
        tensors, info.kernel_tensors = info.kernel_tensors, None
        return cls(part, tensors, set(info.kernel_non_persistent_buffers))

    def take_over(self) -> None:
        """They get the memory of what the part has now."""
        made = [(one, getattr(self._part, name)) for name, one in self._parameters.items()]
        made += [(one, self._part._buffers[name]) for name, one in self._buffers.items()
                 if name in self._part._buffers and name not in self._non_persistent]
        for one, now in made:
            one.data = now.data

    def put_back(self) -> None:
        """Into the part, in place of what it has."""
        for name in list(get_layer_tensors(self._part)):
            delattr(self._part, name)
        for name, one in self._parameters.items():
            self._part.register_parameter(name, one)
        for name, one in self._buffers.items():
            self._part.register_buffer(name, one, name not in self._non_persistent)
        info = get_layerwise_info(self._part)
        info.kernel_tensors, info.load_numel, info.load_numel_total = None, 0, None


def _loaded_form(module: Any) -> dict[str, Any]:
    """The parameters and buffers of a module as they were before they were loaded."""
    parameters, buffers = get_layerwise_info(module).restore_metadata
    return {**parameters, **buffers}


def _is_as_loaded(module: Any) -> bool:
    now, before = get_layer_tensors(module), _loaded_form(module)
    return all(name in now and one.dim() <= 2 and _form(one) == _form(now[name])
               for name, one in before.items() if name not in SKIP_TENSORS) and all(
        name in before for name in now if name not in SKIP_TENSORS)


def _form(tensor: Any) -> tuple[Any, ...]:
    return tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype
