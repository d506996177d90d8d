"""Streams, leases, generators and checkpoints of the binding."""

from __future__ import annotations

import ctypes
import gc
import platform
import threading
from pathlib import Path
from typing import Any

import pytest
from local_ranks import error_of, on_ranks

from sluice import _sluice

FAILED_PRECONDITION = 9
ITEMS, ITEM_BYTES = 40, 512


def item_bytes(item: int) -> bytes:
    return bytes((item * 7 + at) % 251 for at in range(ITEM_BYTES))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for file in range(4):
        with open(tmp_path / f"part-{file}.bin", "wb") as out:
            for i in range(ITEMS // 4):
                out.write(item_bytes(file * ITEMS // 4 + i))
    return tmp_path


def options(folder: Path, **more: Any) -> dict[str, Any]:
    return {"uri": f"buffered:{folder}", "format": "raw", "item_bytes": ITEM_BYTES,
            "batch_items": 4, "timeout": 120, **more}


def host_bytes(of: tuple[Any, ...]) -> bytes:
    address, shape, strides, dtype, device, _ = of
    assert device == 1 and dtype == "u8"
    count = 1
    for extent, stride in zip(reversed(shape), reversed(strides or ())):
        assert stride == count
        count *= extent
    return ctypes.string_at(address, count)


def take(lease: Any) -> list[int]:
    """The items of a batch, whose bytes are what they have to be."""
    items = []
    for i in range(lease.items):
        assert host_bytes(lease.view(i)) == item_bytes(lease.item(i))
        items.append(lease.item(i))
    return items


def test_items_come_in_order_and_whole(folder: Path) -> None:
    def work(session: Any, rank: int) -> list[int]:
        stream = session.open_stream(options(folder, first=rank, step=2))
        assert stream.items == ITEMS // 2
        seen = []
        while (lease := stream.next()) is not None:
            assert lease.is_batch and lease.epoch(0) == 0 and lease.held
            assert host_bytes(lease.batch()) == b"".join(
                host_bytes(lease.view(i)) for i in range(lease.items))
            seen += take(lease)
            with pytest.raises(IndexError):
                lease.item(4)
            lease.release()
            assert not lease.held
            assert error_of(lambda: lease.view(0))[0] == FAILED_PRECONDITION
        assert stream.stats()["items"] == ITEMS // 2
        stream.close()
        stream.close()
        assert error_of(stream.next)[0] == FAILED_PRECONDITION
        return seen

    assert on_ranks(2, work) == [list(range(0, ITEMS, 2)), list(range(1, ITEMS, 2))]


def test_what_a_generator_raises_ends_the_stream(native: Any) -> None:
    def raises(item: int, into: memoryview) -> None:
        if item == 3:
            raise KeyError("the simulator is gone")

    def keeps(item: int, into: memoryview) -> None:
        kept.append(memoryview(into))

    def lends(item: int, into: memoryview) -> None:
        kept.append((ctypes.c_char * ITEM_BYTES).from_buffer(into))

    def short(item: int, into: memoryview) -> bytes:
        return b"123"

    def long(item: int, into: memoryview) -> bytes:
        return bytes(ITEM_BYTES + 1)

    kept: list[Any] = []
    for generator, text in ((raises, "item 3: KeyError: 'the simulator is gone'"),
                            (keeps, "item 0: it keeps a reference"),
                            (lends, "item 0: it keeps a reference"),
                            (short, "3 bytes of item 0"),
                            (long, f"{ITEM_BYTES + 1} bytes")):
        stream = native.open_stream({"item_bytes": ITEM_BYTES, "generator_items": 5}, generator)

        def read() -> None:
            while stream.next() is not None:
                pass

        assert text in error_of(read)[1]
        stream.close()
        # The session goes on.
        assert native.connect([], []).start().wait(120)
        kept.clear()


def test_a_generator_sees_updates_in_order(native: Any) -> None:
    made: list[tuple[int, int]] = []
    updates = 0

    def generator(item: int, into: memoryview) -> None:
        made.append((item, updates))

    stream = native.open_stream({"item_bytes": 8, "generator_items": 5,
                                 "generate_order": "after_update"}, generator)
    while stream.next() is not None:
        updates += 1
        stream.end_update()
    assert made == [(item, item) for item in range(5)]


def test_leases_that_other_threads_drop_come_back(native: Any, folder: Path) -> None:
    stream = native.open_stream(options(folder, buffers=2))
    seen = []
    while (lease := stream.next()) is not None:
        seen += take(lease)
        box = [lease]
        del lease
        thread = threading.Thread(target=box.clear)
        thread.start()
        thread.join()
    assert seen == list(range(ITEMS))


def test_a_lease_may_outlive_its_stream_and_session(folder: Path) -> None:
    session = _sluice.local_fabrics(1)[0].session()
    stream = session.open_stream(options(folder))
    lease = stream.next()
    session.close()
    assert error_of(stream.next)[0] == FAILED_PRECONDITION
    assert take(lease) == [0, 1, 2, 3]
    del session, stream
    gc.collect()
    assert take(lease) == [0, 1, 2, 3]
    del lease
    gc.collect()


def test_streams_that_are_dropped_do_not_hold_up_the_session(native: Any, folder: Path) -> None:
    for _ in range(3):
        stream = native.open_stream(options(folder))
        assert stream.next().item(0) == 0
        del stream
        assert native.connect([], []).start().wait(120)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_lease_as_dlpack(native: Any, folder: Path, elsewhere: bool) -> None:
    numpy = pytest.importorskip("numpy")

    class Exporter:
        def __init__(self, capsule: Any) -> None:
            self.capsule = capsule

        def __dlpack__(self, **_: Any) -> Any:
            return self.capsule

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    # Items that are transformed lie in a buffer, of which there is one.
    stream = native.open_stream(options(folder, buffers=1,
                                        transform={"src": "u8", "dst": "f32"}))
    for begin in range(0, ITEMS, 4):
        lease = stream.next()
        box = [numpy.from_dlpack(Exporter(lease.dlpack(-1)))]
        assert lease.exports == [-1]
        lease.release()
        assert not lease.held
        assert box[0].shape == (4, ITEM_BYTES) and box[0].dtype == numpy.float32
        assert box[0].astype("u1").tobytes() == b"".join(
            map(item_bytes, range(begin, begin + 4)))
        # One buffer: without the tensor's end there would be no next batch.
        if begin + 4 < ITEMS:
            assert error_of(stream.next)[0] == FAILED_PRECONDITION
        if elsewhere:
            thread = threading.Thread(target=box.clear)
            thread.start()
            thread.join()
        else:
            box.clear()
    assert stream.next() is None


def test_a_capsule_that_nobody_takes_gives_its_lease_back(native: Any, folder: Path) -> None:
    stream = native.open_stream(options(folder, buffers=1,
                                        transform={"src": "u8", "dst": "f32"}))
    for _ in range(3):
        lease = stream.next()
        assert error_of(lambda: lease.dlpack(9))[0] == 3 and lease.held
        capsule = lease.dlpack()
        del capsule
        assert lease.exports == []
        lease.release()
    assert stream.next().item(0) == 12


def test_a_stream_has_a_thread_of_its_own_beside_a_progress_thread(folder: Path) -> None:
    def work(session: Any, rank: int) -> list[int]:
        stream = session.open_stream(options(folder))
        seen: list[int] = []

        def read() -> None:
            while (lease := stream.next()) is not None:
                seen.extend(take(lease))

        thread = threading.Thread(target=read)
        thread.start()
        for _ in range(20):
            assert session.connect([], []).start().wait(120)
        thread.join()
        code, text = error_of(stream.next)
        assert code == FAILED_PRECONDITION and "thread" in text
        return seen

    assert on_ranks(1, work, progress_thread=True) == [list(range(ITEMS))]


def test_bad_options_of_streams(native: Any, folder: Path) -> None:
    for bad in ({"shufle": True}, {"cursor": "text"}, {"transform": {"dst": "f32", "colour": 1}},
                {"transform": {"crop": (1, 2)}}):
        with pytest.raises(ValueError):
            native.open_stream(options(folder, **bad))
    assert error_of(lambda: native.open_stream(options(folder / "none")))[0] in (3, 5)
    assert native.open_stream(options(folder)).next() is not None


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of rounding modes differ")
def test_scales_are_rounded_to_nearest_in_any_mode(native: Any, tmp_path: Path) -> None:
    import struct
    (tmp_path / "a.bin").write_bytes(bytes([1]) * ITEM_BYTES)
    scale = 1.0 + 2.0**-24 + 2.0**-40  # above the middle of two values of f32
    upwards, to_zero = 0x800, 0xC00
    math = ctypes.CDLL("libm.so.6")

    for mode in (upwards, to_zero):
        nearest = math.fegetround()
        math.fesetround(mode)
        try:
            stream = native.open_stream(options(
                tmp_path, batch_items=1, transform={
                    "src": "u8", "dst": "f32", "scale": scale,
                    "bias": 2.0**-149 * (0.25 if mode == upwards else 0.75)}))
        finally:
            assert math.fegetround() == mode
            math.fesetround(nearest)
        address = stream.next().view(0)[0]
        values = struct.unpack(f"{ITEM_BYTES}f", ctypes.string_at(address, 4 * ITEM_BYTES))
        assert values == (1.0 + 2.0**-23,) * ITEM_BYTES
