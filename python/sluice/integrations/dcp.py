"""A reader for torch.distributed.checkpoint, by which each byte is read once for all ranks.

    dcp.load(state, storage_reader=sluice.integrations.dcp.Reader("/ckpt/step42", session))

DCP plans and checks as ever. Its own reader reads an array once for each rank that needs a part.
"""

from __future__ import annotations

import base64
import io
import os
from typing import Any

import torch
from torch.distributed.checkpoint import LoadPlan, LoadPlanner, Metadata, StorageReader
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import (BytesStorageMetadata, ChunkStorageMetadata,
                                                   MetadataIndex, StorageMeta, TensorProperties,
                                                   TensorStorageMetadata)
from torch.distributed.checkpoint.planner import LoadItemType, ReadItem
from torch.futures import Future

import sluice
from sluice import Unsupported, _sluice
from sluice._dcp import METADATA, Stored, contents_of, metadata_bytes
from sluice._dcp_pickle import Record, read_metadata
from sluice._dtypes import TORCH_NAMES, dtype_name
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
        """Collective; blocks. Rank 0 reads it for all. Nothing that its pickle names is called."""
        def read() -> str | None:
            if self._session.rank > 0:
                return None
            return base64.b85encode(metadata_bytes(self._place, self._options)).decode()

        data = base64.b85decode(self._session._exchange("load", read)[0])
        record = read_metadata(data, METADATA)
        contents_of(record)  # what DCP writes
        return _own_metadata(record)

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
        """Rank 0 reads each value, and tells the others. DCP gets plain values, which it unpickles.
        """
        session = self._session
        wanted = session._exchange("load", lambda: [item.storage_index.fqn for item in items])
        names = sorted({name for own in wanted for name in own})
        if not names:
            return
        stored = Stored.find(session, lambda: self._place, self._options)

        def read() -> dict[str, str]:
            if session.rank > 0:
                return {}
            return dict(zip(names, map(_saved, stored.values_of(names))))

        values = session._exchange("load", read)[0]
        for item in items:
            planner.load_bytes(item, io.BytesIO(base64.b85decode(values[item.storage_index.fqn])))


def _saved(value: Any) -> str:
    """The plain value as torch.save writes it. The checkpoint's own bytes may hold anything."""
    saved = io.BytesIO()
    torch.save(value, saved)
    return base64.b85encode(saved.getvalue()).decode()


def _own_metadata(record: Record) -> Metadata:
    """PyTorch's objects, with the fields that loads need."""
    def stored(name: str, one: Record) -> Any:
        if one.kind == "BytesStorageMetadata":
            return BytesStorageMetadata()
        dtype = str(one.fields["properties"].fields["dtype"])
        if dtype not in TORCH_NAMES:
            raise Unsupported(f"tensor '{name}' of the checkpoint is of torch.{dtype}, which "
                              "Sluice does not move", tensor=name)
        chunks = [ChunkStorageMetadata(torch.Size(chunk.fields["offsets"]),
                                       torch.Size(chunk.fields["sizes"]))
                  for chunk in one.fields["chunks"]]
        return TensorStorageMetadata(TensorProperties(dtype=getattr(torch, dtype)),
                                     torch.Size(one.fields["size"]), chunks)

    places = {MetadataIndex(index.fqn, index.offset, index.number): _StorageInfo(
        info.fields["relative_path"], info.fields["offset"], info.fields["length"])
        for index, info in record.fields["storage_data"].items()}
    planned = record.fields.get("planner_data")
    paths = {name: path for name, path in planned.items() if isinstance(path, tuple) and all(
        type(step) in (str, int) for step in path)} if isinstance(planned, dict) else None
    return Metadata({name: stored(name, one)
                     for name, one in record.fields["state_dict_metadata"].items()},
                    planner_data=paths, storage_data=places, storage_meta=StorageMeta())
