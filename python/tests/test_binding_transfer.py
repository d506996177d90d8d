"""Transfers, runs and memory of the binding, between ranks that are threads."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from itertools import permutations
from typing import Any

import pytest
from local_ranks import entry, error_of, on_ranks, view, whole_on

FAILED_PRECONDITION = 9


class Owner:
    """Something that a weak reference can watch."""


def test_memory_that_comes_late() -> None:
    names = ["a", "b"]
    out = {name: bytearray(16) for name in names}
    owners: list[Any] = []

    def work(session: Any, rank: int) -> list[tuple[str, str]]:
        if rank == 0:
            sources = [entry(name, (16,), whole_on(0), bytearray([i + 1] * 16))
                       for i, name in enumerate(names)]
            assert session.connect(sources, []).start().wait(120)
            return []
        targets = [("a", (16,), "u8", whole_on(1), None, 0), ("b", (16,), "u8", whole_on(1), None,
                                                              1)]
        connection = session.connect([], targets, late_targets=True)
        order = connection.names()
        run = connection.start(late=True)
        seen = []
        deadline = time.monotonic() + 240
        while not run.is_done() and time.monotonic() < deadline:
            session.poll()
            event = session.next_event()
            if event is None:
                continue
            kind, number, tensor, message = event
            assert number == run.number and message == ""
            seen.append((kind, order[tensor]))
            if kind == "needs_memory":
                owner = Owner()
                owners.append(weakref.ref(owner))
                run.supply(tensor, view(out[order[tensor]], (16,)), owner)
                del owner
                gc.collect()
                assert owners[-1]() is not None
        assert run.wait(120)
        gc.collect()
        assert [owner() for owner in owners] == [None, None]
        while (event := session.next_event()) is not None:
            seen.append((event[0], order[event[2]]))
        return seen

    seen = on_ranks(2, work)[1]
    assert seen == [("needs_memory", "a"), ("tensor_done", "a"), ("needs_memory", "b"),
                    ("tensor_done", "b")]
    assert out == {"a": bytearray([1] * 16), "b": bytearray([2] * 16)}


def test_calls_from_another_thread_are_refused(native: Any) -> None:
    connection = native.connect([], [])
    run = connection.start()
    assert run.wait(120)
    heard: list[tuple[int, str]] = []

    def elsewhere() -> None:
        for call in (native.poll, native.close, connection.start, connection.names,
                     run.cancel, lambda: native.connect([], []), native.counters):
            heard.append(error_of(call))
        assert run.is_done() and native.report() and not native.closed

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(heard) == 7
    for code, text in heard:
        assert code == FAILED_PRECONDITION and "thread" in text


def test_what_is_used_after_close_raises(native: Any) -> None:
    connection = native.connect([], [])
    run = connection.start()
    assert run.wait(120)
    memory = native.allocate(100)
    over = connection.start()
    native.close()
    assert native.closed
    native.close()  # once more is nothing
    for call in (native.poll, native.report, native.counters, connection.start,
                 connection.names, connection.stats, connection.drop, over.wait, over.cancel,
                 over.is_done, lambda: native.allocate(1), lambda: native.connect([], []),
                 lambda: over.supply(0, view(bytearray(1), (1,)))):
        code, text = error_of(call)
        assert code == FAILED_PRECONDITION and "closed" in text
    assert run.is_done() and run.wait() and run.number == 1
    assert bytes(memory.memory) == bytes(100)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_objects_may_go_in_any_order(order: tuple[int, ...]) -> None:
    def work(session: Any, rank: int) -> list[Any]:
        connection = session.connect([], [])
        run = connection.start()
        assert run.wait(120)
        return [session, connection, run]

    for held in on_ranks(2, work, close=False):
        for i in order:
            held[i] = None
            gc.collect()


def test_owners_are_kept_until_nothing_uses_their_memory() -> None:
    may_start = threading.Event()

    def work(session: Any, rank: int) -> None:
        data = bytearray(8)
        owner = Owner()
        watched = weakref.ref(owner)
        side = ("x", (8,), "u8", whole_on(rank), view(data, (8,)), None, owner)
        connection = session.connect([side] if rank == 0 else [], [side] if rank == 1 else [])
        del owner, side
        gc.collect()
        assert watched() is not None
        if rank == 0:
            assert may_start.wait(120)
        run = connection.start()
        # Other memory is bound while the run has the old one.
        other = bytearray(8)
        bound = [("x", view(other, (8,)), other)]
        connection.rebind(bound if rank == 0 else [], bound if rank == 1 else [])
        if rank == 1:
            gc.collect()
            assert watched() is not None and not run.is_done()
            may_start.set()
        assert run.wait(120)
        gc.collect()
        assert watched() is None
        connection.drop()
        assert error_of(connection.start)[0] == FAILED_PRECONDITION

    on_ranks(2, work)


def test_allocated_memory_outlives_its_session() -> None:
    def work(session: Any, rank: int) -> Any:
        memory = session.allocate(4096 if rank == 0 else 0)
        assert len(memory) == memory.nbytes == (4096 if rank == 0 else 0)
        return memory

    memory = on_ranks(2, work)[0]
    lent = memory.memory
    assert lent.nbytes == 4096 and not lent.readonly and bytes(lent) == bytes(4096)
    lent[5] = 7
    del memory
    gc.collect()
    assert lent[5] == 7
