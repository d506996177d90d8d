"""Ranks of one process for the tests of the binding: each is a thread with a session of its own."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import threading
import traceback
from collections.abc import Callable
from typing import Any

from ranks import LIMIT_SECONDS, SESSION_SECONDS, job_limit
from sluice import _sluice


def view(data: bytearray, shape: tuple[int, ...], dtype: str = "u8") -> tuple[Any, ...]:
    """The view of all of a bytearray, which has to be kept."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(data)) if data else 0
    return (address, shape, None, dtype, 1, 0)


def entry(name: str, shape: tuple[int, ...], layout: Any, data: bytearray | None,
          part: tuple[int, ...] | None = None) -> tuple[Any, ...]:
    """A tensor of bytes for connect: `part` is the shape of this rank's memory."""
    memory = None if data is None else view(data, part or shape)
    return (name, shape, "u8", layout, memory, None, data)


def whole_on(rank: int) -> Any:
    return _sluice.Layout([1], [rank], ["R"])


def on_ranks(size: int, work: Callable[[Any, int], Any], *, close: bool = True,
             **options: Any) -> list[Any]:
    """[work(session, rank) of each rank]. Raises what the first rank raised that did."""
    fabrics = _sluice.local_fabrics(size)
    results: list[Any] = [None] * size
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            session = fabrics[rank].session({"timeout": SESSION_SECONDS, **options})
            results[rank] = work(session, rank)
            if close:
                session.close()
        except BaseException as error:
            traceback.print_exc()
            errors.append(error)

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_SECONDS)
    if any(thread.is_alive() for thread in threads):
        faulthandler.dump_traceback(all_threads=True)
        raise AssertionError(f"a rank hangs:\n{job_limit.frames(os.getpid())}")
    if errors:
        raise errors[0]
    return results


def error_of(work: Callable[[], Any]) -> tuple[int, str]:
    """Code and text of the error that work() raises."""
    try:
        work()
    except Exception as error:
        return getattr(error, "code", -1), str(error)
    raise AssertionError("no error was raised")
