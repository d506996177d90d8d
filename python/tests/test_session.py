"""How ranks become a session, and what a session says of itself."""

from __future__ import annotations

import gc
import json
import os
import socket
import threading
import time
import urllib.error
import urllib.request
import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sluice
from local_ranks import on_ranks
from ranks import (LIMIT_SECONDS, error_of, hear, meet, ranks_end, run_ranks, tell,
                   wait_until_it_waits)
from sluice import _group, _sluice

# Ranks of one test that gather bytes in files, as any launcher's all-gather could.


def file_gather(folder: str, rank: int, size: int) -> Any:
    turn = 0

    def allgather(payload: bytes) -> list[bytes]:
        nonlocal turn
        turn += 1
        mine = Path(folder) / f"{turn}.{rank}"
        mine.with_suffix(f".{rank}.new").write_bytes(payload)
        mine.with_suffix(f".{rank}.new").rename(mine)
        gathered = []
        for other in range(size):
            path = Path(folder) / f"{turn}.{other}"
            end = time.monotonic() + LIMIT_SECONDS
            while not path.exists():
                assert time.monotonic() < end
                time.sleep(0.01)
            gathered.append(path.read_bytes())
        return gathered

    return allgather


def rank_and_size() -> tuple[int, int]:
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def rank_describes(session: sluice.Session) -> Any:
    members = session.members
    return [session.rank, session.size, session.epoch, [m.rank for m in members],
            members[session.rank].pid == os.getpid(), session.report(),
            [wire["rank"] for wire in session.wires()], repr(session)]


def test_environment() -> None:
    for rank, found in enumerate(run_ranks(3, rank_describes)):
        assert found[:5] == [rank, 3, 0, [0, 1, 2], True]
        assert f"rank {rank} to" in found[5]
        assert found[6] == [other for other in range(3) if other != rank]
        assert found[7] == f"<sluice.Session, rank {rank} of 3>"


def rank_exchanges(folder: str, by_mpi: bool) -> Any:
    rank, size = rank_and_size()
    gather = file_gather(folder, rank, size)
    # The part of mpi4py's communicators that is used.
    comm = SimpleNamespace(Get_rank=lambda: rank, Get_size=lambda: size, allgather=gather)
    with (sluice.Session.from_mpi(comm) if by_mpi else
          sluice.Session.from_exchange(rank, size, gather)) as session:
        return [session.rank, session.size, len({member.pid for member in session.members})]


@pytest.mark.parametrize("by_mpi", [False, True])
def test_exchange(tmp_path: Path, by_mpi: bool) -> None:
    assert run_ranks(3, rank_exchanges, str(tmp_path), by_mpi, session=False) == [
        [0, 3, 3], [1, 3, 3], [2, 3, 3]]


def rank_exchanges_badly(folder: str, what: str) -> Any:
    rank, size = rank_and_size()
    gather = file_gather(folder, rank, size)
    options: dict[str, Any] = {}
    if rank == 1 and what == "no_such_option":
        options[what] = 1
    if rank == 1 and what == "no such wire":
        options["wires"] = what

    def altered(payload: bytes) -> list[bytes]:
        card = json.loads(payload)
        if rank == 1 and what == "0.0.1":
            card["version"] = what
        return gather(json.dumps(card).encode())

    return error_of(sluice.Session.from_exchange, rank, size, altered, **options)


@pytest.mark.parametrize("what, kind, text", [
    ("no_such_option", "InvalidSpec", "no_such_option"), ("no such wire", "Error", "no such wire"),
    ("0.0.1", "Disagreement", "rank 1 has 0.0.1")])
def test_what_is_wrong_on_one_rank_reaches_all(tmp_path: Path, what: str, kind: str,
                                               text: str) -> None:
    for error in run_ranks(3, rank_exchanges_badly, str(tmp_path), what, session=False):
        assert kind in error["types"] and text in error["text"], error
        assert what != "0.0.1" or error["ranks"] == [0, 1]


def test_allgather_that_lies() -> None:
    for gather, kind, text in (
            (lambda payload: [payload], sluice.InvalidSpec, "1 answers for 2 ranks"),
            (lambda payload: [payload, payload], sluice.Disagreement, "rank 1"),
            (lambda payload: [payload, b"hello"], sluice.Disagreement, "not from Sluice")):
        with pytest.raises(kind, match=text):
            sluice.Session.from_exchange(0, 2, gather)
    with pytest.raises(sluice.InvalidSpec, match="rank is 2"):
        sluice.Session.from_exchange(2, 2, lambda payload: [payload, payload])


def rank_gives_other_options(options: list[dict[str, Any]]) -> Any:
    rank, _ = rank_and_size()
    return error_of(sluice.Session.from_env, **options[rank])


def test_other_options_with_the_environment() -> None:
    other = [{"budget_buckets": 8}, {"budget_buckets": 9}]
    for error in run_ranks(2, rank_gives_other_options, other, session=False):
        assert "Disagreement" in error["types"]
    bad, good = run_ranks(2, rank_gives_other_options, [{"timeout": "soon"}, {}], session=False)
    assert "InvalidSpec" in bad["types"] and "timeout" in bad["text"]
    assert good["types"], "the other rank has to hear that rank 0 has left"


def rank_wants_a_device(option: str) -> Any:
    options = {option: "nccl" if option == "transport" else "cuda:0"} if (
        os.environ["RANK"] == "1") else {}
    return error_of(sluice.Session.from_env, **options)


@pytest.mark.parametrize("option", ["transport", "accelerator"])
def test_a_device_that_one_rank_cannot_have_is_an_error_on_all(option: str) -> None:
    first, second = run_ranks(2, rank_wants_a_device, option, session=False)
    assert option in second["text"] and "build" in second["text"], second
    assert f"rank 1: {option}" in first["text"], first


def rank_comes_again(last: int) -> int:
    rank, _ = rank_and_size()
    for turn in range(4):
        with sluice.Session.from_env(timeout=120) as session:
            other = session.members[1 - rank].pid
            # The other one is in the next session's call while this one is still open.
            if rank == last and turn < 3:
                hear(f"left {turn}")
                wait_until_it_waits(other)
        if rank != last:
            tell(f"left {turn}")
    return turn


@pytest.mark.parametrize("last", [0, 1])
def test_one_session_after_another(last: int) -> None:
    assert run_ranks(2, rank_comes_again, last, session=False) == [3, 3]


def test_environment_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("SLUICE_", "SLURM_", "OMPI_", "PMI_")) or name in (
                "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
            monkeypatch.delenv(name)
    with pytest.raises(sluice.InvalidSpec, match="RANK"):
        sluice.Session.from_env()


def scraped(exporter: sluice.Exporter) -> dict[str, float]:
    """The values of what is served, by name and labels, of which each has its help and type."""
    url = f"http://127.0.0.1:{exporter.port}/metrics"
    text = urllib.request.urlopen(url, timeout=LIMIT_SECONDS).read().decode()
    values = {}
    for head, kind, line in zip(*[iter(text.splitlines())] * 3):
        name = head.split()[2]
        assert head.startswith("# HELP sluice_") and line.startswith(name + "{")
        assert kind == f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}"
        labels, value = line.rsplit(" ", 1)
        values[labels] = float(value)
    return values


def rank_is_scraped(session: sluice.Session) -> Any:
    rank = session.rank
    given = {"w": bytearray(1000)}
    with sluice.prometheus(session, port=0) as exporter:
        before = scraped(exporter)
        transfer = session.transfer(given if rank == 0 else None, given if rank == 1 else None)
        for _ in range(5):
            transfer.run()
        after = scraped(exporter)
        metrics = session.metrics()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/nothing")
    session.reset_metrics()
    return [before, after, metrics, session.metrics()]


def test_metrics() -> None:
    for rank, (before, after, metrics, reset) in enumerate(run_ranks(2, rank_is_scraped)):
        label = f'{{rank="{rank}"}}'
        assert before[f"sluice_runs_total{label}"] == 0
        assert after[f"sluice_runs_total{label}"] == metrics["runs"] == 5
        moved = [metrics["sent_bytes"], metrics["received_bytes"]]
        assert moved == ([0, 5000] if rank else [5000, 0])
        assert moved == [after[f"sluice_sent_bytes_total{label}"],
                         after[f"sluice_received_bytes_total{label}"]]
        assert after[f"sluice_buckets_total{label}"] == metrics["buckets_finished"] >= 5
        assert after[f'sluice_info{{rank="{rank}",role="member",'
                     f'version="{sluice.__version__}"}}'] == 1
        assert f"sluice_metrics_age_seconds{label}" in after
        assert reset["runs"] == reset["sent_bytes"] == reset["received_bytes"] == 0


def test_prometheus_port_in_use(session: sluice.Session) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(sluice.InvalidSpec, match="cannot serve"):
            sluice.prometheus(session, port=other.getsockname()[1])
    with pytest.raises(sluice.InvalidSpec, match="99999"):
        sluice.prometheus(session, port=99999)


def test_trace(tmp_path: Path, session: sluice.Session) -> None:
    with sluice.Session.from_exchange(0, 1, lambda payload: [payload], trace_events=99) as traced:
        with traced.trace(tmp_path / "trace.json"):
            traced.transfer({"w": bytearray(1000)}, {"w": bytearray(1000)}).run()
        assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        with pytest.raises(sluice.Error, match="cannot write the trace") as raised:
            with traced.trace(tmp_path / "nowhere" / "trace.json"):
                pass
        assert type(raised.value) is sluice.Error
    entered = False
    with pytest.raises(sluice.Error, match="trace_events"):
        with session.trace(tmp_path / "trace.json"):
            entered = True
    assert not entered, "it says so before anything runs"


def rank_traces(session: sluice.Session, path: str) -> Any:
    transfer = session.transfer(
        {"layers.0.weight": bytearray(64), "b": bytearray(8)} if session.rank == 0 else None,
        {"layers.0.weight": bytearray(64), "b": bytearray(8)} if session.rank > 0 else None)
    transfer.run()  # which is not in the trace
    with session.trace(path):
        transfer.run()
    with pytest.raises(KeyError, match="the user's"):
        with session.trace(path + ".failed.json"):
            raise KeyError("the user's")
    return str(session.members[session.rank])


def test_a_trace_has_all_ranks_and_arrows(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    run_ranks(3, rank_traces, str(path), trace_events=1000)
    events = json.loads(path.read_text())["traceEvents"]
    names = {event["pid"]: event["args"]["name"]
             for event in events if event["name"] == "process_name"}
    assert [names[pid].split(" (")[0] for pid in (1, 2, 3)] == ["rank 0", "rank 1", "rank 2"]
    assert all("member" in name for name in names.values())
    spans = [event for event in events if event["ph"] == "X"]
    assert {event["args"]["run"] for event in spans} == {spans[0]["args"]["run"]}, "one run"
    tensors = {event["args"]["tensor"] for event in spans}
    assert tensors <= {"layers.0.weight", "b"} and tensors
    assert all(event["args"]["tensor"] in event["name"] for event in spans)
    moves = {(event["pid"], event["args"]["from"] + 1) for event in spans
             if "from" in event["args"]}
    starts = {event["id"]: event["pid"] for event in events if event["ph"] == "s"}
    arrows = {(event["pid"], starts[event["id"]]) for event in events if event["ph"] == "f"}
    assert arrows == moves and {receiver for receiver, _ in arrows} == {2, 3}
    failed = sorted(file.name for file in tmp_path.glob("*.failed.*"))
    assert failed == [f"trace.json.failed.{rank}.json" for rank in range(3)]


def rank_allocates(session: sluice.Session) -> Any:
    memory = session.allocate(4096 * (session.rank + 1))
    refused = error_of(session.allocate, -1 if session.rank == 1 else 100)
    view = memoryview(memory.memory)
    zero = not any(view)
    view[0] = 7
    return [memory.nbytes, zero, refused]


def test_allocate() -> None:
    results = run_ranks(2, rank_allocates)
    assert [result[:2] for result in results] == [[4096, True], [8192, True]]
    for _, _, refused in results:
        assert "InvalidSpec" in refused["types"] and "-1" in refused["text"]


def rank_dies(session: sluice.Session) -> Any:
    transfer = session.transfer(
        {"w": bytearray(8)} if session.rank == 0 else None,
        {"w": bytearray(8)} if session.rank == 1 else None)
    transfer.run()
    meet("the end of its first run")  # else the loss may end that
    if session.rank == 0:
        os._exit(3)
    return error_of(transfer.run)


def test_lost_peer() -> None:
    dead, alive = ranks_end(2, rank_dies)
    assert dead.returncode == 3
    assert "PeerLost" in alive.result["types"] and "ConnectionError" in alive.result["types"]
    assert 0 in alive.result["ranks"]


def rank_closes_early(session: sluice.Session) -> Any:
    """Rank 0 leaves the session by an exception of its own, and its process goes on."""
    transfer = session.transfer({"w": np.ones(8, np.float32)} if session.rank == 0 else None,
                                {"w": np.zeros(8, np.float32)} if session.rank == 1 else None)
    transfer.run()
    meet("both have run")
    if session.rank == 0:
        with pytest.raises(ZeroDivisionError), session:
            print(1 / 0)
        hear("rank 1 has waited")
        return None
    error = error_of(transfer.run)
    tell("rank 1 has waited")
    return error


def test_a_rank_that_has_closed_its_session_is_named() -> None:
    _, error = run_ranks(2, rank_closes_early, timeout=3.0)
    assert error["types"][0] in ("Timeout", "PeerLost"), error
    assert "rank 0 has closed its session; all ranks make the same calls" in error["text"], error
    assert "progress_thread" not in error["text"], error


def test_close_does_not_wait_for_ever_for_another_rank() -> None:
    """The run waits for a rank that is there, and does not start it."""
    closed = threading.Event()

    def work(native: Any, rank: int) -> Any:
        session = sluice.Session(native)
        data = bytearray(8)
        transfer = session.transfer({"w": data}) if rank == 0 else (
            session.transfer(None, {"w": data}))
        if rank == 1:
            while not closed.wait(0.01):
                session.poll()
            transfer.run()
        else:
            run = transfer.start()
            with pytest.raises(sluice.Timeout, match="run 1 is still in flight"):
                session.close()
            assert not session.closed
            closed.set()
            run.wait()
        session.close()

    # Rank 1 always answers sooner.
    on_ranks(2, work, close=False, timeout=8)


def test_what_ranks_exchange_is_kept_while_a_run_is_in_flight() -> None:
    """As after a Ctrl-C that ends the waiting of one rank, which then drops its session."""
    joined, alive = threading.Barrier(2), []

    def exchanges(native: Any, rank: int) -> list[int]:
        ballot = _group.Ballot(native)
        if rank == 1:
            joined.wait(120)
            return ballot.vote("sync", 5)
        ballot._own[:] = [_group._CODES["sync"], 4]
        buffers = [weakref.ref(ballot._own), weakref.ref(ballot._all)]
        run = ballot._connection.start()
        del ballot
        gc.collect()
        alive.extend(buffer() is not None for buffer in buffers)
        joined.wait(120)
        run.wait(120)
        return [4, 5]

    assert on_ranks(2, exchanges) == [[4, 5], [4, 5]]
    assert alive == [True, True]


def rank_forks(session: sluice.Session) -> Any:
    source, target = bytearray(b"x" * 8), bytearray(8)
    transfer = session.transfer({"w": source} if session.rank == 0 else None,
                                {"w": target} if session.rank == 1 else None)
    run = transfer.start()
    server = _sluice.StoreServer()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        errors = {
            "wait": error_of(run.wait), "done": error_of(lambda: run.done),
            "cancel": error_of(run.cancel), "names": error_of(transfer._native.names),
            "start": error_of(transfer.start), "drop": error_of(transfer.drop),
            "transfer": error_of(session.transfer), "poll": error_of(session.poll),
            "allocate": error_of(session.allocate, 8), "report": error_of(session.report),
            "sync": error_of(session.sync, {"w": source}, {"w": target}),
            "stream": error_of(session.stream, "file:/"), "metrics": error_of(session.metrics),
            "close": error_of(session.close),
            "from_env": error_of(sluice.Session.from_env),
            "exchange": error_of(sluice.Session.from_exchange, 0, 1, lambda payload: [payload]),
            "fabrics": error_of(_sluice.local_fabrics, 1),
            "server": error_of(_sluice.StoreServer), "port": error_of(lambda: server.port),
        }
        assert _sluice.Layout([1], [0], ["R"]).local_shape((3,), 0) == (3,)
        del run, transfer, server
        gc.collect()
        with os.fdopen(writer, "w") as out:
            json.dump(errors, out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        errors = json.load(answers)
    _, status = os.waitpid(child, 0)
    run.wait(120)
    transfer.run()
    return [errors, status, target.decode(), server.port]


def test_in_a_child_of_fork_every_call_raises_and_the_parent_goes_on() -> None:
    results = run_ranks(2, rank_forks)
    for errors, status, _, port in results:
        assert status == 0 and port
        for call, error in errors.items():
            assert "Error" in error["types"], (call, error)
            assert "fork" in error["text"], (call, error)
    assert results[1][2] == "x" * 8


def test_a_session_of_one_process(tmp_path: Path) -> None:
    with sluice.Session.local(budget_buckets=4) as session:
        assert (session.rank, session.size) == (0, 1)
        assert [member.pid for member in session.members] == [os.getpid()]
        target = np.zeros(3, np.float32)
        session.sync({"w": np.ones(3, np.float32)}, {"w": target})
        assert target.tolist() == [1, 1, 1]
    with pytest.raises(sluice.InvalidSpec, match="did you mean 'budget_buckets'"):
        sluice.Session.local(budget_bukets=4)  # type: ignore[call-arg]


def test_checkpoints_of_one_process(tmp_path: Path) -> None:
    sluice.save(tmp_path / "x", {"w": np.ones(3, np.float32), "step": 7}, dtype="float16",
                progress=False)
    found = {"w": np.zeros(3, np.float32), "step": 0}
    stats = sluice.load(tmp_path / "x", found, strict=True, progress=False)
    assert found["w"].tolist() == [1, 1, 1] and found["step"] == 7
    assert stats["missing"] == stats["unexpected"] == []
