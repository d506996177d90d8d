"""What the binding does to a process: its end, forks, signals, other interpreters."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from ranks import LIMIT_SECONDS, free_port, job_limit, wait_until_it_waits

HERE = str(Path(__file__).parent)

# What all scripts begin with.
HEAD = """
import atexit, gc, os, signal, sys, threading, time
import sluice
from sluice import _sluice
from local_ranks import entry, error_of, view, whole_on
from ranks import interrupt_when_it_waits, wait_until_it_waits

def join(rank, timeout=240.0):
    \"\"\"Joins a world of two, whose store the first serves.\"\"\"
    return _sluice.World.join(store=sys.argv[1], rank=rank, size=2, role="member", token="t",
                              timeout=timeout, bind="127.0.0.1")

def pair(rank, **options):
    \"\"\"Makes this process' session of such a world.\"\"\"
    world = join(rank)
    return world, world.session(options={"timeout": 120, **options})

def connect(session, late=False):
    data = bytearray([session.rank] * 8)
    sources = [entry("x", (8,), whole_on(0), data)] if session.rank == 0 else []
    targets = [entry("x", (8,), whole_on(1), data)] if session.rank == 1 else []
    return session.connect(sources, targets), data

def say(text):
    print(text, flush=True)
"""


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    env = {**os.environ,
           "PYTHONPATH": os.pathsep.join([HERE, *filter(None, sys.path)])}
    return subprocess.Popen([sys.executable, "-c", HEAD + textwrap.dedent(script), *arguments],
                            env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        output = process.communicate(timeout=LIMIT_SECONDS)[0]
    except subprocess.TimeoutExpired:
        stacks = job_limit.stacks(process.pid)
        job_limit.end(process.pid)
        raise AssertionError(f"hangs after: {process.communicate()[0]}\n{stacks}") from None
    return process.returncode, output


def run(script: str) -> str:
    code, output = end(start(script, f"tcp://127.0.0.1:{free_port()}"))
    assert code == 0, output
    return output


def run_pair(first: str, second: str) -> tuple[str, str]:
    store = f"tcp://127.0.0.1:{free_port()}"
    both = [start(first, store), start(second, store)]
    try:
        ended = [end(process) for process in both]
    finally:
        for process in both:
            job_limit.end(process.pid)
    for code, output in ended:
        assert code == 0, f"{ended}"
    return ended[0][1], ended[1][1]


def wait_for_line(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if text in line:
            return
    raise AssertionError(f"no {text} in {seen}")


PEER = """
    world, session = pair(1)
    connection, data = connect(session)
    run = connection.start()
    assert run.wait(120) and data == bytearray(8)
    say("moved")
"""


def test_processes_meet_at_a_store() -> None:
    first, second = run_pair("""
        world, session = pair(0)
        members = world.members()
        assert [(one["role"], one["rank"], one["alive"]) for one in members] == [
            ("member", 0, True), ("member", 1, True)]
        assert members[0]["pid"] == os.getpid()
        assert world.missing() == [] and world.fabric_rank("member", 1) == 1
        assert world.store_address == sys.argv[1] and world.epoch == 0
        connection, data = connect(session)
        assert connection.start().wait(120)
        session.close()
        world.close()
        assert error_of(world.members)[0] == 9
        say("moved")
    """, PEER + """
    session.close()
    world.close()
    """)
    assert "moved" in first and "moved" in second


@pytest.mark.parametrize("progress, waits", [(False, True), (True, True), (False, False)])
def test_a_process_may_end_with_its_session_open(progress: bool, waits: bool) -> None:
    # A run that is in flight is carried out at the process' end.
    run_pair(f"""
        world, session = pair(0, progress_thread={progress})
        connection, data = connect(session)
        run = connection.start()
        assert not {waits} or run.wait(120)
    """, PEER)


def test_a_process_may_end_while_its_threads_are_in_calls() -> None:
    run("""
        fabrics = _sluice.local_fabrics(2)
        about_to = threading.Barrier(3)

        def waits(rank):
            session = fabrics[rank].session()
            connection, data = connect(session)
            about_to.wait()
            if rank == 1:
                connection.start().wait()
            else:
                session.open_stream({"item_bytes": 8, "generator_items": 1 << 40,
                                     "exchange": False},
                                    lambda item, into: None)
        threads = [threading.Thread(target=waits, args=(rank,), daemon=True) for rank in range(2)]
        for thread in threads:
            thread.start()
        about_to.wait()
        for thread in threads:
            wait_until_it_waits(os.getpid(), thread.native_id)
    """)


@pytest.mark.parametrize("call", ["session.poll()", "connection.start().wait()",
                                  "(run or connection.start()).wait(0.001)"])
def test_a_process_may_end_while_a_thread_calls_again_and_again(call: str) -> None:
    # The thread asks for the GIL when there is none to be had any more.
    run(f"""
        called = []

        def calls():
            session = _sluice.local_fabrics(1)[0].session()
            connection = session.connect([], [])
            run = None
            while True:
                {call}
                called.append(1)
        threads = [threading.Thread(target=calls, daemon=True) for _ in range(3)]
        for thread in threads:
            thread.start()
        while len(called) < 100:
            time.sleep(0.01)
    """)


def test_a_process_may_end_while_a_generator_runs() -> None:
    run("""
        session = _sluice.local_fabrics(1)[0].session()
        def generator(item, into):
            time.sleep(0.01)
        stream = session.open_stream({"item_bytes": 8, "generator_items": 1 << 40,
                                      "generator_threads": 3, "generate_ahead": 50}, generator)
        lease = stream.next()
        kept = stream.next().dlpack()
    """)


# Each waits for ever: `call` is what the main thread is in.
WAITS_ALONE = {
    "session": "call = join(0, 36000.0).session",
    "wait_for_all": "call = join(0, 36000.0).wait_for_all",
    "join": """
        call = lambda: _sluice.World.join(store="tcp://127.0.0.1:1", rank=0, size=2, token="t",
                                          serve=False, bind="127.0.0.1", store_timeout=36000.0)
    """,
}
WAITS_FOR_THE_OTHER = {
    "wait": """
        connection, data = connect(session)
        run = connection.start()
        run.wait(0.1)
        call = run.wait
    """,
    "connect": "call = lambda: session.connect([], [])",
    "allocate": "call = lambda: session.allocate(8)",
    "load": "call = lambda: session.load('file:/nowhere', [])",
    "next": """
        stream = session.open_stream({"item_bytes": 8, "generator_items": 9, "exchange": False},
                                     lambda item, into: time.sleep(0.1 if item < 2 else 1e6))
        assert stream.next() and stream.next()
        call = stream.next
    """,
    "close": """
        connection, data = connect(session)
        run = connection.start()
        call = session.close
    """,
}


@pytest.mark.parametrize("name", [*WAITS_ALONE, *WAITS_FOR_THE_OTHER])
def test_ctrl_c_is_heard_in(name: str) -> None:
    store = f"tcp://127.0.0.1:{free_port()}"
    peer = None
    first = WAITS_ALONE.get(name, "")
    if not first:
        first = "world, session = pair(0, timeout=36000)\n" + textwrap.dedent(
            WAITS_FOR_THE_OTHER[name])
        peer = start("""
            world, session = pair(1, timeout=36000)
            if sys.argv[2] in ("wait", "close"):
                connection, data = connect(session)
            if sys.argv[2] == "next":
                stream = session.open_stream({"item_bytes": 8, "generator_items": 9,
                                              "exchange": False}, lambda item, into: None)
            while True:
                session.poll()
                time.sleep(0.01)
        """, store, name)
    process = start(textwrap.dedent(first) + textwrap.dedent("""
        try:
            say("waiting")
            call()
        except KeyboardInterrupt:
            say("interrupted")
            os._exit(7)
        say("returned")
    """), store)
    try:
        wait_for_line(process, "waiting")
        wait_until_it_waits(process.pid)
        process.send_signal(signal.SIGINT)
        code, output = end(process)
        assert code == 7 and "interrupted" in output, output
    finally:
        job_limit.end(process.pid)
        if peer is not None:
            job_limit.end(peer.pid)
            peer.communicate()


def test_a_call_that_was_interrupted_goes_on_behind() -> None:
    output = run("""
        may_go = threading.Event()
        fabrics = _sluice.local_fabrics(2)

        def other():
            session = fabrics[1].session()
            assert may_go.wait(120)
            connection, data = connect(session)
            assert session.connect([], []).start().wait(120)
            session.close()
        thread = threading.Thread(target=other)
        thread.start()
        session = fabrics[0].session()
        try:
            interrupt_when_it_waits()
            connect(session)
            say("returned")
        except KeyboardInterrupt:
            say("interrupted")
        may_go.set()
        # Waits for the connection that was interrupted, and goes on after it.
        assert session.connect([], []).start().wait(120)
        session.close()
        thread.join()
    """)
    assert "interrupted" in output and "returned" not in output


def test_a_batch_that_came_after_ctrl_c_is_not_lost() -> None:
    output = run("""
        session = _sluice.local_fabrics(1)[0].session()
        may_go = threading.Event()
        def generator(item, into):
            if item == 1:
                may_go.wait(120)
            into[0] = item
        stream = session.open_stream({"item_bytes": 1, "generator_items": 4}, generator)
        assert stream.next().item(0) == 0
        try:
            interrupt_when_it_waits()
            stream.next()
            say("returned")
        except KeyboardInterrupt:
            say("interrupted")
        may_go.set()
        seen = []
        while (lease := stream.next()) is not None:
            seen.append(lease.item(0))
            del lease
        say(seen)
        session.close()
    """)
    assert "interrupted" in output and "[1, 2, 3]" in output


def test_a_process_may_end_while_an_interrupted_call_goes_on() -> None:
    store = f"tcp://127.0.0.1:{free_port()}"
    process = start("""
        world = join(0, 36000.0)
        say("waiting")
        world.wait_for_all()
    """, store)
    wait_for_line(process, "waiting")
    wait_until_it_waits(process.pid)
    process.send_signal(signal.SIGINT)
    code, output = end(process)
    assert "KeyboardInterrupt" in output
    assert code in (130, -signal.SIGINT), (code, output)


def test_a_child_of_a_process_that_used_nothing_may_use_all() -> None:
    output = run("""
        child = os.fork()
        if child == 0:
            session = _sluice.local_fabrics(1)[0].session()
            assert session.connect([], []).start().wait(120)
            session.close()
            say("child moved")
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """)
    assert "child moved" in output


@pytest.mark.parametrize("answers", [False, True])
def test_a_session_that_is_dropped_with_a_run_in_flight(answers: bool) -> None:
    # The other rank never starts the run. Where it is silent, the run fails, and the memory is free.
    # Where it answers, the session cannot be closed in its time, and the memory stays for ever.
    output = run(f"""
        fabrics = _sluice.local_fabrics(2)
        class Owner:
            def __del__(self):
                say("freed")

        def other():
            session = fabrics[1].session({{"timeout": 8, "progress_thread": {answers}}})
            connection, data = connect(session)
            try:
                while True:
                    if {answers}:
                        session.poll()
                    time.sleep(0.01)
            except sluice.Error as error:  # as Python ends, it closes every session
                assert "closed" in str(error), error
        threading.Thread(target=other, daemon=True).start()
        session = fabrics[0].session({{"timeout": 8}})
        data, owner = bytearray(8), Owner()
        connection = session.connect(
            [("x", (8,), "u8", whole_on(0), view(data, (8,)), None, owner)], [])
        run = connection.start()
        del owner
        gc.collect()
        say("dropping")
        del session, connection, run
        gc.collect()
        say("ends")
    """)
    # Besides, the session says for whom it waits.
    said = [line for line in output.splitlines() if not line.startswith("sluice: waiting for run ")]
    assert said == ["dropping", *(["freed"] if not answers else []), "ends"]


def test_importing_the_module_loads_no_library_that_is_not_needed() -> None:
    output = run("""
        loaded = open("/proc/self/maps").read()
        for library in ("libcurl", "libucp", "libmpi", "libcudart", "libtorch"):
            assert library not in loaded, library
        assert "numpy" not in sys.modules and "torch" not in sys.modules
    """)
    assert output == ""


def test_stores_say_who_may_reach_them() -> None:
    from sluice import _sluice
    server = _sluice.StoreServer("127.0.0.1", 0, "secret")
    assert server.address == f"tcp://127.0.0.1:{server.port}"
    with pytest.raises(Exception, match="token"):
        _sluice.World.join(store=server.address, rank=0, size=1, token="wrong", serve=False)
    server.close()
    server.close()
    with pytest.raises(Exception, match="closed"):
        _: Any = server.port
