"""Checkpoints of one process, such as a notebook."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ._session import Session
from ._transfer import Renames

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._catalog import CheckpointEntry
    from ._options import CheckpointOptions


def load(uri: str | os.PathLike[str], state: Any, *, rename: Renames = None,
         strict: bool | None = None, catalog: Iterable[CheckpointEntry] | None = None,
         progress: bool = True, **options: Unpack[CheckpointOptions]) -> dict[str, Any]:
    """Fills `state` from a checkpoint, in this process alone: `Session.load`.

    `state`: a module of PyTorch, a state dict, or what else `Session.load` takes.
    """
    with Session.local() as session:
        return session.load(uri, state, rename=rename, strict=strict, catalog=catalog,
                            progress=progress, **options)


def save(directory: str | os.PathLike[str], state: Any, *, dtype: Any = None,
         rename: Renames = None, progress: bool = True,
         **options: Unpack[CheckpointOptions]) -> dict[str, Any]:
    """Writes `state` as a safetensors checkpoint, in this process alone: `Session.save`."""
    with Session.local() as session:
        return session.save(directory, state, dtype=dtype, rename=rename, progress=progress,
                            **options)
