"""A session that is dropped is closed at once, by reference counts alone."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import struct
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
import sluice

np = pytest.importorskip("numpy")

from ranks import free_port, run_ranks  # noqa: E402
from sluice._recording import Destination  # noqa: E402

Use = Callable[[sluice.Session, Path], Any]


@pytest.fixture(autouse=True)
def no_cycles_are_collected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def states() -> tuple[dict[str, Any], dict[str, Any]]:
    return {"w": np.ones(4, np.float32)}, {"w": np.zeros(4, np.float32)}


def syncs(session: sluice.Session, folder: Path) -> None:
    src, dst = states()
    session.sync(src, dst)
    session.sync(src, dst)


def starts_and_does_not_wait(session: sluice.Session, folder: Path) -> None:
    session.transfer(*states()).start()


def is_late(session: sluice.Session, folder: Path) -> None:
    transfer = session.transfer({"w": np.ones(4)}, [sluice.Tensor("w", (4,), "f64")], late=True)
    run = transfer.start()
    for event in run.events():
        if isinstance(event, sluice.NeedsMemory):
            run.supply(event.tensor, np.zeros(4))


def waits_for_memory(session: sluice.Session, folder: Path) -> None:
    transfer = session.transfer({"w": np.ones(4)}, [sluice.Tensor("w", (4,), "f64")], late=True)
    run = transfer.start()
    assert isinstance(next(run.events()), sluice.NeedsMemory)
    run.cancel()


def awaits(session: sluice.Session, folder: Path) -> None:
    async def wait() -> None:
        await session.transfer(*states()).start()

    asyncio.run(wait())


def binds_again(session: sluice.Session, folder: Path) -> None:
    transfer = session.transfer(*states())
    transfer.run(1)
    transfer.rebind(*states())
    transfer.start(2)


def load_weights(params: dict[str, Any]) -> Callable[[Any], None]:
    def load(pairs: Any) -> None:
        for name, tensor in pairs:
            params[name].copy_(tensor)
    return load


def captures(session: sluice.Session, folder: Path) -> None:
    params = {"w": Destination(np.zeros(4, np.float32))}
    captured = sluice.capture(load_weights(params), {"w": ((4,), "f32")}, params)
    session.sync({"w": np.ones(4, np.float32)}, captured)
    session.transfer({"w": np.ones(4, np.float32)}, captured).run()


def falls_back(failure: type[BaseException]) -> tuple[Any, Any]:
    """A loader that raises `failure` once it gets a tensor, and what is captured of it."""
    def load(pairs: Any) -> None:
        if (pair := next(iter(pairs), None)) is not None and hasattr(pair[1], "ptr"):
            raise failure("of the loader")
        raise TypeError("this is computed with")

    params = {"w": Destination(np.zeros(4, np.float32))}
    return load, sluice.capture(load, {"w": ((4,), "f32")}, params)


def codes_of(error: BaseException) -> list[Any]:
    """Of the functions that it has come through."""
    return [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]


def fails_after_a_run(session: sluice.Session, folder: Path) -> None:
    load, captured = falls_back(KeyError)
    transfer, other = session.transfer({"w": np.ones(4, np.float32)}, captured), states()
    run = transfer.start()
    while not run.done:
        session.poll()
    session.sync(*other)  # gives the loader its tensors, as nobody waits
    assert other[1]["w"].all()
    errors = [*(error_of(run.wait) for _ in range(3)), error_of(transfer.run)]
    assert [type(error) for error in errors] == [KeyError] * 4
    assert load.__code__ in codes_of(errors[0])
    del errors  # their frames refer to this one


def is_interrupted(session: sluice.Session, folder: Path) -> None:
    _, captured = falls_back(KeyboardInterrupt)
    transfer = session.transfer({"w": np.ones(4, np.float32)}, captured)
    with pytest.raises(KeyboardInterrupt):
        transfer.run()


def saves_and_loads(session: sluice.Session, folder: Path) -> None:
    src, dst = states()
    session.save(folder / "saved", src)
    session.load(folder / "saved", dst)


def streams(session: sluice.Session, folder: Path) -> None:
    def generate(item: int, memory: Any) -> int:
        memory[:4] = struct.pack("<i", item)
        return 4

    stream = session.stream(generator=generate, generator_items=8, item_bytes=4, batch_items=2)
    assert len(next(stream)) == 2
    stream.load_state_dict(stream.state_dict())


def looks(session: sluice.Session, folder: Path) -> None:
    syncs(session, folder)
    json.dumps([session.metrics(), session.report(), session.wires()])
    session.poll()


def error_of(call: Callable[..., Any], *args: Any, **named: Any) -> BaseException:
    try:
        call(*args, **named)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def errs_in_a_second_sync(session: sluice.Session, folder: Path) -> None:
    syncs(session, folder)
    session.sync(*states(), version="first")


def errs_in_start(session: sluice.Session, folder: Path) -> None:
    transfer = session.transfer({"w": (array := np.ones(4))}, {"w": np.zeros(4)})
    array.resize(8, refcheck=False)
    transfer.start()


USES: dict[str, Use] = {
    "run": lambda session, folder: session.transfer(*states()).run(),
    "allocate": lambda session, folder: session.allocate(64),
    **{use.__name__: use for use in (
        syncs, starts_and_does_not_wait, is_late, waits_for_memory, awaits, binds_again, captures,
        fails_after_a_run, is_interrupted, saves_and_loads, streams, looks)}}
ERRORS: dict[str, Use] = {
    "error in sync": lambda session, folder: session.sync({"w": 3}, {"w": np.zeros(4)}),
    "error in a second sync": errs_in_a_second_sync,
    "error in transfer": lambda session, folder: session.transfer({"w": 3}, {"w": np.zeros(4)}),
    "error in priority": lambda session, folder: session.transfer(*states(), priority=9),
    "error in start": errs_in_start,
    "error in load": lambda session, folder: session.load(folder / "absent", states()[1]),
    "error in rename": lambda session, folder: session.save(folder, states()[0], rename=3),
    "error in stream": lambda session, folder: session.stream("file:x", generator=len),
    "error in allocate": lambda session, folder: session.allocate(-1)}


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize("name", [*USES, *ERRORS])
def test_a_session_that_is_dropped_ends_at_once(name: str, tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    for variable, value in {"SLUICE_RANK": "0", "SLUICE_SIZE": "1", "SLUICE_SERVE": "1",
                            "SLUICE_WORLD": f"tcp://127.0.0.1:{port}"}.items():
        monkeypatch.setenv(variable, value)
    session = sluice.Session.from_env(timeout=120)
    # Frames of an exception refer to the session, as long as somebody keeps it.
    left: Any = (USES[name](session, tmp_path) if name in USES else
                 error_of(ERRORS[name], session, tmp_path))
    gone = ref(session)
    del left, session
    assert gone() is None, gc.get_referrers(gone())
    assert is_free(port)
    with sluice.Session.from_env(timeout=120) as again:
        assert again.size == 1


def rank_drops(session_is_none: None = None) -> Any:
    gc.disable()
    for version in range(3):  # each at the port of the one before
        session = sluice.Session.from_env(timeout=120)
        src, dst = states()
        given = (src, None) if session.rank == 0 else (None, dst)
        session.sync(*given)
        session.transfer(*given).start()
        gone = ref(session)
        del session
        assert gone() is None
        assert given[1] is None or dst["w"].tolist() == [1.0] * 4
    return version


def test_ranks_that_drop_their_sessions() -> None:
    assert run_ranks(2, rank_drops, session=False) == [2, 2]


def test_a_world_that_is_dropped_with_its_session() -> None:
    url = f"tcp://127.0.0.1:{free_port()}"
    for _ in range(2):
        world = sluice.World.join(url, rank=0, size=1, role="a")
        session = world.session(timeout=120)
        session.sync(*states())
        gone = ref(session), ref(world)
        del session, world
        assert [one() for one in gone] == [None, None]


def test_a_run_keeps_its_session() -> None:
    src, dst = states()
    run = sluice.Session.from_exchange(0, 1, lambda payload: [payload]).transfer(src, dst).start()
    run.wait()
    assert dst["w"].tolist() == [1.0] * 4
