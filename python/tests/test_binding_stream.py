"""Streams, leases, generators and checkpoints of the binding."""

from __future__ import annotations

import ctypes
import gc
import platform
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from local_ranks import error_of, on_ranks, rows_on, view, whole_on

from sluice import _sluice

FAILED_PRECONDITION = 9
ITEMS, ITEM_BYTES = 40, 512


def item_bytes(item: int) -> bytes:
    return bytes((item * 7 + at) % 251 for at in range(ITEM_BYTES))


def write_items(folder: Path) -> None:
    for file in range(4):
        with open(folder / f"part-{file}.bin", "wb") as out:
            for i in range(ITEMS // 4):
                out.write(item_bytes(file * ITEMS // 4 + i))


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


def test_items_come_in_order_and_whole(tmp_path: Path) -> None:
    write_items(tmp_path)

    def work(session: Any, rank: int) -> list[int]:
        stream = session.open_stream(options(tmp_path, first=rank, step=2))
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


def test_a_shuffled_stream_goes_on_from_its_cursors(tmp_path: Path) -> None:
    write_items(tmp_path)
    shuffled = {"shuffle": True, "seed": 5, "epochs": 2}

    def read(size: int, batches: int, cursor: bytes) -> tuple[list[list[int]], list[bytes]]:
        both = threading.Barrier(size)

        def work(session: Any, rank: int) -> tuple[list[int], bytes]:
            stream = session.open_stream(
                options(tmp_path, first=rank, step=size, cursor=cursor, **shuffled))
            seen: list[int] = []
            for _ in range(batches):
                lease = stream.next()
                if lease is None:
                    break
                seen += take(lease)
                del lease
            state = stream.cursor()
            both.wait(120)  # whoever closes a stream ends it for the others
            return seen, state

        ended = on_ranks(size, work)
        return [seen for seen, _ in ended], [cursor for _, cursor in ended]

    whole, _ = read(1, 1000, b"")
    assert sorted(whole[0][:ITEMS]) == list(range(ITEMS)) and whole[0][:ITEMS] != whole[0][ITEMS:]
    begun, cursors = read(2, 3, b"")
    merged = _sluice.merge_cursors(cursors)
    rest, _ = read(1, 1000, merged)
    assert sorted(begun[0] + begun[1] + rest[0]) == sorted(whole[0])
    assert len(begun[0]) == len(begun[1]) == 12
    with pytest.raises(Exception, match="cursor"):
        _sluice.merge_cursors([b"nonsense"])


def test_a_generator_writes_or_returns_bytes() -> None:
    def writes(item: int, into: memoryview) -> None:
        assert not into.readonly and len(into) == ITEM_BYTES
        into[:] = item_bytes(item)

    def returns(item: int, into: memoryview) -> bytes:
        return item_bytes(item)

    for generator in (writes, returns):
        def work(session: Any, rank: int) -> list[int]:
            stream = session.open_stream({"item_bytes": ITEM_BYTES, "generator_items": 10,
                                          "generator_threads": 2, "batch_items": 2}, generator)
            seen = []
            while (lease := stream.next()) is not None:
                seen += take(lease)
            return seen

        assert on_ranks(1, work) == [list(range(10))]


def test_a_generator_may_make_items_of_several_lengths() -> None:
    def generator(item: int, into: memoryview) -> Any:
        if item % 2:
            into[:item] = bytes([item]) * item
            return item
        return bytearray([item]) * item

    def work(session: Any, rank: int) -> None:
        stream = session.open_stream({"item_bytes": 16, "generator_items": 8, "sized": True},
                                     generator)
        for item in range(8):
            lease = stream.next()
            assert host_bytes(lease.view(0)) == bytes([item]) * item
        assert stream.next() is None

    on_ranks(1, work)


def test_what_a_generator_raises_ends_the_stream() -> None:
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
                            (keeps, "item 0: it keeps a reference"), (lends, "item 0: it keeps a reference"),
                            (short, "3 bytes of item 0"),
                            (long, f"{ITEM_BYTES + 1} bytes")):
        def work(session: Any, rank: int) -> str:
            stream = session.open_stream({"item_bytes": ITEM_BYTES, "generator_items": 5},
                                         generator)

            def read() -> None:
                while stream.next() is not None:
                    pass

            heard = error_of(read)[1]
            stream.close()
            # The session goes on.
            assert session.connect([], []).start().wait(120)
            return heard

        assert text in on_ranks(1, work)[0]
        kept.clear()


def test_a_generator_sees_updates_in_order() -> None:
    made: list[tuple[int, int]] = []
    updates = 0

    def generator(item: int, into: memoryview) -> None:
        made.append((item, updates))

    def work(session: Any, rank: int) -> None:
        nonlocal updates
        stream = session.open_stream({"item_bytes": 8, "generator_items": 5,
                                      "generate_order": "after_update"}, generator)
        while stream.next() is not None:
            updates += 1
            stream.end_update()

    on_ranks(1, work)
    assert made == [(item, item) for item in range(5)]


def test_leases_that_other_threads_drop_come_back(tmp_path: Path) -> None:
    write_items(tmp_path)

    def work(session: Any, rank: int) -> list[int]:
        stream = session.open_stream(options(tmp_path, buffers=2))
        seen = []
        while True:
            lease = stream.next()
            if lease is None:
                return seen
            seen += take(lease)
            box = [lease]
            del lease
            thread = threading.Thread(target=box.clear)
            thread.start()
            thread.join()

    assert on_ranks(1, work) == [list(range(ITEMS))]


def test_a_lease_may_outlive_its_stream_and_session(tmp_path: Path) -> None:
    write_items(tmp_path)

    def work(session: Any, rank: int) -> Any:
        stream = session.open_stream(options(tmp_path))
        lease = stream.next()
        session.close()
        assert error_of(stream.next)[0] == FAILED_PRECONDITION
        assert take(lease) == [0, 1, 2, 3]
        return lease

    lease = on_ranks(1, work)[0]
    assert take(lease) == [0, 1, 2, 3]
    del lease
    gc.collect()


def test_streams_that_are_dropped_do_not_hold_up_the_session(tmp_path: Path) -> None:
    write_items(tmp_path)

    def work(session: Any, rank: int) -> None:
        for _ in range(3):
            stream = session.open_stream(options(tmp_path))
            assert stream.next().item(0) == 0
            del stream
            assert session.connect([], []).start().wait(120)

    on_ranks(1, work)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_lease_as_dlpack(tmp_path: Path, elsewhere: bool) -> None:
    numpy = pytest.importorskip("numpy")
    write_items(tmp_path)

    class Exporter:
        def __init__(self, capsule: Any) -> None:
            self.capsule = capsule

        def __dlpack__(self, **_: Any) -> Any:
            return self.capsule

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    def work(session: Any, rank: int) -> None:
        # Items that are transformed lie in a buffer, of which there is one.
        stream = session.open_stream(options(tmp_path, buffers=1,
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

    on_ranks(1, work)


def test_a_capsule_that_nobody_takes_gives_its_lease_back(tmp_path: Path) -> None:
    write_items(tmp_path)

    def work(session: Any, rank: int) -> None:
        stream = session.open_stream(options(tmp_path, buffers=1,
                                             transform={"src": "u8", "dst": "f32"}))
        for _ in range(3):
            lease = stream.next()
            assert error_of(lambda: lease.dlpack(9))[0] == 3 and lease.held
            capsule = lease.dlpack()
            del capsule
            assert lease.exports == []
            lease.release()
        assert stream.next().item(0) == 12

    on_ranks(1, work)


def test_a_stream_has_a_thread_of_its_own_beside_a_progress_thread(tmp_path: Path) -> None:
    write_items(tmp_path)

    def work(session: Any, rank: int) -> list[int]:
        stream = session.open_stream(options(tmp_path))
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


def test_bad_options_of_streams(tmp_path: Path) -> None:
    write_items(tmp_path)

    def work(session: Any, rank: int) -> None:
        for bad, error in (({"shufle": True}, ValueError), ({"format": "tar"}, ValueError),
                           ({"cursor": "text"}, TypeError), ({"device": 7}, ValueError),
                           ({"transform": {"dst": "f32", "colour": 1}}, ValueError),
                           ({"transform": {"crop": (1, 2)}}, ValueError)):
            with pytest.raises(error):
                session.open_stream(options(tmp_path, **bad))
        assert error_of(lambda: session.open_stream(options(tmp_path / "none")))[0] in (3, 5)
        assert session.open_stream(options(tmp_path)).next() is not None

    on_ranks(1, work)


def test_items_are_transformed(tmp_path: Path) -> None:
    import struct
    write_items(tmp_path)

    def work(session: Any, rank: int) -> None:
        stream = session.open_stream(
            options(tmp_path, transform={"src": "u8", "dst": "f32", "scale": 2.0, "bias": 1.0}))
        lease = stream.next()
        address, shape, _, dtype, _, _ = lease.view(1)
        assert dtype == "f32" and shape == (ITEM_BYTES,)
        values = struct.unpack(f"{ITEM_BYTES}f", ctypes.string_at(address, 4 * ITEM_BYTES))
        assert values == tuple(2.0 * byte + 1.0 for byte in item_bytes(1))

    on_ranks(1, work)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of rounding modes differ")
def test_scales_are_rounded_to_nearest_in_any_mode(tmp_path: Path) -> None:
    import struct
    (tmp_path / "a.bin").write_bytes(bytes([1]) * ITEM_BYTES)
    scale = 1.0 + 2.0**-24 + 2.0**-40  # above the middle of two values of f32
    upwards, to_zero = 0x800, 0xC00
    math = ctypes.CDLL("libm.so.6")

    def work(session: Any, rank: int) -> None:
        for mode in (upwards, to_zero):
            nearest = math.fegetround()
            math.fesetround(mode)
            try:
                stream = session.open_stream(options(
                    tmp_path, batch_items=1, transform={
                        "src": "u8", "dst": "f32", "scale": scale,
                        "bias": 2.0**-149 * (0.25 if mode == upwards else 0.75)}))
            finally:
                assert math.fegetround() == mode
                math.fesetround(nearest)
            address = stream.next().view(0)[0]
            values = struct.unpack(f"{ITEM_BYTES}f", ctypes.string_at(address, 4 * ITEM_BYTES))
            assert values == (1.0 + 2.0**-23,) * ITEM_BYTES

    on_ranks(1, work)


def test_checkpoints_go_round(tmp_path: Path) -> None:
    want = {"a": random.Random(1).randbytes(96), "b": random.Random(2).randbytes(30)}
    shapes = {"a": (6, 4), "b": (30,)}
    dtypes = {"a": "f32", "b": "u8"}
    loaded = {name: bytearray(len(data)) for name, data in want.items()}

    def work(session: Any, rank: int) -> None:
        tensors = []
        for name, shape in shapes.items():
            layout = rows_on([0, 1, 2])
            part = layout.local_shape(shape, rank)
            bytes_each = len(want[name]) // 3
            data = bytearray(want[name][rank * bytes_each:(rank + 1) * bytes_each])
            tensors.append((name, shape, dtypes[name], layout, view(data, part, dtypes[name]),
                            None, data))
        stats = session.save(str(tmp_path / "out"), tensors, {"timeout": 120})
        assert stats["tensors"] == 2 and stats["files"] == 1
        whole = [(name, shape, dtypes[name], whole_on(2),
                  view(loaded[name], shape, dtypes[name]) if rank == 2 else None)
                 for name, shape in shapes.items()]
        stats = session.load(f"buffered:{tmp_path / 'out'}", whole)
        assert stats["tensors"] == 2 and stats["bytes"] == (126 if rank == 2 else 0)
        lacking = [("c", (1,), "u8", whole_on(0), view(bytearray(1), (1,)))]
        assert error_of(lambda: session.load(f"buffered:{tmp_path / 'out'}", lacking))[0] == 5
        with pytest.raises(ValueError, match="budget"):
            session.load("buffered:x", whole, {"budget": 1})

    on_ranks(3, work)
    assert {name: bytes(data) for name, data in loaded.items()} == want
