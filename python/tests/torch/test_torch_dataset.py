"""A stream as a dataset of PyTorch, and who refers to it."""

from __future__ import annotations

import gc
import struct
from typing import Any
from weakref import ref

import pytest
import sluice
from torch.utils.data import DataLoader


def generate(item: int, memory: Any) -> int:
    memory[:4] = struct.pack("<i", item)
    return 4


def test_a_loader_gets_all_batches_and_nobody_keeps_the_session() -> None:
    gc.collect()
    gc.disable()
    try:
        session = sluice.Session.from_exchange(0, 1, lambda payload: [payload], timeout=120)
        stream = session.stream(generator=generate, generator_items=4, item_bytes=4)
        dataset = stream.dataset(lambda batch: batch.items[0])
        assert list(DataLoader(dataset, batch_size=None)) == [0, 1, 2, 3]
        assert dataset.state_dict() == stream.state_dict()
        dataset.load_state_dict(stream.state_dict())
        gone = ref(session)
        del session, stream, dataset
        assert gone() is None, gc.get_referrers(gone())
    finally:
        gc.enable()


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_loader_with_workers_is_refused(session: sluice.Session, start: str) -> None:
    with session.stream(generator=generate, generator_items=4, item_bytes=4) as stream:
        loader = DataLoader(stream.dataset(), batch_size=None, num_workers=1,
                            multiprocessing_context=start)
        with pytest.raises(sluice.InvalidSpec, match="give the DataLoader num_workers=0"):
            list(loader)
