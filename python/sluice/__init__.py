"""Moves tensors between the processes of jobs, whatever their layouts are.

A session is a group of ranks. A transfer carries tensors from the layouts that some ranks have to
those of others, through staging of a fixed size. Sessions also load and save checkpoints, and
stream data shards. docs/python.md is the way in.
"""

from __future__ import annotations

import os as _os

from . import _sluice
from ._errors import (Cancelled, Code, DataLoss, Disagreement, Error, InvalidSpec, PeerLost,
                      Timeout, Unsupported, from_status)
from ._log import say as _say

# Most processes that import the package use a part of it. The rest would make the import several
# times as long, so a name's module is imported when the name is first asked for. Type checkers read
# the imports below, and Python the table.
TYPE_CHECKING = False  # as in typing, whose import takes long, too
if TYPE_CHECKING:
    from ._alone import load, save
    from ._batch import Batch
    from ._capture import capture
    from ._captured import Captured
    from ._catalog import CheckpointEntry
    from ._layouts import Box, Boxes, Layout, Partial, Replicate, Shard, StridedShard, Tensor
    from ._metrics import Exporter, prometheus
    from ._options import CheckpointOptions, Metrics, SessionOptions, StreamOptions
    from ._session import Member, Session
    from ._state import into
    from ._stream import Stream, Transform, merge_states, scale
    from ._streams import NO_STREAM
    from ._sync import sync
    from ._transfer import Event, NeedsMemory, Progress, Run, TensorDone, Transfer
    from ._webdataset import write_index
    from ._world import World
else:
    _MODULES = {
        "_alone": "load save",
        "_batch": "Batch",
        "_capture": "capture",
        "_captured": "Captured",
        "_catalog": "CheckpointEntry",
        "_layouts": "Box Boxes Layout Partial Replicate Shard StridedShard Tensor",
        "_metrics": "Exporter prometheus",
        "_options": "CheckpointOptions Metrics SessionOptions StreamOptions",
        "_session": "Member Session",
        "_state": "into",
        "_stream": "Stream Transform merge_states scale",
        "_streams": "NO_STREAM",
        "_sync": "sync",
        "_transfer": "Event NeedsMemory Progress Run TensorDone Transfer",
        "_webdataset": "write_index",
        "_world": "World",
    }
    _MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

    def __getattr__(name):
        module = _MODULE_OF.get(name)
        if module is None:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        from importlib import import_module
        value = getattr(import_module(f".{module}", __name__), name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})

__version__: str = _sluice.version()

_sluice.set_error_factory(from_status)
_sluice.set_logger(_say)
# A child of fork() shares sockets and memory with its parent: every call raises there.
_os.register_at_fork(after_in_child=_sluice.forbid_in_child)

__all__ = [
    "Batch", "Box", "Boxes", "Cancelled", "Captured", "CheckpointEntry", "CheckpointOptions", "Code",
    "DataLoss", "Disagreement", "Error", "Event", "Exporter", "InvalidSpec", "Layout", "Member", "Metrics",
    "NO_STREAM", "NeedsMemory", "Partial", "PeerLost", "Progress", "Replicate", "Run", "Session",
    "SessionOptions", "Shard", "Stream", "StreamOptions", "StridedShard", "Tensor", "TensorDone",
    "Timeout", "Transfer", "Transform", "Unsupported", "World", "capture", "into", "load",
    "merge_states", "prometheus", "save", "scale", "sync", "write_index",
]
