"""Bad values: one rank gives them, all ranks hear of them, and the session goes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sluice
from ranks import error_of, run_ranks

HUGE = 1 << 70
LONE = "b\ud800"  # no UTF-8
SHOWN = r"b\\ud800"  # in a text, as C escapes it

Call = Callable[[sluice.Session, str, bool], Any]  # of a session, a folder, and whether it is wrong


def give(session: sluice.Session, wrong: bool, *, window: Any = None, name: str = "a",
         shape: tuple[int, ...] = (4,), mesh: list[int] | None = None, boxes: bool = False,
         call: str = "transfer", given: Any = None, **options: Any) -> None:
    """Rank 0 has the source, and rank 1 the destination, with these values where it is wrong."""
    array = np.full(4, 1 - session.rank, np.float32)
    state: Any = {"a": array}
    if wrong and given is not None:
        state = given
    elif wrong:
        view = None if shape != (4,) else array
        layout: Any = None if mesh is None else sluice.Layout(mesh, "R")
        state = [sluice.Tensor(name, shape, "f32", layout, view, window)]
        if boxes:
            state = {"a": sluice.Boxes([sluice.Box((0,), (4,), array)], shape)}
    elif call == "transfer":
        options = {"late": options.get("late", False)}
    else:
        options = {}
    sides = (state, None) if session.rank == 0 else (None, state)
    getattr(session, call)(*sides, **options)


def giving(**values: Any) -> Call:
    return lambda session, folder, wrong: give(session, wrong, **values)


def storing(call: str, *, place: Callable[[str], Any] = str, **bad: Any) -> Call:
    def store(session: sluice.Session, folder: str, wrong: bool) -> None:
        options: dict[str, Any] = dict(bad) if wrong else {}
        if call == "stream":
            options.setdefault("format", "npy")
            folder = f"buffered:{folder}"
        given: Any = (place(folder) if wrong else folder,)
        if call != "stream":
            given += ({options.pop("name", "a"): options.pop("tensor", np.zeros(4, np.float32))},)
        getattr(session, call)(*given, **options)

    return store


def loading_parts(*given: Any) -> Call:
    """Each rank has a half of the tensor, and a wrong one gives these in place of its own."""
    def load(session: sluice.Session, folder: str, wrong: bool) -> None:
        half = sluice.Tensor("a", (4,), "f32", sluice.Layout([0, 1], "S(0)"),
                             np.zeros(2, np.float32))
        session.load(folder, given if wrong else [half])

    return load


def raises(name: str) -> str:
    raise KeyError(name)


LOCKED = np.zeros(4, np.float32)
LOCKED.flags.writeable = False
SHARED = np.zeros(5, np.float32)

# Of each: what rank 1 does wrong, the text on all ranks, and the tensor that it names.
BAD: dict[str, tuple[Call, str, str | None]] = {
    "window": (giving(window=1 << 40), "window 1099511627776 has to be a number", "a"),
    "text window": (giving(window="x"), "window 'x' has to be a number", "a"),
    "window_of": (giving(window_of=lambda name: 1 << 40), "0 to 65535", "a"),
    "name": (giving(name=LONE), f"tensor '{SHOWN}'", LONE),
    "rename": (giving(rename=lambda name: LONE), f"tensor '{SHOWN}'", LONE),
    "renames": (giving(rename={LONE: "a"}), f"tensor '{SHOWN}'", LONE),
    "priority": (giving(priority=1 << 40), "priority is 1099511627776", None),
    "shape": (giving(shape=(HUGE,), late=True), "64 bits", "a"),
    "shape of boxes": (giving(shape=(HUGE,), boxes=True), "64 bits", "a"),
    "mesh": (giving(mesh=[1, 1 << 40]), "no rank", "a"),
    "name in sync": (giving(call="sync", name=LONE), f"tensor '{SHOWN}'", LONE),
    "version in sync": (giving(call="sync", version=1 << 63), "version is 9223372036854775808",
                        None),
    "no dtype": (giving(given={"a": np.zeros(4, "datetime64[s]")}),
                 "'a': dtype datetime64[s] is not supported", "a"),
    "read only": (giving(given={"a": LOCKED}), "'a': its memory cannot be written to", "a"),
    "no tensor": (giving(given={"a": "a text"}), "'a' is a str, and only tensors move", "a"),
    "local shape": (giving(given=[sluice.Tensor("a", (4,), "f32", sluice.Layout([0, 1], "S(0)"),
                                                np.zeros(4, np.float32))]),
                    "'a': its memory has shape [4]", "a"),
    "negative window": (giving(window_of={"a": -1}), "'a': window -1 has to be", "a"),
    "rename raises": (giving(rename=raises), "KeyError: 'a'", None),
    "memory twice": (giving(given={"a": SHARED[:4], "b": SHARED[1:]}, rename={"b": "a"}),
                     "tensor 0 'a' and destination of tensor 1 'b' share memory", "a"),
    "allocate": (lambda session, folder, wrong: session.allocate(HUGE if wrong else 8),
                 "a number of bytes", None),
    "name in load": (storing("load", name=LONE), f"tensor '{SHOWN}'", LONE),
    "rename in load": (storing("load", rename={"a": LONE}), f"tensor '{SHOWN}'", LONE),
    "uri": (storing("load", place=lambda folder: folder + "\udcff"), "uri is ", None),
    "uri in bytes": (storing("load", place=os.fsencode), "uri is b'", None),
    "option in load": (storing("load", colour=1), "there is no option 'colour'", None),
    "object in load": (storing("load", tensor=object()), "'a': an object is no tensor", "a"),
    "strict": (storing("load", strict="yes"), "strict is 'yes'", None),
    "number as uri": (storing("load", place=lambda folder: 3), "uri is 3", None),
    "connections": (storing("load", connections=1 << 40), "'connections' is 1099511627776", None),
    "timeout": (storing("load", timeout=float("nan")), "'timeout' is not a number", None),
    "file": (storing("load", ca_file="\udcff"), "'ca_file' is ", None),
    "directory": (storing("save", place=lambda folder: folder + "\udcff"), "directory is ", None),
    "directory in bytes": (storing("save", place=os.fsencode), "directory is b'", None),
    "stream": (storing("stream", place=lambda folder: folder + "\udcff"), "uri is ", None),
    "option of stream": (storing("stream", colour="red"), "there is no option 'colour'", None),
    "text for a number": (storing("stream", batch_items="many"), "'batch_items' is 'many'", None),
    "format": (storing("stream", format="tar"), "'format' is 'tar'", None),
    "device": (storing("stream", device=7), "'device' is 7", None),
    "state": (storing("stream", state={"cursor": 3}), "not what Stream.state_dict returned", None),
    "no source": (storing("stream", place=lambda folder: ""), "needs a uri or a generator", None),
    "seed": (storing("stream", seed=-1), "'seed' is -1", None),
    "transform": (storing("stream", transform=sluice.Transform(shape=(HUGE,))), "64 bits", None),
    "infinite transform": (storing("stream", transform=sluice.Transform(
        crop=(float("inf"), 0, 1, 1))), "transform: ", None),  # type: ignore[arg-type]
}

# Values that do not fit those of rank 0: the call, the error, its text, ranks and tensor.
OTHERS: dict[str, tuple[Call, str, str, list[int], str | None]] = {
    "shape": (giving(given={"a": np.zeros(5, np.float32)}), "InvalidSpec",
              "source 'a' of rank 0 has shape [4], target 'a' of rank 1 [5]", [0, 1], "a"),
    "dtype": (giving(given={"a": np.zeros(4, np.int32)}), "InvalidSpec",
              "source 'a' of rank 0 is f32, target 'a' of rank 1 i32", [0, 1], "a"),
    "name": (giving(given={"v": np.zeros(4, np.float32)}), "InvalidSpec",
             "no rank has a source for target 'v' of rank 1", [0, 1], "v"),
    "layout in load": (loading_parts(sluice.Tensor(
        "a", (4,), "f32", sluice.Layout([0, 1], "R"), np.zeros(4, np.float32))), "Disagreement",
        "'a': rank 0 has placements ['S(0)'], and rank 1 has ['R']", [0, 1], "a"),
    "nothing in load": (loading_parts(), "Disagreement",
                        "'a': rank 1 is in its mesh [0, 1], and does not give it", [1], "a"),
    "seed": (storing("stream", seed=1), "Disagreement",
             "ranks disagree on the stream's options", [0, 1], None),
    "call": (lambda session, folder, wrong: session.allocate(8) if wrong else session.stream(
        f"buffered:{folder}", format="npy"), "Disagreement",
        "ranks call different things: rank 0 stream, rank 1 allocate: all ranks make the same "
        "calls in the same order", [0, 1], None),
}


def rank_gives_badly(session: sluice.Session, folder: str) -> Any:
    """The error of each, and whether the session is as good as before."""
    found = []
    for step, (call, *_) in enumerate((*BAD.values(), *OTHERS.values())):
        error = error_of(call, session, folder, session.rank == 1)
        array = np.full(4, step, np.float32)
        target = np.zeros(4, np.float32)
        with session.transfer({"w": array} if session.rank == 0 else None,
                              {"w": target} if session.rank == 1 else None) as transfer:
            transfer.run()
        found.append([error, session.rank == 0 or bool((target == array).all())])
    return found


def test_on_one_rank(session: sluice.Session, tmp_path: Path) -> None:
    np.save(tmp_path / "items.npy", np.zeros((8, 4), np.uint8))
    session.save(tmp_path, {"a": np.zeros(4, np.float32)})
    for rank, found in enumerate(run_ranks(2, rank_gives_badly, str(tmp_path))):
        for (what, (_, text, tensor)), (error, good) in zip(BAD.items(), found):
            assert good, what
            kind = "Unsupported" if what == "no dtype" else "InvalidSpec"
            assert kind in error["types"] and text in error["text"], (what, rank, error)
            assert rank == 1 or error["ranks"] == [1], (what, error)
            # A text that came from another rank has the name as it is shown.
            shown = None if tensor is None else tensor.encode(errors="backslashreplace").decode()
            assert error["tensor"] == (tensor if rank == 1 else shown), (what, rank, error)
        for (what, (_, kind, text, ranks, tensor)), (error, good) in zip(OTHERS.items(),
                                                                         found[len(BAD):]):
            assert good and kind in error["types"] and text in error["text"], (what, rank, error)
            assert error["ranks"] == ranks and error["tensor"] == tensor, (what, rank, error)


def rank_starts_badly(session: sluice.Session) -> Any:
    array = np.full(4, 1 - session.rank, np.float32)
    transfer = session.transfer({"a": array} if session.rank == 0 else None,
                                {"a": array} if session.rank == 1 else None)
    found = []
    for bad in ({"version": 1 << 63}, {"version": "x"}, {"version": float("inf")}, {"stream": -1}):
        found.append(error_of(transfer.start, **bad))
        transfer.run()
    return found


def test_starts_that_no_rank_makes() -> None:
    texts = ("version is 9223372036854775808", "version is 'x'", "version is inf", "CUDA stream")
    for errors in run_ranks(2, rank_starts_badly):
        for error, text in zip(errors, texts):
            assert "InvalidSpec" in error["types"] and text in error["text"], error


def test_rebind_without_memory(session: sluice.Session) -> None:
    target = np.zeros(4, np.float32)
    transfer = session.transfer({"a": np.ones(4, np.float32)}, {"a": target})
    for side in ("src", "dst"):
        with pytest.raises(sluice.InvalidSpec, match="'a' has no memory") as error:
            transfer.rebind(**{side: [sluice.Tensor("a", (4,), "f32")]})
        assert error.value.tensor == "a"
    transfer.run()
    assert target.tolist() == [1] * 4


def test_the_largest_values(session: sluice.Session, tmp_path: Path) -> None:
    np.save(tmp_path / "items.npy", np.zeros((8, 4), np.uint8))
    for seed in (0, (1 << 64) - 1):
        with session.stream(f"buffered:{tmp_path}", format="npy", shuffle=True,
                            seed=seed) as stream:
            assert sorted(item for batch in stream for item in batch.items) == list(range(8))
    source, target = np.ones(4, np.float32), np.zeros(4, np.float32)
    transfer = session.transfer({"a": source}, {"a": target}, priority=3,
                                window_of=lambda name: np.int64(65535))
    transfer.run((1 << 63) - 1)
    assert target.tolist() == [1] * 4 and transfer.version == (1 << 63) - 1
