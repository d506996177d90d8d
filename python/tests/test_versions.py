"""`World.versions`: trainers and servers that are killed and started again, that leave, and join."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sluice
from ranks import (LIMIT_SECONDS, SESSION_SECONDS, free_port, hear, is_told, job_limit, run_ranks,
                   start_rank, tell)

# The server first: it serves the store.
ROLES = {"server": 1, "trainer": 1}
ITEMS = 1000
# After so long a member counts as lost that has left by an exception and lives.
QUIET_SECONDS = 20


def join(role: str, rank: int = 0, roles: dict[str, int] | None = None) -> sluice.World:
    roles = roles or ROLES
    return sluice.World.join(os.environ["SLUICE_WORLD"], role=role, rank=rank, size=roles[role],
                             roles=roles, timeout=240)


def note(path: str, *values: float) -> None:
    with open(path, "a") as out:
        out.write(json.dumps(values) + "\n")


def noted(path: Path) -> list[list[float]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True)
            if line.endswith("\n")]


def member_trains(out: str, first: float) -> Any:
    """All weights are `first` in its first round, and one more in each round after that."""
    weights = np.full(ITEMS, first, np.float32)
    with join("trainer") as world:
        for version in world.versions(src={"w": weights}, timeout=SESSION_SECONDS):
            note(out, version, float(weights[0]))
            if is_told("the end"):
                break
            weights += 1
    return True


def member_serves(out: str) -> Any:
    weights = np.zeros(ITEMS, np.float32)
    with join("server") as world:
        for version in world.versions(dst={"w": weights}, timeout=SESSION_SECONDS):
            note(out, version, float(weights.min()), float(weights.max()))
    return True


class Job:
    """Members that a test starts, and kills."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {"SLUICE_WORLD": f"tcp://127.0.0.1:{free_port()}",
                             "SLUICE_TEST_FOLDER": str(folder)}
        self._members: dict[str, Any] = {}

    def start(self, name: str, function: Callable[..., Any], *args: Any) -> Path:
        """The file that it notes its rounds in."""
        out = self.folder / f"{name}.notes"
        self._members[name] = start_rank(function, (str(out), *args), self._environment,
                                         self.folder / name, session=False, options={})
        return out

    def kill(self, name: str) -> None:
        self._members[name].send_signal(signal.SIGKILL)
        self._members.pop(name).wait()

    def wait(self, what: str, is_there: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT_SECONDS
        while not is_there():
            for name, process in self._members.items():
                assert process.poll() in (None, 0), f"{name} has ended\n{self.output()}"
            assert time.monotonic() < end, f"{what} does not come\n{self.output()}"
            time.sleep(0.01)

    def output(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')}"
                         for path in sorted(self.folder.glob("*.log")))

    def end(self) -> None:
        for process in self._members.values():
            job_limit.end(process.pid)
            process.wait()


@contextmanager
def job() -> Iterator[Job]:
    with tempfile.TemporaryDirectory() as folder:
        made = Job(Path(folder))
        try:
            yield made
        finally:
            made.end()


def check(served: list[list[float]], trained: list[list[float]]) -> None:
    """Each version that a server has had is one that the trainer has sent, whole."""
    sent = dict(trained)
    for version, least, most in served:
        assert least == most, f"version {version} has values {least} to {most}"
        # A trainer may be killed between a round and its note.
        assert sent.get(version, least) == least, version
    versions = [version for version, _, _ in served]
    assert versions == sorted(set(versions))


def test_members_that_are_killed_and_started_again() -> None:
    with job() as members:
        first_trainer = members.start("trainer-1", member_trains, 1000.0)
        first_server = members.start("server-1", member_serves)
        members.wait("version 3", lambda: len(noted(first_server)) >= 3)

        members.kill("trainer-1")
        second_trainer = members.start("trainer-2", member_trains, 5000.0)
        members.wait("a version of the second trainer", lambda: any(
            least >= 5000 for _, least, _ in noted(first_server)))

        members.kill("server-1")  # and the store with it
        second_server = members.start("server-2", member_serves)
        members.wait("a version after the store was lost", lambda: len(noted(second_server)) >= 3)

        (members.folder / "the end.told").touch()
        for name in ("trainer-2", "server-2"):
            members.wait(f"the end of {name}", (members.folder / name).exists)
        output = members.output()
        trained = noted(first_trainer) + noted(second_trainer)
        check(noted(first_server), trained)
        check(noted(second_server), trained)
        assert noted(second_server)[0][0] > noted(first_server)[-1][0]
        assert noted(second_server)[-1] == [*noted(second_trainer)[-1], noted(second_trainer)[-1][1]]
        assert "the next session begins after version" in output


def rank_leaves() -> Any:
    """Rank 0 is the server, and rank 1 the trainer that leaves after three rounds."""
    weights = np.zeros(ITEMS, np.float32)
    seen = []
    if os.environ["RANK"] == "0":
        with join("server") as world:
            for version in world.versions(dst={"w": weights}, timeout=SESSION_SECONDS):
                seen.append([version, float(weights[0])])
        return seen
    with join("trainer") as world:
        for version in world.versions(src={"w": weights}, timeout=SESSION_SECONDS):
            weights += 1
            if version == 3:
                break
    return version


def test_the_loop_ends_with_who_leaves_it() -> None:
    assert run_ranks(2, rank_leaves, session=False) == [[[1, 0.0], [2, 1.0], [3, 2.0]], 3]


def member_of_three(out: str, role: str, number: int) -> Any:
    """The trainer leaves in its second round, once a server is dead."""
    weights = np.zeros(ITEMS, np.float32)
    side = {"src" if role == "trainer" else "dst": {"w": weights}}
    with join(role, number, {"server": 2, "trainer": 1}) as world:
        for version in world.versions(**side, timeout=SESSION_SECONDS):
            note(out, version)
            if role == "trainer" and version == 2:
                hear("a server is dead")
                break
    return True


def test_members_that_are_lost_hear_later_that_one_has_left() -> None:
    with job() as members:
        members.start("server-0", member_of_three, "server", 0)
        lost = members.start("server-1", member_of_three, "server", 1)
        members.start("trainer", member_of_three, "trainer", 0)
        members.wait("version 2", lambda: len(noted(lost)) == 2)
        members.kill("server-1")
        (members.folder / "a server is dead.told").touch()
        members.start("server-2", member_of_three, "server", 1)
        for name in ("server-0", "server-2", "trainer"):
            members.wait(f"the end of {name}", (members.folder / name).exists)


def rank_raises() -> Any:
    """The trainer leaves by an exception, and comes again."""
    weights = np.zeros(ITEMS, np.float32)
    if os.environ["RANK"] == "0":
        with join("server") as world:
            return [version for version in world.versions(dst={"w": weights},
                                                          timeout=QUIET_SECONDS)]
    with pytest.raises(ZeroDivisionError), join("trainer") as world:
        for version in world.versions(src={"w": weights}, timeout=QUIET_SECONDS):
            if version == 2:
                raise ZeroDivisionError
    with join("trainer") as world:
        return next(world.versions(src={"w": weights}, timeout=QUIET_SECONDS))


def test_the_loop_goes_on_where_one_leaves_by_an_exception() -> None:
    assert run_ranks(2, rank_raises, session=False) == [[1, 2, 3], 3]


def rank_comes_late() -> Any:
    """Rank 0 trains, rank 1 is the server that is there all the time, and rank 2 comes and goes."""
    rank = int(os.environ["RANK"])
    roles = {"trainer": 1, "server": 2}
    weights = np.zeros(ITEMS, np.float32)
    if rank == 2:
        hear("a version has come to one server")
    role, number = ("trainer", 0) if rank == 0 else ("server", rank - 1)
    sides = {"src": {"w": weights}} if rank == 0 else {"dst": {"w": weights}}
    wrong = 0
    with join(role, number, roles) as world:
        for version in world.versions(**sides, min={"server": 1}, timeout=SESSION_SECONDS):
            if rank == 0:
                weights += 1
                if is_told("the late server has left"):
                    break
            else:
                wrong += float(weights[0]) != version - 1
                tell("a version has come to one server")
                if rank == 2 and version > 1:
                    break
    if rank == 2:
        tell("the late server has left")
    return wrong


def test_a_server_comes_and_goes() -> None:
    assert run_ranks(3, rank_comes_late, session=False)[1:] == [0, 0]


def test_one_loop_at_a_time() -> None:
    with sluice.World.join(f"tcp://127.0.0.1:{free_port()}", rank=0, size=1) as world:
        versions = world.versions()
        assert [next(versions), next(versions)] == [1, 2]
        with pytest.raises(sluice.InvalidSpec, match="in a loop of versions already"):
            world.versions()


def test_a_loop_that_has_not_begun_yields_to_another() -> None:
    with sluice.World.join(f"tcp://127.0.0.1:{free_port()}", rank=0, size=1) as world:
        first, second = world.versions(), world.versions()
        assert next(second) == 1
        with pytest.raises(sluice.InvalidSpec, match="this loop is over"):
            next(first)


def test_a_loop_ends_by_what_it_cannot_carry() -> None:
    src, odd = {"w": np.ones(4, np.float32)}, {"w": np.zeros(5, np.float32)}
    with sluice.World.join(f"tcp://127.0.0.1:{free_port()}", rank=0, size=1) as world:
        versions = world.versions(src, odd)
        with pytest.raises(sluice.InvalidSpec, match="'w'"):
            next(versions)
        assert list(versions) == []
        assert next(world.versions(src, {"w": np.zeros(4, np.float32)})) == 1


def test_a_trainer_alone_goes_on() -> None:
    with sluice.World.join(f"tcp://127.0.0.1:{free_port()}", role="trainer", rank=0, size=1,
                           roles={"trainer": 1, "server": 1}) as world:
        versions = world.versions({"w": np.ones(4, np.float32)}, min={"server": 0})
        assert [next(versions), next(versions)] == [1, 2]


@pytest.mark.parametrize("least", [5, {"server": 1.5}, {"server": None}, {"server": 10 ** 30}])
def test_min_is_checked(least: Any) -> None:
    with sluice.World.join(f"tcp://127.0.0.1:{free_port()}", role="trainer", rank=0, size=1,
                           roles={"trainer": 1, "server": 1}) as world:
        with pytest.raises(sluice.InvalidSpec, match="min "):
            world.session(min=least)


SLEEPER = '''
import logging, sys, threading, time, sluice
said = threading.Event()
class Sleeper(logging.Handler):
    def createLock(self):
        self.lock = None  # which logging would wait for at the end
    def emit(self, record):
        said.set()
        while True: time.sleep(0.001)  # asks for the GIL also when Python has ended
logging.getLogger("sluice").addHandler(Sleeper())
world = sluice.World.join(sys.argv[1], role="a", roles={"a": 1, "b": 1}, rank=0, size=1)
threading.Thread(target=world.session, daemon=True).start()
said.wait()
'''


LAST_LINE = '''
import atexit, logging, sys, threading, time, sluice
said, ends = threading.Event(), threading.Event()
class Slow(logging.Handler):
    def createLock(self):
        self.lock = None
    def emit(self, record):
        said.set()
        ends.wait()
        time.sleep(0.2)
        print("logged", flush=True)
logging.getLogger("sluice").addHandler(Slow())
world = sluice.World.join(sys.argv[1], role="a", roles={"a": 1, "b": 1}, rank=0, size=1)
threading.Thread(target=world.session, daemon=True).start()
said.wait()
atexit.register(ends.set)
'''


FORKS = '''
import logging, os, sys, threading, sluice
ended = threading.Event()
def fork(record):
    child = os.fork()
    if child == 0:
        sys.exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
    ended.set()
    return False
logging.getLogger("sluice").addFilter(fork)
world = sluice.World.join(sys.argv[1], role="a", roles={"a": 1, "b": 1}, rank=0, size=1)
threading.Thread(target=world.session, daemon=True).start()
ended.wait()
'''

SECOND = '''
import logging, os, sys, threading, sluice
os.environ.update(SLUICE_WORLD=sys.argv[1], RANK="0", WORLD_SIZE="2")
said = threading.Event()
logging.getLogger("sluice").addFilter(lambda record: said.set())
threading.Thread(target=sluice.Session.from_env, daemon=True).start()
said.wait()
try:
    sluice.Session.from_env()
except sluice.InvalidSpec as error:
    print(error)
'''


@pytest.mark.parametrize("program, output", [
    (SLEEPER, ""), (LAST_LINE, "logged\n"), (FORKS, "0\n"),
    (SECOND, "this process has a session of its environment already: close that one first\n")])
def test_a_process_that_waits_says_so_and_ends(program: str, output: str) -> None:
    done = subprocess.run([sys.executable, "-c", program, f"tcp://127.0.0.1:{free_port()}"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")


def rank_waits_long() -> Any:
    """Rank 0 waits for rank 1 to join, to make a transfer, and to run it, until it says so."""
    import logging

    rank = int(os.environ["RANK"])

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append([record.levelname, record.getMessage()])
            tell(f"line {len(lines)}")

    lines: list[list[str]] = []
    logging.getLogger("sluice").addHandler(Heard())
    if rank == 1:
        hear("line 1")
    with sluice.Session.from_env(timeout=SESSION_SECONDS) as session:
        if rank == 1:
            hear("line 2")
        here = {"w": np.full(4, rank, np.float32)}
        transfer = session.transfer(here if rank == 1 else None, here if rank == 0 else None)
        if rank == 1:
            hear("line 3")
        transfer.run()
        return lines, here["w"].tolist()


def test_whoever_waits_says_so() -> None:
    (lines, weights), _ = run_ranks(2, rank_waits_long, session=False)
    assert weights == [1, 1, 1, 1]
    assert [level for level, _ in lines] == ["WARNING"] * len(lines)
    joins, calls, runs = (text for _, text in lines[:3])
    assert joins.startswith("sluice: waiting for member 1 to join the world")
    assert "at tcp://127.0.0.1:" in joins
    assert calls.startswith("sluice: waiting for rank 1 to call transfer, for ")
    assert re.match(r"sluice: waiting for run (\d+) \(rank 1 has not started run \1", runs)
