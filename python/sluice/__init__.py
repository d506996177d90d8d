"""Moves tensors between the processes of jobs, whatever their layouts are.

A session is a group of ranks. A transfer carries tensors from the layouts that some ranks have to
those of others, through staging of a fixed size. Sessions also load and save checkpoints, and
stream data shards. docs/python.md is the way in.
"""

from __future__ import annotations

import os as _os

from . import _sluice
from ._capture import Captured, capture
from ._errors import (Cancelled, DataLoss, Disagreement, Error, InvalidSpec, PeerLost, Poisoned,
                      Timeout, Unsupported, from_status)
from ._layouts import (Box, Boxes, Layout, Partial, Replicate, Shard, StridedShard, Tensor)
from ._metrics import Exporter, prometheus
from ._session import Member, Session
from ._state import into
from ._stream import Batch, Stream, Transform, merge_states, scale
from ._sync import sync
from ._transfer import Event, NeedsMemory, Progress, Run, TensorDone, Transfer
from ._world import World

__version__: str = _sluice.version()

_sluice.set_error_factory(from_status)
# A child of fork() shares sockets and memory with its parent: every call raises there.
_os.register_at_fork(after_in_child=_sluice.forbid_in_child)

__all__ = [
    "Batch", "Box", "Boxes", "Cancelled", "Captured", "DataLoss", "Disagreement", "Error",
    "Event", "Exporter", "InvalidSpec", "Layout", "Member", "NeedsMemory", "Partial", "PeerLost",
    "Poisoned", "Progress", "Replicate", "Run", "Session", "Shard", "Stream", "StridedShard",
    "Tensor", "TensorDone", "Timeout", "Transfer", "Transform", "Unsupported", "World", "capture",
    "into", "merge_states", "prometheus", "scale", "sync",
]
