"""Exceptions: their classes, and what is read from the library's texts."""

from __future__ import annotations

import pickle

import pytest

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


@pytest.mark.parametrize("text", [
    "ranks disagree on source 'w': shape [4,8] on rank 0, [4,6] on rank 1",
    "ranks make different calls: Connect on rank 0, Close on rank 1",
    "ranks run different versions of Sluice: 1 on rank 0, 2 on rank 1",
])
def test_ranks_out_of_step_disagree(text: str) -> None:
    error = errors.from_status(9, text)
    assert type(error) is errors.Disagreement and error.ranks == (0, 1)


@pytest.mark.parametrize("text, ranks", [
    ("no rank has it", ()),
    ("rank 3 is lost: it has ended", (3,)),
    ("ranks 0-2, 5 are lost", (0, 1, 2, 5)),
    ("ranks 1, 2 and 7 more", (1, 2)),
    ("from rank 4 to ranks 9, 11-12", (4, 9, 11, 12)),
    ("tensor 'rank 5' of rank 6", (6,)),
    ("a 3-rank job: rank 2", (2,)),
    ("the checkpoint lacks 1 tensors: 'rank 7.bias'", ()),
    ("rank 1's '/tmp/it\\'s rank 3' and \"rank 4\" aren't on rank 2", (1, 2)),
    ("ranks 0-99999999 and rank 1", (1,)),
])
def test_ranks_are_read(text: str, ranks: tuple[int, ...]) -> None:
    assert errors.from_status(14, text).ranks == ranks


@pytest.mark.parametrize("text, tensor", [
    ("tensor 'a.weight': bad", "a.weight"),
    ("tensor 3 'a.weight' of run 2", "a.weight"),
    ("no rank has a source for target 'v' of ranks 2, 3", "v"),
    ("no cast exists: 'w' of ranks 0, 1 is f32, target 'x' of rank 2 i32", "w"),
    ("it isn't there, and source 'b' is", "b"),
    ('tensor "q": a view is a tuple', "q"),
    (r"tensor 'a\'b\xc3\xa9\\': bad", "a'bé\\"),
    ("nothing here", None),
])
def test_the_first_tensor_is_read(text: str, tensor: str | None) -> None:
    assert errors.from_status(3, text).tensor == tensor


def test_an_epoch_is_read() -> None:
    assert errors.from_status(14, "epoch 12 has ended: trainer rank 1 was lost").epoch == 12
    assert errors.from_status(5, "'/tmp/epoch 5' has no *.safetensors").epoch is None


@pytest.mark.parametrize("kind", [errors.Timeout, errors.PeerLost, errors.InvalidSpec,
                                  errors.Unsupported, errors.Error, errors.DataLoss])
def test_exceptions_travel_between_processes(kind: type[errors.Error]) -> None:
    error = kind("rank 3 is late", code=4, ranks=(3, 1, 3), tensor="w", epoch=2)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind and str(copy) == "rank 3 is late"
    assert (copy.code, copy.ranks, copy.tensor, copy.epoch) == (4, (1, 3), "w", 2)
