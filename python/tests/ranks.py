"""Starts functions of the tests as ranks: each in a process of its own, which meet at a store.

    results = run_ranks(2, rank_adds, 3)     # [rank_adds(session, 3) of rank 0, of rank 1]

A rank function is at the top level of a test file. It gets a session, unless it is started with
session=False. What it returns has to fit into JSON.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2] / "scripts/nodes"))

import job_limit  # noqa: E402  (of scripts/nodes)

job_limit.hear_ctrl_c()

LIMIT_SECONDS = 300.0  # against hanging: nothing takes so long, even beside a build
# Of sessions whose test is not about silence: far longer than a rank says nothing beside a build.
SESSION_SECONDS = 120.0
_FOLDER = "SLUICE_TEST_FOLDER"  # of the ranks that were started together


@dataclass
class RankEnd:
    """How a rank has ended."""

    result: Any  # None, where it has not returned
    returncode: int
    output: str


_kept_ports: list[socket.socket] = []


def _bound(port: int) -> socket.socket:
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(("127.0.0.1", port))
    except OSError:
        bound.close()
        raise
    return bound


def free_port() -> int:
    """A port to listen at with SO_REUSEADDR, as stores do. The one after it is free, too: PyTorch's
    store listens at one and Sluice's beside. Nobody else gets them while this process lives: both
    are bound here, and nobody listens."""
    while True:
        first = _bound(0)
        port: int = first.getsockname()[1]
        with contextlib.suppress(OSError, OverflowError):
            _kept_ports.extend([first, _bound(port + 1)])
            return port
        first.close()


def start_rank(function: Callable[..., Any], args: tuple[Any, ...], environment: dict[str, str],
               out: Path, *, session: bool, options: dict[str, Any]) -> subprocess.Popen[bytes]:
    module = Path(function.__code__.co_filename)
    task = {"path": str(module.parent), "module": module.stem, "function": function.__name__,
            "args": args, "session": session, "options": options, "out": str(out)}
    env = {**os.environ, **environment}
    env["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path),
                                         *filter(None, [environment.get("PYTHONPATH")])])
    with open(f"{out}.log", "wb") as log:
        return subprocess.Popen([sys.executable, __file__, json.dumps(task)], env=env, stdout=log,
                                stderr=subprocess.STDOUT)


def ranks_end(size: int, function: Callable[..., Any], *args: Any, session: bool = True,
              environment: dict[str, str] | None = None, limit: float = LIMIT_SECONDS,
              **options: Any) -> list[RankEnd]:
    """How each of `size` ranks ends. Fails where one is still there after `limit` seconds."""
    shared = {"SLUICE_WORLD": f"tcp://127.0.0.1:{free_port()}", "WORLD_SIZE": str(size),
              "SLUICE_WORLD_TIMEOUT": "240s", **(environment or {})}
    with tempfile.TemporaryDirectory() as folder:
        shared[_FOLDER] = folder
        outs = [Path(folder) / str(rank) for rank in range(size)]
        processes = [
            start_rank(function, args, {**shared, "RANK": str(rank)}, outs[rank],
                       session=session, options=options) for rank in range(size)]
        end = time.monotonic() + limit
        late = []
        for rank, process in enumerate(processes):
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                late.append(rank)
        stacks = "".join(job_limit.stacks(process.pid) for process in processes) if late else ""
        for rank in late:
            processes[rank].send_signal(signal.SIGABRT)  # faulthandler says where it is
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(60 if late else None)
            job_limit.end(process.pid)
            process.wait()
        ends = [
            RankEnd(json.loads(out.read_text()) if out.exists() else None, process.returncode,
                    Path(f"{out}.log").read_text(errors="replace"))
            for out, process in zip(outs, processes)]
    if late:
        raise AssertionError(f"ranks {late} hang:\n{stacks}{_all_output(ends)}")
    return ends


def run_ranks(size: int, function: Callable[..., Any], *args: Any, **how: Any) -> list[Any]:
    """What `function` returns on each rank. Fails if one of them does not end well."""
    ends = ranks_end(size, function, *args, **how)
    if any(end.returncode for end in ends):
        raise AssertionError(_all_output(ends))
    return [end.result for end in ends]


def _all_output(ends: list[RankEnd]) -> str:
    return "\n".join(f"--- rank {rank}: exit {end.returncode}\n{end.output}"
                     for rank, end in enumerate(ends))


def tell(word: str) -> None:
    """To the other ranks, whatever the session does."""
    (Path(os.environ[_FOLDER]) / f"{word}.told").touch()


def is_told(word: str) -> bool:
    return (Path(os.environ[_FOLDER]) / f"{word}.told").exists()


def hear(*words: str) -> None:
    """Waits until other ranks have told all of these."""
    end = time.monotonic() + LIMIT_SECONDS
    for word in words:
        while not is_told(word):
            assert time.monotonic() < end, f"no rank tells '{word}'"
            time.sleep(0.01)


def meet(place: str) -> None:
    """Waits until all ranks have come to this place of theirs, whatever their sessions do."""
    tell(f"{os.environ['RANK']} has come to {place}")
    hear(*(f"{rank} has come to {place}" for rank in range(int(os.environ["WORLD_SIZE"]))))


def wait_until_it_waits(pid: int, thread: int | None = None) -> None:
    """Until a thread, or the main one of a process, which is about to make a call that waits, is in
    it: the thread has slept several times, or has run for longer than it takes to get there."""
    def look() -> tuple[bool, int]:
        try:
            path = Path(f"/proc/{pid}/task/{thread or pid}/stat")
            stat = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            return True, 0
        return stat[0] not in "RD", int(stat[11]) + int(stat[12])

    asleep, (_, begin) = 0, look()
    ticks = begin
    while asleep < 3 and ticks - begin < 5:
        time.sleep(0.01)
        sleeps, ticks = look()
        asleep += sleeps


def interrupt_when_it_waits() -> None:
    """Ctrl-C, once the main thread is in a call that waits."""
    def interrupt() -> None:
        wait_until_it_waits(os.getpid())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()


def error_of(call: Callable[..., Any], *args: Any, **named: Any) -> dict[str, Any]:
    """What `call` raises, as JSON: for ranks to return."""
    try:
        call(*args, **named)
    except Exception as error:  # noqa: BLE001 - the tests look at its type
        return {"types": [kind.__name__ for kind in type(error).__mro__], "text": str(error),
                "ranks": list(getattr(error, "ranks", ())),
                "tensor": getattr(error, "tensor", None)}
    return {"types": [], "text": "nothing was raised", "ranks": [], "tensor": None}


def _main() -> None:
    import faulthandler

    faulthandler.enable()
    task = json.loads(sys.argv[1])
    sys.path.insert(0, task["path"])
    function = getattr(importlib.import_module(task["module"]), task["function"])
    if task["session"]:
        import sluice

        options = {"timeout": SESSION_SECONDS, **task["options"]}
        with sluice.Session.from_env(**options) as session:
            result = function(session, *task["args"])
    else:
        result = function(*task["args"])
    Path(task["out"]).write_text(json.dumps(result))


if __name__ == "__main__":
    _main()
