"""Samples of a stream, taken and checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sluice


def numbers_of(check: Callable[[dict[str, Any], int], None], stream: sluice.Stream) -> list[int]:
    """The numbers of all samples. `check` is called with each sample and its number."""
    numbers = []
    for batch in stream:
        for number, sample in zip(batch.items, batch.samples):
            check(sample, number)
        numbers += batch.items
        del sample  # it would hold the batch
        batch.release()
    return numbers
