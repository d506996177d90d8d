"""Functions that run on the model of each worker of an engine."""
import torch


class Call:
    """A function of this module by its name, for vLLM's apply_model."""

    def __init__(self, name, given):
        self.name, self.given = name, given

    def __call__(self, model):
        return globals()[self.name](model, *self.given)


def values(model):
    """Parameters, buffers, and what attention has made of weights, as copies."""
    found = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for name, module in model.named_modules():
        for derived in ("W_UV", "W_UK_T"):
            if isinstance(one := getattr(module, derived, None), torch.Tensor):
                found[f"{name}.{derived}"] = one
    return {name: one.detach().clone() for name, one in found.items()}


def elements(model):
    return sum(one.numel() for one in values(model).values())


def fill(model, seed):
    """Other values in each parameter, as before a first version."""
    generator = torch.Generator().manual_seed(seed)
    for one in model.parameters():
        if one.numel() and one.is_floating_point():
            one.data.copy_(torch.rand(one.shape, generator=generator).to(one.dtype))


def differences(model, checkpoint):
    """Names of what vLLM's own loader makes otherwise of a checkpoint, with how many elements."""
    from safetensors.torch import load_file
    from vllm.model_executor.model_loader.reload import (finalize_layerwise_reload,
                                                         initialize_layerwise_reload)
    mine = values(model)
    addresses = {name: one.data_ptr() for name, one in model.named_parameters()}
    kernels = []
    for module in model.modules():
        # On CPUs vLLM packs experts with the first kernel alone: this load is to be as the first.
        if getattr(method := getattr(module, "quant_method", None), "moe_kernel", None):
            kernels.append((method, method.moe_kernel))
            method.moe_kernel = None
    initialize_layerwise_reload(model)
    model.load_weights(iter(load_file(checkpoint).items()))
    finalize_layerwise_reload(model, _ModelConfig())
    for method, kernel in kernels:
        method.moe_kernel = method.moe_kernel or kernel  # where vLLM has reloaded nothing
    theirs = values(model)
    found = {name: _unequal(mine[name], one) for name, one in theirs.items()}
    found.update((name, -1) for name, one in model.named_parameters()
                 if one.data_ptr() != addresses[name])
    assert mine.keys() == theirs.keys()
    return {name: count for name, count in found.items() if count}


class _ModelConfig:
    dtype = torch.bfloat16


def _unequal(one, other):
    if one.shape != other.shape or one.dtype != other.dtype:
        return max(1, other.numel())
    if not one.numel():
        return 0
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[one.element_size()]
    return int((one.contiguous().view(bits) != other.contiguous().view(bits)).sum())


def dump(model):
    """A digest of each parameter, to compare with another engine's."""
    import hashlib
    return {name: hashlib.sha256(one.contiguous().reshape(-1).view(torch.uint8).numpy()).hexdigest()
            for name, one in values(model).items() if one.numel()}


def _at(place, instead):
    """Calls `instead` before the next call of a method of the package, once."""
    from sluice.integrations import _vllm_placement
    kind, method = place.split(".")
    owner = getattr(_vllm_placement, kind)  # it has Layers, too
    own = getattr(owner, method)

    def once(self, *given):
        setattr(owner, method, own)
        instead()
        return own(self, *given)

    setattr(owner, method, once)


def stop_at(model, place):
    import os
    import signal
    _at(place, lambda: os.kill(os.getpid(), signal.SIGKILL))


def raise_at(model, place):
    def raise_it():
        raise MemoryError("planted")

    _at(place, raise_it)


def pause_at(model, place, seconds):
    import time
    _at(place, lambda: time.sleep(seconds))


def pretend_version(model, version):
    from sluice import _sluice
    _sluice.version = lambda: version

