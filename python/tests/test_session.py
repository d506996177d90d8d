"""How ranks become a session, and what a session says of itself."""

from __future__ import annotations

import gc
import json
import os
import socket
import threading
import time
import urllib.request
import weakref
from pathlib import Path
from typing import Any

import pytest
import sluice
from local_ranks import on_ranks
from ranks import (
    error_of,
    hear,
    interrupt_when_it_waits,
    meet,
    ranks_end,
    run_ranks,
    tell,
    wait_until_it_waits,
)
from sluice import _group

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
            end = time.monotonic() + 240
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


def rank_exchanges(folder: str) -> Any:
    rank, size = rank_and_size()
    with sluice.Session.from_exchange(rank, size, file_gather(folder, rank, size)) as session:
        votes = [bytes(m.pid.to_bytes(4, "big")).hex() for m in session.members]
        return [session.rank, session.size, len(set(votes))]


def test_exchange(tmp_path: Path) -> None:
    assert run_ranks(3, rank_exchanges, str(tmp_path), session=False) == [
        [0, 3, 3], [1, 3, 3], [2, 3, 3]]


class FakeComm:
    """The part of mpi4py's communicators that is used."""

    def __init__(self, folder: str) -> None:
        self._rank, self._size = rank_and_size()
        self.allgather = file_gather(folder, self._rank, self._size)

    def Get_rank(self) -> int:
        return self._rank

    def Get_size(self) -> int:
        return self._size


def rank_uses_mpi(folder: str) -> Any:
    with sluice.Session.from_mpi(FakeComm(folder)) as session:
        return [session.rank, session.size]


def test_mpi(tmp_path: Path) -> None:
    assert run_ranks(2, rank_uses_mpi, str(tmp_path), session=False) == [[0, 2], [1, 2]]


def rank_gives_bad_option(folder: str) -> Any:
    rank, size = rank_and_size()
    options: dict[str, Any] = {"no_such_option": 1} if rank == 1 else {}
    return error_of(sluice.Session.from_exchange, rank, size, file_gather(folder, rank, size),
                    **options)


def test_bad_option_of_one_rank_reaches_all(tmp_path: Path) -> None:
    for error in run_ranks(3, rank_gives_bad_option, str(tmp_path), session=False):
        assert "InvalidSpec" in error["types"]
        assert "no_such_option" in error["text"]


def rank_has_other_version(folder: str) -> Any:
    rank, size = rank_and_size()
    gather = file_gather(folder, rank, size)

    def altered(payload: bytes) -> list[bytes]:
        card = json.loads(payload)
        if rank == 1:
            card["version"] = "0.0.1"
        return gather(json.dumps(card).encode())

    return error_of(sluice.Session.from_exchange, rank, size, altered)


def test_mixed_versions(tmp_path: Path) -> None:
    for error in run_ranks(2, rank_has_other_version, str(tmp_path), session=False):
        assert "Disagreement" in error["types"]
        assert "rank 1 has 0.0.1" in error["text"]
        assert error["ranks"] == [0, 1]


def rank_joins_badly(folder: str) -> Any:
    rank, size = rank_and_size()
    wires = "no such wire" if rank == 1 else "auto"
    return error_of(sluice.Session.from_exchange, rank, size, file_gather(folder, rank, size),
                    wires=wires)


def test_failed_join_reaches_all(tmp_path: Path) -> None:
    for error in run_ranks(2, rank_joins_badly, str(tmp_path), session=False):
        assert "Error" in error["types"]
        assert "no such wire" in error["text"]


def test_allgather_that_lies() -> None:
    with pytest.raises(sluice.InvalidSpec, match="1 answers for 2 ranks"):
        sluice.Session.from_exchange(0, 2, lambda payload: [payload])
    with pytest.raises(sluice.Disagreement, match="rank 1"):
        sluice.Session.from_exchange(0, 2, lambda payload: [payload, payload])
    with pytest.raises(sluice.Disagreement, match="not from Sluice"):
        sluice.Session.from_exchange(0, 2, lambda payload: [payload, b"hello"])
    with pytest.raises(sluice.InvalidSpec, match="rank is 2"):
        sluice.Session.from_exchange(2, 2, lambda payload: [payload, payload])


def rank_has_bad_option_in_environment() -> Any:
    rank, _ = rank_and_size()
    options: dict[str, Any] = {"timeout": "soon"} if rank == 0 else {}
    return error_of(sluice.Session.from_env, **options)


def test_bad_option_with_environment() -> None:
    bad, good = run_ranks(2, rank_has_bad_option_in_environment, session=False)
    assert "InvalidSpec" in bad["types"] and "timeout" in bad["text"]
    assert good["types"], "the other rank has to hear that rank 0 has left"


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


def rank_disagrees_on_budget(session_is_none: None = None) -> Any:
    rank, _ = rank_and_size()
    return error_of(sluice.Session.from_env, budget_buckets=8 + rank)


def test_different_options() -> None:
    for error in run_ranks(2, rank_disagrees_on_budget, session=False):
        assert "Disagreement" in error["types"]


def test_environment_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("SLUICE_", "SLURM_", "OMPI_", "PMI_")) or name in (
                "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
            monkeypatch.delenv(name)
    with pytest.raises(sluice.InvalidSpec, match="RANK"):
        sluice.Session.from_env()


def rank_is_interrupted(session: sluice.Session) -> Any:
    if session.rank == 0:
        # Rank 1 does not come before Ctrl-C has ended the waiting for it.
        try:
            interrupt_when_it_waits()
            session.allocate(100)
        except KeyboardInterrupt:
            tell("interrupted")
            os._exit(0)
        raise AssertionError("nothing was interrupted")
    hear("interrupted")
    error_of(session.allocate, 100)
    os._exit(0)


def test_ctrl_c() -> None:
    ends = ranks_end(2, rank_is_interrupted, timeout=3600.0)
    assert [end.returncode for end in ends] == [0, 0], ends


def rank_metrics(session: sluice.Session) -> Any:
    source, target = bytearray(b"x" * 1000), bytearray(1000)
    transfer = session.transfer({"w": source}, {"w": target}) if session.size == 1 else None
    assert transfer is not None
    transfer.run()
    metrics = session.metrics()
    with sluice.prometheus(session, port=0) as exporter:
        url = f"http://127.0.0.1:{exporter.port}/metrics"
        text = urllib.request.urlopen(url, timeout=120).read().decode()
        missing = error_of(urllib.request.urlopen, url + "/nothing", timeout=120)
    session.reset_metrics()
    return [metrics, text, missing["text"], session.metrics()["runs"], bytes(target[:2]).decode()]


def test_metrics() -> None:
    (metrics, text, missing, runs, moved), = run_ranks(1, rank_metrics)
    assert metrics["runs"] == 1 and metrics["buckets_finished"] >= 1
    assert 'sluice_runs{rank="0"} 1' in text and "sluice_metrics_age_seconds" in text
    assert "404" in missing
    assert runs == 0 and moved == "xx"


def test_prometheus_port_in_use() -> None:
    with sluice.Session.from_exchange(0, 1, lambda payload: [payload]) as session:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            with pytest.raises(sluice.InvalidSpec, match="cannot serve"):
                sluice.prometheus(session, port=other.getsockname()[1])
        with pytest.raises(sluice.InvalidSpec, match="99999"):
            sluice.prometheus(session, port=99999)


def rank_traces(session: sluice.Session, path: str) -> Any:
    with session.trace(path):
        session.transfer({"w": bytearray(1000)}, {"w": bytearray(1000)}).run()
    return len(json.loads(Path(path).read_text())["traceEvents"])


def test_trace(tmp_path: Path) -> None:
    (events,) = run_ranks(1, rank_traces, str(tmp_path / "trace.json"), trace_events=1000)
    assert events > 0


def test_trace_that_cannot_be_written(tmp_path: Path) -> None:
    with sluice.Session.from_exchange(0, 1, lambda payload: [payload], trace_events=9) as session:
        with pytest.raises(sluice.Error, match="cannot write the trace") as raised:
            with session.trace(tmp_path / "nowhere" / "trace.json"):
                pass
    assert type(raised.value) is sluice.Error


def test_no_trace(tmp_path: Path) -> None:
    with sluice.Session.from_exchange(0, 1, lambda payload: [payload]) as session:
        with pytest.raises(sluice.Error, match="trace_events"):
            with session.trace(tmp_path / "trace.json"):
                pass


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
            return ballot.vote(5)
        ballot._own[0] = 4
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
