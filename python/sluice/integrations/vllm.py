"""vLLM's weight transfer by Sluice: `{"backend": "sluice"}`.

vLLM calls `register` in each of its processes. A trainer imports this module, which registers, too:

    from sluice.integrations.vllm import SluiceModuleSource, SluiceTrainerInitInfo
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._vllm_sources import SluiceModuleSource
    from ._vllm_trainer import Engines, SluiceTrainerEngine, SluiceTrainerInitInfo
    from ._vllm_worker import SluiceWeightTransferEngine

__all__ = ["Engines", "SluiceModuleSource", "SluiceTrainerEngine", "SluiceTrainerInitInfo",
           "SluiceWeightTransferEngine", "register"]

_NAME = "sluice"
_MODULES = {"SluiceModuleSource": "_vllm_sources", "Engines": "_vllm_trainer",
            "SluiceTrainerEngine": "_vllm_trainer", "SluiceTrainerInitInfo": "_vllm_trainer",
            "SluiceWeightTransferEngine": "_vllm_worker"}


def register() -> None:
    """Gives both of vLLM's registries the name "sluice". May be called more than once.

    ImportError: there is no vLLM, or one without weight transfer by name.
    """
    from vllm.distributed.weight_transfer.factory import (WeightTransferEngineFactory,
                                                          WeightTransferTrainerFactory)

    for factory, name in ((WeightTransferEngineFactory, "SluiceWeightTransferEngine"),
                          (WeightTransferTrainerFactory, "SluiceTrainerEngine")):
        if _NAME not in factory._registry:
            factory.register_engine(_NAME, f"{__package__}.{_MODULES[name]}", name)


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import import_module
    return getattr(import_module(f".{module}", __package__), name)


register()
