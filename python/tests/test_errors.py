"""Exceptions: their classes, and the attributes that the library gives them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from local_ranks import entry, on_ranks, whole_on

import sluice
from sluice import _group
from sluice import _errors as errors


@pytest.mark.parametrize("code, kind, also", [
    (1, errors.Cancelled, RuntimeError),
    (3, errors.InvalidSpec, ValueError),
    (4, errors.Timeout, TimeoutError),
    (5, errors.InvalidSpec, ValueError),
    (12, errors.Unsupported, NotImplementedError),
    (14, errors.PeerLost, ConnectionError),
    (15, errors.DataLoss, RuntimeError),
    (8, errors.Error, RuntimeError),
    (13, errors.Error, RuntimeError),
    (9, errors.Error, RuntimeError),
])
def test_codes_have_classes(code: int, kind: type, also: type) -> None:
    error = errors.from_status(code, "something failed")
    assert type(error) is kind and isinstance(error, also) and isinstance(error, errors.Error)
    assert error.code == code and str(error) == "something failed"
    assert (error.ranks, error.tensor, error.epoch) == ((), None, None)


def test_fields_are_attributes() -> None:
    error = errors.from_status(14, "any", [5, 1, 5], "w", 12)
    assert (error.ranks, error.tensor, error.epoch) == ((1, 5), "w", 12)


def test_ranks_out_of_step_disagree() -> None:
    error = errors.from_status(9, "any", [0, 1], is_disagreement=True)
    assert type(error) is errors.Disagreement and error.code == 9 and error.ranks == (0, 1)


def test_attributes_of_other_exceptions_are_no_names() -> None:
    class Other(ValueError):
        tensor = bytearray(2)

    assert _group.described(Other("bad")) == ("Other: bad", None, 3)
    assert _group.described(errors.InvalidSpec("bad", tensor="w")) == ("bad", "w", 3)
    assert _group.described(errors.Unsupported("bad", tensor="w")) == ("bad", "w", 12)


# What a reader of texts would take for attributes.
NAME = "x' of rank 3, bucket 7 of epoch 5: ranks disagree on tensor 'y" + "z" * 60


def attributes(error: errors.Error) -> tuple[object, ...]:
    return error.ranks, error.tensor, error.epoch


def test_a_name_is_no_attribute() -> None:
    def work(session: Any, rank: int) -> None:
        own = entry(NAME, (2,), whole_on(rank), bytearray(2))
        with pytest.raises(errors.InvalidSpec) as unused:
            session.connect([own] if rank == 1 else [], [])
        assert attributes(unused.value) == ((1,), NAME, None)
        for tensor in (NAME, None):
            with pytest.raises(errors.InvalidSpec) as refused:
                if rank == 1:
                    session.refuse("Connect", (f"tensor {NAME}", tensor, 3))
                session.connect([], [])
            assert attributes(refused.value) == ((1,), tensor, None)

    on_ranks(2, work)


def test_a_files_name_is_no_attribute(tmp_path: Path) -> None:
    folder = tmp_path / NAME
    folder.mkdir()
    with sluice.Session.from_exchange(0, 1, lambda payload: [payload], trace_events=8) as session:
        with pytest.raises(sluice.Error) as trace:
            with session.trace(folder):
                pass
        with pytest.raises(sluice.Error) as load:
            session.load(f"file:{folder}", {"a": memoryview(bytearray(4))}, progress=False)
        with pytest.raises(sluice.Error) as stream:
            list(session.stream(f"file:{folder}", format="npy"))
    for raised in (trace, load, stream):
        assert type(raised.value) is not sluice.Disagreement
        assert attributes(raised.value) == ((), None, None)


@pytest.mark.parametrize("kind", [errors.Timeout, errors.PeerLost, errors.InvalidSpec,
                                  errors.Unsupported, errors.Error, errors.DataLoss])
def test_exceptions_travel_between_processes(kind: type[errors.Error]) -> None:
    error = kind("rank 3 is late", code=4, ranks=(3, 1, 3), tensor="w", epoch=2)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind and str(copy) == "rank 3 is late"
    assert (copy.code, copy.ranks, copy.tensor, copy.epoch) == (4, (1, 3), "w", 2)
