"""A reader for torch.distributed.checkpoint, by which each byte is read once for all ranks.

    dcp.load(state, storage_reader=sluice.integrations.dcp.Reader("/ckpt/step42", session))

DCP plans and checks as ever. Its own reader reads an array once for each rank that needs a part.
"""

from __future__ import annotations

import base64
import io
import os
from typing import Any

from torch.distributed.checkpoint import LoadPlan, LoadPlanner, Metadata, StorageReader
from torch.distributed.checkpoint.planner import LoadItemType, ReadItem
from torch.futures import Future

import sluice
from sluice import _sluice
from sluice._dcp import METADATA, metadata_bytes
from sluice._dcp_pickle import read_metadata
from sluice._dtypes import dtype_name
from sluice._paths import checkpoint_of


class Reader(StorageReader):
    """Of one checkpoint. Thread: the session's.

    `uri`: where `session.load` looks for checkpoints, with or without "dcp:". `session`: of the
    ranks that call `dcp.load`, all of them. `options`: those of `sluice.CheckpointOptions`.
    Errors are those of `session.load`; DCP wraps them in CheckpointException.
    """

    def __init__(self, uri: str | os.PathLike[str], session: sluice.Session,
                 **options: Any) -> None:
        super().__init__()
        self._session = session
        self._options = _sluice.check_checkpoint_options(options)
        self._metadata: Metadata | None = None
        self.reset(uri)

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Before each load. `checkpoint_id`: another checkpoint."""
        if checkpoint_id is not None:
            self._place, _ = checkpoint_of("uri", checkpoint_id)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether it names a place."""
        return isinstance(checkpoint_id, (str, os.PathLike)) and bool(os.fspath(checkpoint_id))

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Collective; blocks. Rank 0 reads it for all; its pickle may name nothing but metadata."""
        def read() -> str | None:
            if self._session.rank > 0:
                return None
            return base64.b85encode(metadata_bytes(self._place, self._options)).decode()

        data = base64.b85decode(self._session._exchange("load", read)[0])
        metadata: Metadata = read_metadata(data, f"{self._place}/{METADATA}", own_classes=True)
        return metadata

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any,
                              **kwargs: Any) -> None:
        """Keeps what the checkpoint has."""
        self._metadata = metadata

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """As it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """As they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Collective; blocks. Fills what the plans of all ranks ask for."""
        tensors = [item for item in plan.items if item.type != LoadItemType.BYTE_IO]
        views = [planner.resolve_tensor(item).detach() for item in tensors]
        self._session.load(f"dcp:{self._place}", self._parts(tensors, views), progress=False,
                           **self._options)
        for item, view in zip(tensors, views):
            planner.commit_tensor(item, view)
        self._read_bytes([item for item in plan.items if item.type == LoadItemType.BYTE_IO],
                         planner)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _parts(self, items: list[ReadItem], views: list[Any]) -> list[sluice.Tensor]:
        """Of each tensor, the boxes that this rank wants."""
        assert self._metadata is not None
        boxes: dict[tuple[str, str], list[sluice.Box]] = {}
        parts = []
        for item, view in zip(items, views):
            name = item.storage_index.fqn
            stored = self._metadata.state_dict_metadata[name]
            dtype = dtype_name(view.dtype, tensor=name)
            if 0 in view.shape:
                continue
            if not stored.size:
                parts.append(sluice.Tensor(name, (), dtype, None, view))
                continue
            begin = [chunk + inside for chunk, inside in zip(item.storage_index.offset or (),
                                                             item.storage_offsets)]
            boxes.setdefault((name, dtype), []).append(sluice.Box(begin, view.shape, view))
        for (name, dtype), some in boxes.items():
            shape = tuple(self._metadata.state_dict_metadata[name].size)
            parts.append(sluice.Tensor(name, shape, dtype, sluice.Boxes(some)))
        return parts

    def _read_bytes(self, items: list[ReadItem], planner: LoadPlanner) -> None:
        """Reads each value once, by one rank, and tells the others."""
        assert self._metadata is not None
        session = self._session
        wanted = session._exchange("load", lambda: [item.storage_index.fqn for item in items])
        names = sorted({name for own in wanted for name in own})
        places = {index.fqn: info for index, info in self._metadata.storage_data.items()
                  if index.fqn in names}

        def read() -> dict[str, str]:
            own = names[session.rank::session.size]
            ranges = [(i, places[name].offset, places[name].length) for i, name in enumerate(own)]
            found = _sluice.read_ranges(self._place, [places[name].relative_path for name in own],
                                        ranges, self._options) if own else []
            return {name: base64.b85encode(data).decode() for name, data in zip(own, found)}

        values = {name: text for answer in session._exchange("load", read)
                  for name, text in answer.items()}
        for item in items:
            planner.load_bytes(item, io.BytesIO(base64.b85decode(values[item.storage_index.fqn])))
