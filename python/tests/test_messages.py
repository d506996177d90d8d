"""Mistakes of users, and the words that they get: of Python, with names first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sluice
from ranks import error_of, run_ranks
from sluice import _words

#: Words of C++ or of the engine that no user of Python should need.
FOREIGN = ("kNoLimit", "ignore_unused_sources", "late_targets", "device buffers", "Connect",
           "sluice-bench", "LoadCheckpoint", "SaveCheckpoint", "OpenStream")


def ones(n: int = 4) -> Any:
    return np.ones(n, np.float32)


def holds_batches(session: sluice.Session, folder: Path) -> None:
    np.save(folder / "items.npy", np.zeros((10, 2), np.float32))
    with session.stream(folder, format="npy") as stream:
        [batch.keep() for batch in stream]


MISTAKES: dict[str, tuple[Callable[[sluice.Session, Path], Any], str]] = {
    "unused source": (lambda session, _: session.transfer({"a": ones(), "b": ones()},
                                                          {"a": ones()}),
                      "ignore_unused=True would allow it"),
    "unused source of sync": (lambda session, _: session.sync({"a": ones(), "b": ones()},
                                                              {"a": ones()}),
                              "ignore_unused=True would allow it"),
    "prefix": (lambda session, _: session.transfer({"model.w": ones()}, {"w": ones()}),
               "did you mean rename=lambda name: 'model.' + name?"),
    "other prefix": (lambda session, _: session.transfer({"w": ones()}, {"module.w": ones()}),
                     "did you mean rename=lambda name: name.removeprefix('module.')?"),
    "an int": (lambda session, _: session.transfer({"step": 3}, None),
               "'step': an int is no tensor"),
    "held batches": (holds_batches, "release a batch, keep a copy (batch.tensor.clone()), or open "
                                    "the stream with buffers=3"),
    "no index": (lambda session, folder: session.stream(folder), 'format="raw", "npy"'),
    "no item_bytes": (lambda session, folder: session.stream(folder, format="raw"),
                      'format="raw" takes item_bytes'),
    "batch_size": (lambda session, folder: session.stream(
        folder, batch_size=2), "did you mean 'batch_items'?"),  # type: ignore[call-arg]
    "budget": (lambda session, _: sluice.Session.local(budget_buckets=-3),
               "or None for no limit"),
    "sizes for a mesh": (lambda session, _: sluice.Layout((2, 2), "S(0),R"),
                         "A mesh of 2 x 2 is [[0, 1], [2, 3]]"),
    "cuda": (lambda session, _: sluice.Session.local(accelerator="cuda"),
             "build with -DSLUICE_PYTHON_CUDA=ON"),
    "a file of another name": (lambda session, folder: session.load(
        folder / "x.safetensors", {"a": ones()}), "there is no '"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str, session: sluice.Session, tmp_path: Path) -> None:
    mistake, words = MISTAKES[name]
    with pytest.raises(sluice.Error) as error:
        mistake(session, tmp_path)
    assert words in str(error.value)
    assert [word for word in FOREIGN if word in str(error.value)] == []


def test_a_transfer_of_nothing_warns(session: sluice.Session) -> None:
    with pytest.warns(UserWarning, match="which moves nothing"):
        session.transfer(None, None)


@pytest.mark.parametrize("text, wanted", [
    ("bucket run 10 window 0 round 0 phase 1, rank 2 -> 0, n 0: send of 2097152 bytes from rank 2, "
     "tag 10240: rank 0, process 14567, has ended",
     "rank 0, process 14567, has ended (send of 2097152 bytes from rank 2, tag 10240) "
     "(bucket run 10 window 0 round 0 phase 1, rank 2 -> 0, n 0)"),
    ("SaveCheckpoint failed on rank 0: bucket run 0 window 0 round 0 phase 0, rank 0 -> 0, n 0: "
     "cannot write x: No space left on device",
     "save failed on rank 0: cannot write x: No space left on device "
     "(bucket run 0 window 0 round 0 phase 0, rank 0 -> 0, n 0)"),
    ("bucket run 0 window 0 round 0 phase 0, rank 0 -> 0, n 0: cannot write /x: No space left",
     "cannot write /x: No space left (bucket run 0 window 0 round 0 phase 0, rank 0 -> 0, n 0)"),
    ("rank 1 waits in Connect", "rank 1 waits in transfer"),
    ("tensor 'Connect' and 'a.Connect'", "tensor 'Connect' and 'a.Connect'"),
    ("Connection refused", "Connection refused"),
    ("budget_buckets is 0; it must be 1 or more, or kNoLimit",
     "budget_buckets is 0; it must be 1 or more, or None for no limit"),
])
def test_words(text: str, wanted: str) -> None:
    assert _words.in_python(text, []) == wanted


class Open:
    """A session of a world."""

    closed = False
    members = [sluice.Member("trainer", 0, "vm", 7), sluice.Member("server", 0, "vm", 8),
               sluice.Member("server", 1, "vm", 9)]


def test_members_have_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_words, "_sessions", {Open()})
    text = "rank 2, process 9, has ended; rank 1 and rank 2"
    assert _words.in_python(text, [2]) == (
        "server 1 (rank 2), process 9, has ended; rank 1 and rank 2")
    assert _words.in_python("rank 2 is lost", [7]) == "rank 2 is lost"


def rank_comes_twice(session: sluice.Session) -> Any:
    error = error_of(sluice.Session.from_env)
    session._vote(0)  # rank 0 serves the store until the other one has its error
    return error


def test_a_second_session_of_a_process() -> None:
    for error in run_ranks(2, rank_comes_twice):
        assert error["types"][0] == "InvalidSpec"
        assert "has a session of its environment already: close that one first" in error["text"]


def rank_gives_what_is_unsupported(session: sluice.Session, folder: str) -> Any:
    given = {"w": np.zeros(2, "datetime64[s]") if session.rank == 1 else ones(2)}
    return [error_of(session.transfer, given if session.rank == 1 else None, None),
            error_of(session.sync, given if session.rank == 1 else None, None),
            error_of(session.save, folder, given, progress=False)]


def test_one_fault_is_of_one_kind_on_all_ranks(tmp_path: Path) -> None:
    for errors in run_ranks(2, rank_gives_what_is_unsupported, str(tmp_path / "x")):
        for error in errors:
            assert error["types"][0] == "Unsupported" and error["tensor"] == "w"
            assert "dtype datetime64[s] is not supported" in error["text"]
