"""Placements: where the tensors of a trainer go in the model of one vLLM worker, and how.

A tensor goes directly into parameters, or into a layer that is staged, or whole to the model's own
loader.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from math import prod
from typing import Any

import torch
from vllm.model_executor.model_loader.mtp_validation import disable_mtp_completeness_check
from vllm.model_executor.model_loader.reload.meta import SKIP_LOAD_TENSORS
from vllm.model_executor.model_loader.reload.utils import get_tensor_load_numel

from .. import NO_STREAM, Error, InvalidSpec, NeedsMemory, TensorDone, capture, into
from .._captured import named
from .._recording_torch import torch_dtype
from ._vllm_layers import Layer, Layers

_NUMBER = re.compile(r"(?:^|\.)(\d+)(?:\.|$)")
_LAST_WINDOW = (1 << 16) - 1


class Placement:
    """Of one model, and of tensors that are given as (name, shape, dtype). Thread: one.

    InvalidSpec: two tensors have one name. Errors of the model's loader are raised as they are.
    """

    def __init__(self, model: Any, model_config: Any, device: Any,
                 tensors: Iterable[tuple[str, tuple[int, ...], str]]) -> None:
        self._model = model
        self._model_config = model_config
        self._device = device
        self._specs = {name: (shape, torch_dtype(dtype)) for name, shape, dtype in tensors}
        self._layers = Layers(model, model_config)
        with self._layers.on_meta(), disable_mtp_completeness_check():
            self._params = named(model)
            self._place_of = self._places()
            self.captured = capture(model.load_weights, self._specs, self._params, device=device)
        self._written = list(self.captured.current())
        self._tops: dict[str, list[Layer]] = {}  # by destination: the layers that are staged
        self._due: Counter[str] = Counter()  # by layer: destinations that are to come
        #: Layers that stay open until the loader has had what it gets whole.
        self._held: list[Layer] = []
        self._find_staged()
        self._session: Any = None
        self._transfer: Any = None

    def _places(self) -> dict[str, tuple[Any, str, Layer | None]]:
        """Of each parameter: its module, its name there, and the layer if that is staged."""
        tops = {part: layer for layer in self._layers.staged for part in layer.parts}
        place_of = {id(tensor): (module, name, tops.get(module))
                    for module in self._model.modules()
                    for name, tensor in (*module._parameters.items(), *module._buffers.items())}
        return {name: place_of[id(tensor)] for name, tensor in self._params.items()}

    def _find_staged(self) -> None:
        captured = self.captured
        for target in captured.targets:
            tops = {top.name: top for name in captured.params_of(target.name)
                    if (top := self._place_of[name][2]) is not None}
            self._tops[target.name] = list(tops.values())
            self._due.update(tops.keys())
        loaded: Counter[str] = Counter()
        for step in captured._expected:
            loaded.update({name: prod(shape) for name, _, shape, *_ in step})
        if captured.fallback:
            names = {top.name for name in loaded if (top := self._place_of[name][2]) is not None}
            names.update(self._due)
            # Where all fall back, nothing shows what the loader writes.
            self._held = [layer for layer in self._layers.staged
                          if not captured.copies or layer.name in names]
        self._late = bool(self._due or self._held)
        if captured.copies:
            self._check_staged(loaded)

    def _check_staged(self, written: Counter[str]) -> None:
        """InvalidSpec: a layer would be staged with a part of its values. It has no others."""
        for copy in self.captured.copies:
            written[copy.param] += prod(copy.memory.shape)
        for name, (_, attribute, layer) in self._place_of.items():
            if layer is None or attribute in SKIP_LOAD_TENSORS or (
                    layer.name not in self._due and layer not in self._held):
                continue
            wanted = get_tensor_load_numel(self._params[name])
            if written[name] < wanted:
                raise InvalidSpec(f"the trainer sends {written[name]} of the {wanted} elements of "
                                  f"'{name}', in a layer that vLLM repacks from all of them: send "
                                  "all tensors of this layer, or none", tensor=name)

    def counts(self) -> dict[str, int]:
        """Elements that go to this worker "directly", "by a staged copy" and "by the loader"."""
        counts = {"directly": 0, "by a staged copy": 0, "by the loader": sum(
            prod(self._specs[name][0]) for name in self.captured.fallback)}
        for copy in self.captured.copies:
            way = "directly" if self._place_of[copy.param][2] is None else "by a staged copy"
            counts[way] += prod(copy.memory.shape)
        return counts

    def taken(self) -> list[list[tuple[tuple[int, ...], tuple[int, ...]]]]:
        """The boxes of each tensor that this worker takes, in their order: begins and shapes."""
        taken: dict[str, Any] = {name: set() for name in self._specs}
        for copy in self.captured.copies:
            taken[copy.source].add((copy.begin or (0,), copy.memory.shape or (1,)))
        for name in self.captured.fallback:
            shape = self._specs[name][0] or (1,)
            taken[name].add(((0,) * len(shape), shape))
        return [sorted(boxes) for boxes in taken.values()]

    def refuse(self, session: Any, error: Exception) -> None:
        """Lets all others of a session hear at once that this worker has failed."""
        if session is self._session and not session.closed:
            with suppress(Error):
                self._transfer._refuse(error if isinstance(error, InvalidSpec) else
                                       InvalidSpec(f"{type(error).__name__}: {error}"))

    def kept(self) -> list[str]:
        """Parameters of the model that no tensor goes to."""
        if self.captured.fallback:
            return []  # nobody knows where the loader writes these
        written = set(self._written)
        return [name for name, one in self._model.named_parameters()
                if one.numel() and name not in written and name in self._place_of
                and not self._layers.has_made(self._place_of[name][0])]

    def begin(self, session: Any) -> None:
        """Collective; blocks. Plans how all tensors come in a session, unless that is known.

        InvalidSpec: a parameter was replaced meanwhile; nothing has been written.
        """
        if session is not self._session:
            # Layers come one after the other, so few of them are staged at once.
            # With staged layers the loader runs while they are open, and not after the run.
            targets: Any = into(self.captured.targets, self.captured.renames) if (
                self._late) else self.captured
            self._transfer = session.transfer(None, targets, window_of=window_of, late=self._late)
            self._session = session
        self._check_params()
        if self._device.type != "cpu":
            torch.accelerator.synchronize()

    def receive(self, version: int) -> None:
        """Collective; blocks. One version of all tensors, into the model.

        After an error the model serves, with parameters of two versions.
        """
        # Memory is ready now, and is complete when the run says so: events come in no stream.
        run = self._transfer.start(version, stream=NO_STREAM, events=self._late)
        if self._late:
            self._stage(run)
        with disable_mtp_completeness_check():
            run.wait()
        self._layers.finish()
        if self._device.type != "cpu":
            torch.accelerator.synchronize()

    def _check_params(self) -> None:
        """InvalidSpec: vLLM has other parameters in place of those that were captured."""
        for name in self._written:
            module, attribute, layer = self._place_of[name]
            if layer is None and getattr(module, attribute, None) is not self._params[name]:
                raise InvalidSpec(f"vLLM has replaced parameter '{name}' since the trainer has "
                                  "initialized the weight transfer: initialize it again",
                                  tensor=name)

    def _stage(self, run: Any) -> None:
        due = self._due.copy()
        try:
            for layer in self._held:
                self._layers.open(layer)
            for event in run.events():
                tops = self._tops[event.tensor]
                if isinstance(event, NeedsMemory):
                    run.supply(event.tensor, self._memory(event.tensor, tops))
                elif isinstance(event, TensorDone):
                    for top in tops:
                        due[top.name] -= 1
                        if not due[top.name] and top not in self._held:
                            self._layers.close(top)
            if self.captured.fallback:
                self._load()
            for layer in self._held:
                self._layers.close(layer)
        finally:
            for layer in self._layers.staged:
                self._layers.leave(layer)  # those that are open after an error

    def _load(self) -> None:
        """Gives the loader what it gets whole, while the layers are open that it writes to."""
        bound = self.captured.bind({**self._params, **self._live(self._written)})
        bound._buffers = self.captured._buffers  # which the run has filled
        with disable_mtp_completeness_check(), torch.no_grad():
            bound.finish()

    def _memory(self, target: str, tops: list[Layer]) -> Any:
        for top in tops:
            if not top.is_open:
                self._layers.open(top)
        return self.captured.memory_of(target, self._live(self.captured.params_of(target)))

    def _live(self, names: Iterable[str]) -> dict[str, Any]:
        """Parameters as they are now, of open layers in the loader's form."""
        return {name: getattr(*self._place_of[name][:2]) for name in names}


def window_of(name: str) -> int:
    """The outermost number in a name, which is the layer's. Tensors without one come first."""
    found = _NUMBER.search(name)
    return 0 if found is None else min(int(found[1]) + 1, _LAST_WINDOW)
