"""Mistakes of users, and the words that they get: of Python, with names first."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sluice
from ranks import SESSION_SECONDS, error_of, free_port, run_ranks
from sluice import _words
from stand_ins import Tensor
from test_session import file_gather, rank_and_size

#: Words of C++ or of the engine that no user of Python should need.
FOREIGN = ("kNoLimit", "ignore_unused_sources", "late_targets", "device buffers", "Connect",
           "sluice-bench", "LoadCheckpoint", "SaveCheckpoint", "OpenStream")


def ones(n: int = 4) -> Any:
    return np.ones(n, np.float32)


def holds_batches(session: sluice.Session, folder: Path) -> None:
    np.save(folder / "items.npy", np.zeros((10, 2), np.float32))
    with session.stream(folder, format="npy") as stream:
        [batch.keep() for batch in stream]


def expanded() -> Any:
    return np.lib.stride_tricks.as_strided(ones(), (4, 8), (4, 0))


def moves(session: sluice.Session, _: Path) -> None:
    tensor = Tensor((2, 3))
    transfer = session.transfer({"w": tensor}, {"w": np.zeros((2, 3), np.float32)})
    tensor.memory = Tensor((2, 3)).memory
    transfer.run()


def resizes(session: sluice.Session, _: Path) -> None:
    array = np.zeros(4, np.float32)
    transfer = session.transfer({"w": array}, {"w": ones()})
    array.resize((2, 2), refcheck=False)
    transfer.run()


NO_VIEW = [sluice.Tensor("a", (4,), "f32")]

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
               "'step' is an int, and only tensors move: leave it out"),
    "a list": (lambda session, _: session.sync({"groups": [{"lr": 1.0}]}, None),
               "'groups' is a list, and only tensors move: leave it out, as by {k: v for k, v in "
               "state.items() if hasattr(v, 'shape')}; save and load keep numbers"),
    "an object": (lambda session, _: session.transfer({"a": object()}, None),
                  "'a': an object is no tensor: it has neither data_ptr"),
    "expanded": (lambda session, _: session.transfer({"a": np.zeros((4, 8), np.float32)},
                                                     {"a": expanded()}),
                 "'a': several elements of a destination of shape [4, 8] and strides [1, 0] have "
                 "one place in memory, as after expand(); give memory of its own"),
    "moved": (moves, "'w' has moved to other memory since it was bound; give it to rebind, or make "
                     "a new transfer"),
    "resized": (resizes, "'w' was bound with local shape (4,) and now has (2, 2): make a new "
                         "transfer"),
    "no memory": (lambda session, _: session.sync({"a": ones()}, NO_VIEW),
                  "destination 'a' has no memory (it is on meta, was freed, or has no view): give "
                  "it memory before, or use session.transfer(late=True)"),
    "None as target": (lambda session, _: session.transfer({"a": ones()}, {"a": None}),
                       "no target asks for source 'a' of rank 0; ignore_unused=True would allow "
                       "it; rank 0 gives None for 'a'"),
    "None as renamed target": (lambda session, _: session.sync({"a": ones()}, {"b": None},
                                                               rename={"b": "a"}),
                               "; rank 0 gives None for 'b'"),
    "None as source": (lambda session, _: session.transfer({"a": None}, {"a": ones()}),
                       "no rank has a source for target 'a' of rank 0; rank 0 gives None for 'a'"),
    "rename": (lambda session, _: session.transfer(
        {"a": ones()}, {"a": ones()}, rename="model"),  # type: ignore[arg-type]
               "rename is 'model'; it has to be a dict or a function"),
    "rename of sync": (lambda session, _: session.sync(
        {"a": ones()}, {"a": ones()}, rename=["model"]),  # type: ignore[arg-type]
                       "rename is ['model']; it has to be a dict or a function"),
    "rename of save": (lambda session, folder: session.save(
        folder / "x", {"a": ones()}, rename="model"),  # type: ignore[arg-type]
                       "rename is 'model'; it has to be a dict or a function"),
    "rename of into": (lambda session, _: session.transfer(
        {"a": ones()}, sluice.into({"a": ones()}, "model")),  # type: ignore[arg-type]
                       "rename is 'model'; it has to be a dict or a function"),
    "views of into": (lambda session, _: session.transfer(
        {"a": ones()}, sluice.into({"a": ones()}, views="a")),  # type: ignore[arg-type]
                      "views is 'a'; it has to be a dict or a function"),
    "window_of": (lambda session, _: session.transfer(
        {"a": ones()}, {"a": ones()}, window_of=3),  # type: ignore[arg-type]
                  "window_of is 3; it has to be a dict or a function"),
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


def in_versions(session: sluice.Session) -> None:
    with sluice.World.join(f"tcp://127.0.0.1:{free_port()}", rank=0, size=1) as world:
        assert next(world.versions()) == 1


@pytest.mark.parametrize("call", [
    lambda session: session.transfer(None, {}), lambda session: session.sync(),
    lambda session: sluice.sync({}, {}, session=session), in_versions])
def test_a_transfer_of_nothing_warns(session: sluice.Session,
                                     call: Callable[[sluice.Session], Any]) -> None:
    text = "^no rank gives a tensor as src= or dst=, so nothing moves$"
    with pytest.warns(UserWarning, match=text) as warned:
        call(session)
    code = call.__code__
    (warning,) = warned
    assert warning.filename == code.co_filename
    assert warning.lineno in {line for *_, line in code.co_lines()}


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
    session._vote("from_env", 0)  # rank 0 serves the store until the other one has its error
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


def stands(session: sluice.Session, folder: str) -> sluice.Stream:
    return session.stream(folder, format="npy")


def rank_calls_something_else(session: sluice.Session, folder: str) -> Any:
    """Rank 2 is elsewhere than the others, which call sync: without a plan, and with one."""
    source, target = {"w": ones()}, {"w": np.zeros(4, np.float32)}

    def sync() -> None:
        sluice.sync(source if session.rank == 0 else None,
                    None if session.rank == 0 else target, session=session)

    def trace() -> None:
        with session.trace(f"{folder}.trace"):
            pass

    stream = stands(session, folder)
    transfer = session.transfer(source if session.rank == 0 else None,
                                None if session.rank == 0 else target)
    others = {"save": lambda: session.save(f"{folder}.saved", source, progress=False),
              "load": lambda: session.load(folder, target, progress=False),
              "allocate": lambda: session.allocate(100),
              "stream": lambda: stands(session, folder), "trace": trace,
              "checksums": lambda: transfer.checksums("src"),
              "Stream.load_state_dict": lambda: stream.load_state_dict(stream.state_dict())}
    found = []
    for _ in range(2):
        found += [[name, error_of(other if session.rank == 2 else sync)]
                  for name, other in others.items()]
        sync()
        assert session.rank == 0 or target["w"].tolist() == [1] * 4
    found.append(["Stream.close", error_of(stream.close if session.rank == 2 else sync)])
    wrong = error_of(session.load if session.rank == 2 else session.save, folder, {"w": "text"})
    sides = error_of(transfer.checksums, "dst" if session.rank == 2 else "src")
    return [found, wrong, sides]


def test_calls_that_differ(tmp_path: Path) -> None:
    np.save(tmp_path / "items.npy", np.zeros((10, 2), np.float32))
    ends = ": all ranks make the same calls in the same order"
    results = run_ranks(3, rank_calls_something_else, str(tmp_path), trace_events=8)
    for found, wrong, sides in results:
        assert len(found) == 15
        for name, error in found:
            assert error["types"][0] == "Disagreement" and error["ranks"] == [0, 2]
            assert error["text"] == (f"ranks call different things: rank 0 sync, rank 2 {name}"
                                     + ends)
        assert wrong["text"] == f"ranks call different things: rank 0 save, rank 2 load{ends}"
        assert sides["text"] == ("ranks call different things: rank 0 checksums of src, rank 2 "
                                 f"checksums of dst{ends}")


def rank_calls_first(folder: str) -> Any:
    rank, size = rank_and_size()
    with sluice.Session.from_exchange(rank, size, file_gather(folder, rank, size),
                                      timeout=SESSION_SECONDS) as session:
        return error_of(session.transfer if rank else session.sync, {"w": ones()})


def test_first_calls_that_differ(tmp_path: Path) -> None:
    first, second = run_ranks(2, rank_calls_first, str(tmp_path), session=False)
    assert first["types"][0] == second["types"][0] == "Disagreement"
    assert "different things: rank 0 sync, another rank transfer: all ranks" in first["text"]
    assert "rank 1 transfer, another rank a call such as sync, load or save: " in second["text"]


def rank_has_options() -> Any:
    rank = int(os.environ["RANK"])
    found = [error_of(sluice.Session.from_env, **(wrong if rank == 0 else right))
             for wrong, right in (({"budget_bukets": 8}, {"budget_buckets": 8}),
                                  ({"budget_buckets": "8"}, {"budget_buckets": 8}),
                                  ({"budget_buckets": 9}, {"budget_buckets": 8}),
                                  ({"budget_bukets": 8}, {"budget_buckets": 0}))]
    with sluice.Session.from_env(timeout=SESSION_SECONDS) as session:
        session.allocate(0)
    return found


def test_options_that_are_wrong_on_one_rank() -> None:
    for rank, (typo, kind, differs, both) in enumerate(run_ranks(3, rank_has_options,
                                                                 session=False)):
        place = "" if rank == 0 else "from_env: rank 0: "
        assert typo["types"][0] == kind["types"][0] == "InvalidSpec"
        assert typo["text"].startswith(f"{place}there is no option 'budget_bukets'; did you mean")
        assert kind["text"] == (f"{place}option 'budget_buckets' is '8'; it has to be int or None")
        assert differs["types"][0] == "Disagreement"
        assert "8 on ranks 1, 2, 9 on rank 0" in differs["text"]
        assert both["types"][0] == "InvalidSpec"
        assert ("budget_bukets" if rank == 0 else "budget_buckets is 0") in both["text"]
