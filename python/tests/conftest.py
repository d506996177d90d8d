"""Fixtures that tests of several files use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sluice
from ranks import SESSION_SECONDS
from sluice import _sluice


@pytest.fixture
def session() -> Iterator[sluice.Session]:
    """A session of one rank."""
    with sluice.Session.from_exchange(0, 1, lambda payload: [payload]) as alone:
        yield alone


@pytest.fixture
def native() -> Iterator[_sluice.Session]:
    """A session of the extension, of one rank."""
    alone = _sluice.local_fabrics(1)[0].session({"timeout": SESSION_SECONDS})
    yield alone
    alone.close()
