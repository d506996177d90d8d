"""The emulated GPU of each test. It tells what the test has done wrong with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from gpu import FakeGpu, torch

__all__ = ["gpu", "torch"]


@pytest.fixture
def gpu() -> Iterator[FakeGpu]:
    made = FakeGpu()
    made.fake.configure()
    made.fake.check_clean()
    yield made
    assert made.end() == []
