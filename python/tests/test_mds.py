"""Data sets of MosaicML's MDS as streams: where samples lie, and what each holds."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sluice
from ranks import error_of, run_ranks
from s3_server import S3Server
from samples import numbers_of
from sluice import _mds
from sluice._batch import ItemBytes
from sluice._shard_index import IndexText

SHARDS, SAMPLES = 3, 11  # of each

# Name and encoding of a column; the bytes where they are fixed; bytes and value of a sample.
_Column = tuple[str, str, "int | None", Callable[[int], bytes], Callable[[int], Any]]
_DTYPES = {"u1": 8, "i1": 9, "u2": 16, "i2": 17, "f2": 18, "u4": 32, "i4": 33, "f4": 34, "u8": 64,
           "i8": 65, "f8": 66}


def scalar(encoding: str, form: str, value: Callable[[int], Any]) -> _Column:
    return (f"n_{encoding}", encoding, struct.calcsize(form),
            lambda sample: struct.pack(form, value(sample)), value)


def array_of(sample: int) -> Any:
    """Of each element type in turn."""
    dtype = list(_DTYPES)[sample % len(_DTYPES)]
    return (np.arange(2 * (1 + sample % 3 * 150)) % 100).astype(f"<{dtype}").reshape(2, -1)


def shape_bytes(array: Any) -> bytes:
    """The dimensions, in numbers as small as hold them."""
    form = 0 if max(array.shape) < 256 else 1
    return struct.pack(f"<B{array.ndim}{'BH'[form]}", array.ndim << 2 | form, *array.shape)


def raw_of(sample: int) -> bytes:
    return bytes((sample + at) % 251 for at in range(sample * 31 % 400))


COLUMNS: list[_Column] = [
    ("any", "ndarray", None, lambda k: bytes([_DTYPES[array_of(k).dtype.str[1:]]])
     + shape_bytes(array_of(k)) + array_of(k).tobytes(), array_of),
    ("floats", "ndarray:float32", None, lambda k: shape_bytes(np.zeros(k + 1))
     + np.arange(k + 1, dtype="<f4").tobytes(), lambda k: np.arange(k + 1, dtype="f4")),
    ("grid", "ndarray:uint16:2,3", 12, lambda k: (np.arange(6, dtype="<u2") + k).tobytes(),
     lambda k: (np.arange(6, dtype="u2") + k).reshape(2, 3)),
    ("image", "jpeg", None, raw_of, raw_of), ("new", "list[jpeg]", None, raw_of, raw_of),
    ("json", "json", None, lambda k: json.dumps({"k": [k]}).encode(), lambda k: {"k": [k]}),
    ("pickle", "pkl", None, lambda k: b"cos\nabort\n(tR.", lambda k: b"cos\nabort\n(tR."),
    ("raw", "bytes", None, raw_of, raw_of),
    ("text", "str", None, lambda k: ("ü" * k).encode(), lambda k: "ü" * k),
    ("whole", "str_int", None, lambda k: str(10**30 + k).encode(), lambda k: 10**30 + k),
    scalar("int", "<q", lambda k: -k), scalar("float16", "<e", lambda k: k / 4),
    scalar("float32", "<f", lambda k: k / 8), scalar("float64", "<d", lambda k: k / 7),
    *(scalar(f"int{8 << i}", f"<{'bhiq'[i]}", lambda k: -k) for i in range(4)),
    *(scalar(f"uint{8 << i}", f"<{'BHIQ'[i]}", lambda k: k + 1) for i in range(4))]


def shard_of(samples: list[bytes], count: int | None = None, shift: int = 0) -> bytes:
    about = b'{"format": "mds"}'
    at = 8 + 4 * len(samples) + len(about)
    offsets = [at + sum(map(len, samples[:i])) + shift for i in range(len(samples) + 1)]
    count = len(samples) if count is None else count
    return struct.pack(f"<{len(offsets) + 1}I", count, *offsets) + about + b"".join(samples)


def sample_of(number: int) -> bytes:
    parts = [data(number) for *_, data, _ in COLUMNS]
    sizes = [len(part) for part, (_, _, size, *_) in zip(parts, COLUMNS) if size is None]
    return struct.pack(f"<{len(sizes)}I", *sizes) + b"".join(parts)


def write(folder: Path, shards: list[tuple[str, bytes, int]], **more: Any) -> None:
    """Name, bytes and samples of each. `more`: of the entry of the last one."""
    names, encodings, sizes, *_ = map(list, zip(*COLUMNS))
    entries = [{"format": "mds", "column_names": names, "column_encodings": encodings,
                "column_sizes": sizes, "compression": None, "hashes": [], "zip_data": None,
                "raw_data": {"basename": name, "bytes": len(data), "hashes": {}},
                "samples": samples, "size_limit": 1 << 26, "version": 2}
               for name, data, samples in shards]
    entries[-1].update(more)
    for name, data, _ in shards:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": entries}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, [(f"part {number % 2}/shard.{number:05d}.mds", shard_of(
        [sample_of(number * SAMPLES + i) for i in range(SAMPLES)]), SAMPLES)
        for number in range(SHARDS)])
    return tmp_path


def check(sample: dict[str, Any], number: int) -> None:
    assert list(sample) == [name for name, *_ in COLUMNS]
    for name, *_, value in COLUMNS:
        found, wanted = sample[name], value(number)
        if isinstance(wanted, np.ndarray):
            assert found.dtype == wanted.dtype and found.tolist() == wanted.tolist(), name
        elif isinstance(wanted, bytes):
            assert found.dtype == np.uint8 and found.tobytes() == wanted, name
        else:
            assert type(found) is type(wanted) and found == wanted, name


take = partial(numbers_of, check)


def test_samples(session: sluice.Session, folder: Path) -> None:
    for uri in (folder, f"mmap:{folder}", f"buffered:{folder}"):
        with session.stream(uri, format="mds", batch_items=4) as stream:
            batch = next(stream)
            for name in ("any", "floats", "grid", "image", "raw"):
                assert np.shares_memory(batch.samples[3][name], batch.tensors[3]), name
            del batch
            assert take(stream) == list(range(4, SHARDS * SAMPLES))


def test_over_networks(session: sluice.Session, folder: Path) -> None:
    with S3Server() as server:
        server.is_public = True
        for path in filter(Path.is_file, folder.glob("**/*")):
            server.objects["bucket", f"set/{path.relative_to(folder)}"] = path.read_bytes()
        for uri in ("s3://bucket/set", f"{server.url}/bucket/set"):
            server.requests.clear()
            with session.stream(uri, format="mds", s3_endpoint=server.url,
                                s3_region=server.region) as stream:
                assert take(stream) == list(range(SHARDS * SAMPLES))
                assert len(server.requests) == 1 + SHARDS + stream.stats["requests"]


def test_samples_of_one_size_take_no_room() -> None:
    index = IndexText()
    index.add("a", 100, [10, 20, 30], [10, 10, 10])
    index.add("b", 100, [10, 20, 30], [10, 10, 7])
    index.add("c", 100, [10, 30], [10, 10])
    first, *others = json.loads(index.text())["objects"]
    assert first == {"name": "a", "bytes": 100, "items": 3, "offset": 10, "item_bytes": 10}
    assert [each["ranges"] for each in others] == [[[10, 10], [20, 10], [30, 7]],
                                                   [[10, 10], [30, 10]]]


def rank_reads(session: sluice.Session, folder: str, states: Any) -> Any:
    if session.rank > 0:
        _mds.index_of = None  # type: ignore[assignment]  # rank 0 alone looks
    with session.stream(f"buffered:{folder}", format="mds", first=0, step=1, shuffle=True,
                        shuffle_block_items=4) as stream:
        counts = [take(stream), stream.stats["bytes_read"], stream.stats["bytes"]]
    state = None if states is None else sluice.merge_states(states)
    numbers: list[int] = []
    with session.stream(folder, format="mds", shuffle=True, seed=9, state=state) as stream:
        for batch in stream:
            check(batch.samples[0], batch.items[0])
            numbers += batch.items
            batch.release()
            if states is None and len(numbers) == 4 + session.rank:
                break
        return [counts, numbers, stream.state_dict()]


def test_each_byte_is_read_once_and_each_item_once(folder: Path) -> None:
    first = run_ranks(2, rank_reads, str(folder), None)
    second = run_ranks(3, rank_reads, str(folder), [state for *_, state in first])
    for ends in (first, second):
        counts = [each for each, *_ in ends]
        assert all(numbers == counts[0][0] for numbers, *_ in counts)
        assert sorted(counts[0][0]) == list(range(SHARDS * SAMPLES))
        assert sum(bytes_read for _, bytes_read, _ in counts) == counts[0][2]
    seen = [number for _, numbers, _ in (*first, *second) for number in numbers]
    assert sorted(seen) == list(range(SHARDS * SAMPLES))


_TWO = [sample_of(0), sample_of(1)]
_BAD: list[tuple[str, bytes, int, dict[str, Any]]] = [
    ("has 3 samples, and index.json says 2", shard_of(_TWO, 3), 2, {}),
    ("has 2 samples, and index.json says 1", shard_of(_TWO), 1, {}),
    ("beyond its", shard_of(_TWO, shift=1), 2, {}),
    ("end before they begin", shard_of(_TWO, shift=-20), 2, {}),
    ("end before they begin", struct.pack("<5I", 2, 60, 59, 70, 0) + bytes(60), 2, {}),
    ("end before they begin", struct.pack("<5I", 2, 60, 60, 70, 0) + bytes(60), 2, {}),
    ("too few for 1000000000 samples", shard_of(_TWO), 10**9, {}),
    ("too few for 10000 samples", shard_of(_TWO), 10**4, {}),
    ("is compressed (zstd)", shard_of(_TWO), 2, {"compression": "zstd"}),
    ("is compressed", shard_of(_TWO), 2, {"zip_data": {"basename": "a.mds.zstd", "bytes": 3}}),
    ("has format 'csv'", shard_of(_TWO), 2, {"format": "csv"}),
    ("has no 'samples'", shard_of(_TWO), 2, {"samples": True}),
    ("has no 'bytes'", shard_of(_TWO), 2, {"raw_data": {"basename": "bad.mds", "bytes": "9"}}),
    ("bytes, and index.json says 500", shard_of(_TWO), 2,
     {"raw_data": {"basename": "bad.mds", "bytes": 500}}),
    ("..", shard_of(_TWO), 2, {"raw_data": {"basename": "../bad.mds", "bytes": 5000}}),
    ("gone.mds", shard_of(_TWO), 2, {"raw_data": {"basename": "gone.mds", "bytes": 5000}}),
    ("columns that are none", shard_of(_TWO), 2, {"column_sizes": [1]}),
    ("other columns", shard_of(_TWO), 2,
     {"column_names": ["a"], "column_encodings": ["int"], "column_sizes": [8]})]


def rank_is_refused(session: sluice.Session, folder: str) -> str:
    return str(error_of(session.stream, folder, format="mds")["text"])


@pytest.mark.parametrize("text, data, samples, more", _BAD, ids=range(len(_BAD)))
def test_bad_shards(session: sluice.Session, tmp_path: Path, text: str, data: bytes, samples: int,
                    more: dict[str, Any]) -> None:
    write(tmp_path, [("good.mds", shard_of(_TWO), 2), ("bad.mds", data, samples)], **more)
    with pytest.raises(sluice.Error, match=re.escape(text)):
        session.stream(tmp_path, format="mds")


def test_bad_indices_on_all_ranks(session: sluice.Session, tmp_path: Path) -> None:
    for index in ("{", "[" * 100_000, "[]", '{"version": 1, "shards": [{}]}', '{"version": 2}'):
        (tmp_path / "index.json").write_text(index)
        with pytest.raises(sluice.InvalidSpec, match="index.json is (no JSON|not of MDS)"):
            session.stream(tmp_path, format="mds")
    write(tmp_path, [("bad.mds", shard_of(_TWO, 3), 2)])
    for text in run_ranks(2, rank_is_refused, str(tmp_path)):
        assert "bad.mds has 3 samples, and index.json says 2" in text


def test_names_and_shapes_that_make_no_sense(session: sluice.Session, tmp_path: Path) -> None:
    write(tmp_path, [("bad.mds", shard_of(_TWO), 2)])
    index = json.loads((tmp_path / "index.json").read_text())
    index["shards"][0]["raw_data"]["basename"] = "a\ud800"
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(sluice.InvalidSpec, match="cannot be shown"):
        session.stream(tmp_path, format="mds")
    decode = _mds.decoder([["x", "ndarray:uint8", None]])
    shape = struct.pack("<BQQ", 2 << 2 | 3, 2 ** 63, 0)
    data = struct.pack("<I", len(shape)) + shape
    with pytest.raises(sluice.DataLoss, match="column 'x'"):
        decode(ItemBytes(0, memoryview(data), np.frombuffer(data, np.uint8)))


_HEAD = 4 * sum(size is None for _, _, size, *_ in COLUMNS)


@pytest.mark.parametrize("at, text", [
    (3, "'any': it ends at byte"), (_HEAD, "'any': it says no type"), (_HEAD + 1, "'any': an array of"),
    (16, "'json'")])
def test_bad_samples(session: sluice.Session, tmp_path: Path, at: int, text: str) -> None:
    good = sample_of(7)
    samples = [good[:at] + b"\xff" + good[at + 1:], good[:-3], good + b"x", b"x"]
    texts = [text, "'n_uint64': it ends at byte", "the item goes on after it, for 1 bytes",
             "it ends at byte|unpack"]
    write(tmp_path, [("a.mds", shard_of(samples), 4)])
    with session.stream(tmp_path, format="mds") as stream:
        for number, wanted in enumerate(texts):
            with pytest.raises(sluice.DataLoss, match=f"item {number} of the stream.*({wanted})"):
                next(stream).samples
