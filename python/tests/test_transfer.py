"""Transfers and runs: what moves where, events, waiting, and what is refused on all ranks."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import sluice
from ranks import error_of, hear, is_told, meet, ranks_end, run_ranks, tell

ROWS, COLUMNS = 10, 6


def whole(dtype: Any = np.float32, step: int = 0) -> Any:
    return (np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) % 100 + step).astype(dtype)


def part_of(length: int, rank: int, size: int) -> slice:
    """As torch.chunk cuts."""
    chunk = -(-length // size)
    return slice(min(rank * chunk, length), min((rank + 1) * chunk, length))


def placed(session: sluice.Session, placements: Any, array: Any,
           dtype: str = "f32") -> sluice.Tensor:
    layout = sluice.Layout(mesh=list(range(session.size)), placements=placements)
    return sluice.Tensor("w", shape=(ROWS, COLUMNS), dtype=dtype, layout=layout, view=array)


def rank_redistributes(session: sluice.Session, src: str, dst: str) -> Any:
    kinds = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn}
    rank, size = session.rank, session.size
    rows, columns = part_of(ROWS, rank, size), part_of(COLUMNS, rank, size)
    source = np.ascontiguousarray(whole(kinds[src])[rows])
    target = np.zeros((ROWS, columns.stop - columns.start), kinds[dst])
    transfer = session.transfer([placed(session, [sluice.Shard(0)], source, src)],
                                [placed(session, "S(1)", target, dst)])
    for step in range(3):
        source[:] = whole(kinds[src], step)[rows]
        transfer.start(version=step + 1).wait(timeout=240)
        wanted = whole(kinds[src], step)[:, columns].astype(kinds[dst])
        assert np.array_equal(target.astype(np.float64), wanted.astype(np.float64))
    assert transfer.version == 3
    assert transfer.names == ["w"]
    sums = transfer.checksums("src"), transfer.checksums("dst")
    progress = transfer.start(version="4")
    progress.wait()
    assert progress.done and progress.progress.bytes == progress.progress.bytes_total
    transfer.drop()
    return [sums[0] == sums[1], list(sums[0])]


@pytest.mark.parametrize("src,dst,equal", [("f32", "f32", True), ("f32", "bf16", False),
                                           ("bf16", "f8e4m3", False)])
def test_redistribute(src: str, dst: str, equal: bool) -> None:
    assert run_ranks(4, rank_redistributes, src, dst) == [[equal, ["w"]]] * 4


def rank_corrupts(session: sluice.Session) -> Any:
    rank, size = session.rank, session.size
    source = np.ascontiguousarray(whole()[part_of(ROWS, rank, size)])
    target = np.zeros((ROWS, COLUMNS), np.float32)
    transfer = session.transfer([placed(session, "S(0)", source)], [placed(session, "R", target)])
    transfer.run()
    same = transfer.checksums("src") == transfer.checksums("dst")
    if rank == 1:
        target[3, 3] += 1
    return [same, error_of(transfer.checksums, "dst"), error_of(transfer.checksums, "neither")]


def test_checksums_find_a_wrong_replica() -> None:
    for same, differs, side in run_ranks(2, rank_corrupts):
        assert same
        assert "DataLoss" in differs["types"] and differs["ranks"] == [0, 1]
        assert differs["tensor"] == "w"
        assert "InvalidSpec" in side["types"]


def rank_sends_a_state_dict(session: sluice.Session) -> Any:
    # A trainer of one rank and two servers, with nested and renamed tensors.
    shapes = {"layer.w": (4, 3), "layer.b": (3,), "scale": ()}
    if session.rank == 0:
        state = {"layer": {"w": np.arange(12, dtype=np.float32).reshape(4, 3),
                           "b": np.ones(3, np.float32)},
                 "scale": np.array(2.5, np.float32)}
        transfer = session.transfer(state, None)
        transfer.run(1)
        return None
    held = {f"engine.{name}": np.zeros(shape, np.float32) for name, shape in shapes.items()}
    transfer = session.transfer(None, held, rename=lambda name: name.removeprefix("engine."))
    transfer.run(1)
    return [held["engine.layer.w"].tolist(), held["engine.layer.b"].tolist(),
            float(held["engine.scale"])]


def test_state_dict_and_rename() -> None:
    _, *servers = run_ranks(3, rank_sends_a_state_dict)
    for w, b, scale in servers:
        assert w == np.arange(12).reshape(4, 3).tolist() and b == [1, 1, 1] and scale == 2.5


def rank_waits(session: sluice.Session) -> Any:
    transfer = one_way(session)
    if session.rank == 0:
        hear("rank 1 has waited")
        transfer.run()
        return None
    run = transfer.start()
    early = error_of(run.wait, timeout=0.2)
    assert not run.done
    tell("rank 1 has waited")
    run.wait(timeout=240)
    assert run.done
    run.wait()
    return [early, transfer_target(transfer)]


def one_way(session: sluice.Session, **how: Any) -> sluice.Transfer:
    """From rank 0 to all others."""
    if session.rank == 0:
        return session.transfer({"w": whole()}, None, **how)
    target = np.zeros((ROWS, COLUMNS), np.float32)
    transfer = session.transfer(None, {"w": target}, **how)
    transfer.test_target = target  # type: ignore[attr-defined]
    return transfer


def transfer_target(transfer: sluice.Transfer) -> Any:
    return transfer.test_target.tolist()  # type: ignore[attr-defined]


def test_wait_with_timeout() -> None:
    _, (early, target) = run_ranks(2, rank_waits)
    assert "Timeout" in early["types"] and "TimeoutError" in early["types"]
    assert target == whole().tolist()


def rank_awaits(session: sluice.Session) -> Any:
    async def moves() -> int:
        ticks = 0
        over = False

        async def ticker() -> None:
            nonlocal ticks
            while not over:
                ticks += 1
                if ticks > 5:
                    tell(f"rank {session.rank} ticks")
                await asyncio.sleep(0.01)

        other = asyncio.create_task(ticker())
        transfer = one_way(session)
        if session.rank == 0:
            while not (is_told("rank 0 ticks") and is_told("rank 1 ticks")):
                await asyncio.sleep(0.01)
        await transfer.start()
        over = True
        await other
        assert session.rank == 0 or transfer_target(transfer) == whole().tolist()
        return ticks

    return asyncio.run(moves())


def test_await_lets_others_run() -> None:
    assert all(ticks > 5 for ticks in run_ranks(2, rank_awaits))


def rank_supplies(session: sluice.Session) -> Any:
    names = [f"layer{i}" for i in range(4)]
    if session.rank == 0:
        transfer = session.transfer({name: np.full(8, i, np.float32)
                                     for i, name in enumerate(names)})
        transfer.run()
        transfer.run()
        return None
    late = [sluice.Tensor(name, (8,), "f32") for name in names]
    transfer = session.transfer(None, late, window_of=lambda name: int(name[-1]) // 2, late=True)
    seen = []
    for _ in range(2):
        held: dict[str, Any] = {}
        run = transfer.start()
        wrong = None
        for event in run.events():
            if isinstance(event, sluice.NeedsMemory):
                if wrong is None:
                    wrong = error_of(run.supply, event.tensor, np.zeros(9, np.float32))
                held[event.tensor] = np.zeros(8, np.float32)
                run.supply(event.tensor, held[event.tensor])
                seen.append(["needs", event.tensor])
            else:
                assert held[event.tensor].tolist() == [float(event.tensor[-1])] * 8
                seen.append(["done", event.tensor])
        run.wait()
    return [seen, wrong, error_of(run.supply, "nobody", np.zeros(8, np.float32))]


def test_windows() -> None:
    _, (seen, wrong, nobody) = run_ranks(2, rank_supplies)
    for first in (0, len(seen) // 2):
        events = seen[first:first + len(seen) // 2]
        assert sorted(events) == sorted([kind, f"layer{i}"] for i in range(4)
                                        for kind in ("needs", "done"))
        # The second window asks once the first is done.
        assert {name for _, name in events[:4]} == {"layer0", "layer1"}
    assert "InvalidSpec" in wrong["types"] and "layer" in wrong["text"]
    assert "InvalidSpec" in nobody["types"] and nobody["tensor"] == "nobody"


def rank_is_left_half_way(session: sluice.Session) -> Any:
    names = ["layer0", "layer1"]
    if session.rank == 0:
        run = session.transfer({name: np.ones(8, np.float32) for name in names}).start()
        hear("layer0 is whole")
        os._exit(9)
    late = [sluice.Tensor(name, (8,), "f32") for name in names]
    transfer = session.transfer(None, late, window_of=lambda name: int(name[-1]), late=True)
    held = np.zeros(8, np.float32)
    run = transfer.start()
    before = run.whole
    with pytest.raises(sluice.PeerLost):
        for event in run.events():
            if isinstance(event, sluice.TensorDone):
                tell("layer0 is whole")
            elif event.tensor == "layer0":
                run.supply(event.tensor, held)
    whole = run.whole
    session.close()
    assert run.whole == whole
    return [before, whole, held.tolist()]


def test_a_run_that_failed_says_what_is_whole() -> None:
    _, left = ranks_end(2, rank_is_left_half_way)
    assert left.result == [[], ["layer0"], [1.0] * 8], left.output


def test_late_has_to_be_said(session: sluice.Session) -> None:
    with pytest.raises(sluice.InvalidSpec, match="'w'.*late=True"):
        session.transfer({"w": np.zeros(8, np.float32)}, [sluice.Tensor("w", (8,), "f32")])


def start_and_cancel(session: sluice.Session) -> sluice.Run:
    """A run that cannot be done before the cancel: the target never gets memory."""
    if session.rank == 0:
        transfer = session.transfer({"w": np.ones(8, np.float32)})
    else:
        transfer = session.transfer(None, [sluice.Tensor("w", (8,), "f32")], late=True)
    run = transfer.start()
    run.cancel()
    return run


def rank_cancels(session: sluice.Session) -> Any:
    run = start_and_cancel(session)
    errors = [error_of(run.wait), error_of(run.cancel)]
    meet("the end of its run")  # a rank that has left would be the other's error
    return errors


def rank_awaits_cancelled(session: sluice.Session) -> Any:
    run = start_and_cancel(session)
    deadline = time.monotonic() + 240
    while not run.done and time.monotonic() < deadline:
        session.poll()

    async def awaits() -> None:
        await run

    session._prune()  # as any other start does, which takes no notice of how the run ended
    errors = [error_of(asyncio.run, awaits()), error_of(asyncio.run, awaits()), error_of(run.wait)]
    meet("the end of its run")
    return errors


def test_whoever_awaits_a_run_gets_its_error() -> None:
    for errors in run_ranks(2, rank_awaits_cancelled):
        assert [error["types"][0] for error in errors] == ["Cancelled"] * 3, errors


def test_cancel() -> None:
    results = run_ranks(2, rank_cancels)
    assert "Cancelled" in results[1][0]["types"]
    assert all("cancelled" in again["text"] for _, again in results)


def rank_moves_memory(session: sluice.Session, when: int) -> Any:
    array = np.arange(64, dtype=np.float32)
    transfer = session.transfer({"w": array} if session.rank == 0 else None,
                                None if session.rank == 0 else {"w": np.zeros(64, np.float32)})
    for _ in range(when):
        transfer.run()
    if session.rank == 0:
        array.resize(1 << 20, refcheck=False)
    error = error_of(transfer.run)
    return error


@pytest.mark.parametrize("when", [0, 2])
def test_bound_memory_that_moved(when: int) -> None:
    errors = run_ranks(2, rank_moves_memory, when)
    for error in errors:
        assert "InvalidSpec" in error["types"], error
        assert error["tensor"] == "w" and error["ranks"] == [0], error
    assert "(64,)" in errors[0]["text"]


def rank_rebinds(session: sluice.Session) -> Any:
    transfer = one_way(session)
    transfer.run()
    if session.rank == 0:
        transfer.rebind({"w": whole(step=5)})
        transfer.run()
        return None
    first, second = np.array(transfer_target(transfer), np.float32), whole(step=0)
    errors = [error_of(transfer.rebind, None, {"v": first}),
              error_of(transfer.rebind, None, {"w": first[:3]}),
              error_of(transfer.rebind, None, {"w": first.astype(np.float64)})]
    transfer.rebind(None, {"w": second})
    transfer.run()
    return [errors, transfer_target(transfer) == whole().tolist(),
            second.tolist() == whole(step=5).tolist()]


def test_rebind() -> None:
    _, (errors, first, second) = run_ranks(2, rank_rebinds)
    assert first and second
    assert [error["types"][0] for error in errors] == ["InvalidSpec"] * 3
    assert [error["tensor"] for error in errors] == ["v", "w", "w"]


def rank_drops_references(session: sluice.Session) -> Any:
    transfer = one_way(session)
    if session.rank == 0:
        transfer.start()
        del transfer
        session.poll()
        gc.collect()
        return None
    transfer.run()
    return transfer_target(transfer) == whole().tolist()


def test_a_run_keeps_its_memory() -> None:
    assert run_ranks(2, rank_drops_references)[1] is True


def rank_has_boxes(session: sluice.Session) -> Any:
    # Rank 1 holds two columns and a corner, in one array with gaps.
    if session.rank == 0:
        session.transfer({"w": whole()}, None).run()
        return None
    memory = np.zeros((ROWS, 8), np.float32)
    boxes = sluice.Boxes([
        sluice.Box(offset=(0, 1), shape=(ROWS, 2), view=memory[:, :2]),
        sluice.Box(offset=(7, 4), shape=(3, 2), view=memory[7:, 3:5])])
    target = sluice.Tensor("w", shape=(ROWS, COLUMNS), dtype="f32", layout=boxes)
    transfer = session.transfer(None, [target])
    transfer.run()
    wanted = np.zeros((ROWS, 8), np.float32)
    wanted[:, :2] = whole()[:, 1:3]
    wanted[7:, 3:5] = whole()[7:, 4:6]
    return memory.tolist() == wanted.tolist()


def test_boxes() -> None:
    assert run_ranks(2, rank_has_boxes)[1] is True


def rank_runs_context(session: sluice.Session) -> Any:
    with one_way(session) as transfer:
        with transfer.start() as run:
            pass
        assert run.done
        result = session.rank == 0 or transfer_target(transfer) == whole().tolist()
    return [result, error_of(transfer.start)]


def test_contexts() -> None:
    for good, dropped in run_ranks(2, rank_runs_context):
        assert good and "dropped" in dropped["text"]


def test_versions_and_streams(session: sluice.Session) -> None:
    transfer = session.transfer({"w": whole()}, {"w": whole()})
    transfer.run("7")
    with pytest.raises(sluice.InvalidSpec, match="version 7"):
        transfer.run(7)
    with pytest.raises(sluice.Error, match="accelerator"):
        transfer.start(stream=1)
    with pytest.raises(sluice.InvalidSpec, match="events=True"):
        next(transfer.start().events())


STEP_SECONDS = 2.0  # the timeout of sessions whose ranks compute for longer


def rank_trains_slowly(session: sluice.Session) -> Any:
    """Rank 0 computes until rank 1 has waited for longer than the sessions' timeout."""
    value = np.zeros(4, np.float32)
    if session.rank == 0:
        transfer = session.transfer({"w": value}, None)
        for version in (1, 2):
            hear(f"version {version} is late")
            value[:] = version
            transfer.run(version)
        return None
    transfer = session.transfer(None, {"w": value})
    got = []
    for version in (1, 2):
        run = transfer.start(version)
        error = error_of(run.wait, timeout=2 * STEP_SECONDS)
        tell(f"version {version} is late")
        run.wait()
        got.append([error["text"], float(value[0])])
    return got


def test_steps_may_be_longer_than_the_timeout() -> None:
    _, got = run_ranks(2, rank_trains_slowly, timeout=STEP_SECONDS)
    assert [value for _, value in got] == [1.0, 2.0]
    assert all("it goes on" in text for text, _ in got)


def rank_computes_without_answering(session: sluice.Session) -> Any:
    value = np.zeros(4, np.float32)
    transfer = session.transfer(*(({"w": value}, None) if session.rank == 0
                                  else (None, {"w": value})))
    if session.rank == 0:
        hear("rank 1 has given up")
        return None
    error = error_of(transfer.run)
    tell("rank 1 has given up")
    return error


def test_silence_names_the_cure() -> None:
    ends = ranks_end(2, rank_computes_without_answering, timeout=STEP_SECONDS,
                     progress_thread=False)
    error = ends[1].result
    assert error is not None, ends[1].output
    assert "Timeout" in error["types"] and "rank 0" in error["text"]
    assert "the option progress_thread, or a longer timeout" in error["text"]
