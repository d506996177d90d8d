"""vLLM's weight transfer by Sluice, `{"backend": "sluice"}`, and its loads, `--load-format sluice`.

vLLM calls `register` in each of its processes. A trainer imports this module, which registers, too:

    from sluice.integrations.vllm import SluiceModuleSource, SluiceTrainerInitInfo
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._vllm_loader import SluiceModelLoader
    from ._vllm_sources import SluiceModuleSource
    from ._vllm_trainer import Engines, SluiceTrainerEngine, SluiceTrainerInitInfo
    from ._vllm_worker import SluiceWeightTransferEngine

__all__ = ["Engines", "SluiceModelLoader", "SluiceModuleSource", "SluiceTrainerEngine", "SluiceTrainerInitInfo",
           "SluiceWeightTransferEngine", "register"]

_NAME = "sluice"
_MODULES = {"SluiceModelLoader": "_vllm_loader", "SluiceModuleSource": "_vllm_sources", "Engines": "_vllm_trainer",
            "SluiceTrainerEngine": "_vllm_trainer", "SluiceTrainerInitInfo": "_vllm_trainer",
            "SluiceWeightTransferEngine": "_vllm_worker"}


def register() -> None:
    """Gives vLLM's registries the name "sluice". May be called more than once.

    ImportError: there is no vLLM, or one without weight transfer by name.
    """
    from vllm.distributed.weight_transfer.factory import (WeightTransferEngineFactory,
                                                          WeightTransferTrainerFactory)

    for factory, name in ((WeightTransferEngineFactory, "SluiceWeightTransferEngine"),
                          (WeightTransferTrainerFactory, "SluiceTrainerEngine")):
        if _NAME not in factory._registry:
            factory.register_engine(_NAME, f"{__package__}.{_MODULES[name]}", name)
    _register_loader()


_REGISTRY = "vllm.model_executor.model_loader"


def _register_loader() -> None:
    """Now where vLLM's registry of loaders is there; else once somebody imports it.

    The import takes seconds, and not each process of vLLM loads a model.
    """
    if _REGISTRY in sys.modules:
        _add_loader(sys.modules[_REGISTRY])
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _add_loader(registry: Any) -> None:
    if _NAME not in registry._LOAD_FORMAT_TO_MODEL_LOADER:
        from ._vllm_loader import SluiceModelLoader
        registry.register_model_loader(_NAME)(SluiceModelLoader)


class _Finder(MetaPathFinder):
    """Adds our loader behind the registry's import, which other finders carry out."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != _REGISTRY:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            _add_loader(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib import import_module
    return getattr(import_module(f".{module}", __package__), name)


register()
