"""The emulated GPU of each test. It tells what the test has done wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))

from gpu import FakeGpu, torch  # noqa: E402

__all__ = ["gpu", "torch"]


@pytest.fixture
def gpu() -> Iterator[FakeGpu]:
    made = FakeGpu()
    made.fake.configure()
    made.fake.check_clean()
    yield made
    assert made.end() == []
