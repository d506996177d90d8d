"""Tars of WebDataset as streams: which samples they have, and what each holds."""

from __future__ import annotations

import gc
import io
import os
import re
import tarfile
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import sluice
from ranks import error_of, run_ranks
from s3_server import S3Server
from samples import numbers_of
from sluice import _webdataset
from sluice._shard_index import polled

TARS, SAMPLES = 3, 12  # of each
LONG = "a folder/" * 20
FORMATS = (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT)


def key_of(sample: int) -> str:
    return f"{LONG if sample % SAMPLES == 5 and sample // SAMPLES < 2 else ''}ü/{sample:04d}"


def image_of(sample: int) -> bytes:
    return bytes((sample + at) % 251 for at in range(sample * 97 % 1400))


def tar_of(files: list[tuple[str, bytes]], form: int = tarfile.GNU_FORMAT, **more: Any) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, **more) as tar:
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def tar_number(number: int) -> bytes:
    """Beside samples it has what is none, between them and in them."""
    files = [("__meta__/about.json", b"{}"), ("README", b"no extension"), (".hidden", b"")]
    for sample in range(number * SAMPLES, (number + 1) * SAMPLES):
        key = key_of(sample)
        files += [(f"{key}.jpg", image_of(sample)), (f"__x__/{sample}", b"meta"),
                  (f"{key}.CLS", str(sample).encode()), (f"{key}.seg.png", b"")]
    return tar_of(files, FORMATS[number])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(TARS):
        (tmp_path / f"train-{number:03d}.tar").write_bytes(tar_number(number))
    (tmp_path / "notes.txt").write_text("no tar")
    return tmp_path


def check(sample: dict[str, Any], number: int) -> None:
    assert list(sample) == ["__key__", "jpg", "cls", "seg.png"]
    assert sample["__key__"] == key_of(number)
    assert bytes(sample["jpg"]) == image_of(number) and sample["jpg"].dtype == np.uint8
    assert bytes(sample["cls"]) == str(number).encode() and sample["seg.png"].shape == (0,)


take = partial(numbers_of, check)


def opened(session: sluice.Session, uri: Any, **options: Any) -> sluice.Stream:
    return session.stream(uri, format="webdataset", **options)


@pytest.mark.parametrize("scheme", ["", "file:", "buffered:", "mmap:"])
def test_samples(session: sluice.Session, folder: Path, scheme: str) -> None:
    with opened(session, f"{scheme}{folder}", batch_items=5) as stream:
        assert stream.items == TARS * SAMPLES
        assert take(stream) == list(range(TARS * SAMPLES))
    with opened(session, f"{scheme}{folder}/train-{{001..002}}.tar") as stream:
        state = stream.state_dict()
        for _ in range(2):
            assert [batch.samples[0]["__key__"] for batch in stream] == [
                key_of(sample) for sample in range(SAMPLES, TARS * SAMPLES)]
            stream.load_state_dict(state)


def test_bytes_are_in_the_memory_of_the_batch(session: sluice.Session, folder: Path) -> None:
    with opened(session, folder, batch_items=4) as stream:
        batch = next(stream)
        held = batch.samples[3]["jpg"]
        assert np.shares_memory(held, batch.tensors[3])
        with pytest.warns(UserWarning, match=r"1 of item 3 \(batch\.tensors\[3\]\)"):
            batch.release()
        next(stream)
        with pytest.raises(sluice.Error, match="buffers of the stream are held"):
            kept = next(stream).keep()
            next(stream)
        assert bytes(held) == image_of(3) and kept.samples[0]["__key__"] == key_of(8)
        kept.release()
        del held
        gc.collect()
        assert next(stream).items == [12, 13, 14, 15]
        with pytest.raises(sluice.InvalidSpec, match="given back"):
            kept.samples
    with opened(session, f"mmap:{folder}") as stream:
        assert not next(stream).samples[0]["cls"].flags.writeable


def rank_reads_all(session: sluice.Session, folder: str) -> Any:
    if session.rank > 0:
        _webdataset.index_of = None  # type: ignore[assignment]  # rank 0 alone looks
    with opened(session, f"buffered:{folder}", first=0, step=1, shuffle=True, seed=4, epochs=2,
                shuffle_block_items=7) as stream:
        return [take(stream), stream.stats["bytes_read"], stream.stats["bytes"]]


@pytest.mark.parametrize("size", [2, 3])
def test_each_byte_is_read_once(folder: Path, size: int) -> None:
    ends = run_ranks(size, rank_reads_all, str(folder))
    assert sorted(ends[0][0]) == sorted(2 * list(range(TARS * SAMPLES)))
    assert all(numbers == ends[0][0] and bytes_taken == ends[0][2]
               for numbers, _, bytes_taken in ends)
    assert sum(bytes_read for _, bytes_read, _ in ends) == ends[0][2] > 0


def rank_resumes(session: sluice.Session, folder: str, states: Any, exchange: bool) -> Any:
    state = None if states is None else sluice.merge_states(states)
    numbers: list[int] = []
    with opened(session, folder, shuffle=True, seed=5, state=state, exchange=exchange) as stream:
        for batch in stream:
            check(batch.samples[0], batch.items[0])
            numbers += batch.items
            batch.release()
            if states is None and len(numbers) == 4 + session.rank:
                break
        return [numbers, stream.state_dict()]


@pytest.mark.parametrize("exchange", [True, False])
def test_resume_with_other_ranks(folder: Path, exchange: bool) -> None:
    first = run_ranks(2, rank_resumes, str(folder), None, exchange)
    second = run_ranks(3, rank_resumes, str(folder), [state for _, state in first], exchange)
    seen = [number for numbers, _ in (*first, *second) for number in numbers]
    assert sorted(seen) == list(range(TARS * SAMPLES))


def test_over_networks(session: sluice.Session, folder: Path) -> None:
    with S3Server() as server:
        server.is_public = True
        for path in sorted(folder.glob("*.tar")):
            server.objects["bucket", f"sets/{path.name}"] = path.read_bytes()
        store = {"s3_endpoint": server.url, "s3_region": server.region}
        http = f"{server.url}/bucket/sets"
        for uri, options in (("s3://bucket/sets", store), (f"{http}/train-{{000..002}}.tar", {}),
                             ("s3://bucket/sets/train-{000,001,002}.tar", store)):
            server.requests.clear()
            with opened(session, uri, **options) as stream:
                assert take(stream) == list(range(TARS * SAMPLES))
                # An index that is not there, a list, and for each tar its begin and the rest.
                looks = 2 * TARS + (2 if uri.endswith("sets") else 0)
                assert len(server.requests) == looks + stream.stats["requests"]
        with pytest.raises(sluice.InvalidSpec, match=r"cannot be listed: name the tars, as"):
            opened(session, http)
        with pytest.raises(sluice.InvalidSpec, match="train-003.tar"):
            opened(session, f"{http}/train-{{000..003}}.tar")
        # An index from beside the tars takes the place of the names, and of reading the tars.
        server.objects["bucket", "sets/index.json"] = Path(sluice.write_index(folder)).read_bytes()
        server.requests.clear()
        with opened(session, http) as stream:
            assert take(stream) == list(range(TARS * SAMPLES))
            assert len(server.requests) == 1 + stream.stats["requests"]


def test_a_written_index(session: sluice.Session, folder: Path) -> None:
    for place in (folder, f"file:{folder}"):
        assert sluice.write_index(place) == str(folder / "index.json")
    assert len(os.listdir(folder)) == TARS + 2
    (folder / "train-009.tar").write_bytes(b"not indexed")
    with opened(session, folder) as stream:
        assert take(stream) == list(range(TARS * SAMPLES))
    with session.stream(folder) as stream:  # the same items, as bytes
        assert stream.items == TARS * SAMPLES
        with pytest.raises(sluice.InvalidSpec, match='format="webdataset" or "mds"'):
            next(stream).samples
    os.rename(folder / "train-002.tar", folder / "train-000.tar")
    (folder / "train-002.tar").write_bytes(bytes(20000))
    with opened(session, folder, first=25, step=100) as stream:
        with pytest.raises(sluice.DataLoss, match="item 25 of the stream is not one sample"):
            next(stream).samples
    (folder / "index.json").write_text('{"version": 1}')
    with pytest.raises(sluice.DataLoss, match=r"train-009\.tar"):
        opened(session, folder)  # an index of others is not looked at
    for number in (2, 9):
        os.remove(folder / f"train-00{number}.tar")
    with pytest.raises(sluice.InvalidSpec, match="was not written by sluice.write_index"):
        sluice.write_index(folder)


def header(size: bytes, kind: bytes = b"0", name: bytes = b"b.jpg") -> bytes:
    """A header of a tar, which tarfile would not write."""
    block = bytearray(512)
    block[:len(name)], block[124:136], block[156:157] = name, size.ljust(12, b"\0"), kind
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


_GOOD = tar_of([("a.jpg", b"x" * 1000), ("b.jpg", b"y" * 1000)])
_RECORD = header(b"%011o\0" % 12, b"x") + b"12 path=b.j\n".ljust(512, b"\0")
_BAD = {
    b"no tar at all" * 100: "is no tar, or is damaged at byte 0",
    _GOOD[:1000]: "was cut off: 'a.jpg' ends at byte 1536, and there are 1000",
    _GOOD[:1536]: "was cut off: it ends at byte 1536, without the mark of an end",
    _GOOD[:1700]: "was cut off",
    _GOOD[:1536] + b"garbage!" * 640: "is damaged at byte 1536",
    b"\x1f\x8b" + _GOOD: "is compressed",
    tar_of([("a.jpg", b""), ("a.JPG", b"")]): "sample 'a' has two files '.jpg'",
    header(b"-0000001000") + bytes(4096): "negative size",
    _GOOD[:1536] + header(b"\xff" * 10 + b"\xf0\0") + bytes(4096): "'b.jpg' has a negative size",
    header(b"77777777777") + bytes(4096): "was cut off: 'b.jpg' ends at byte 8589935104",
    header(b"\x80" + b"\xff" * 11) + bytes(4096): "was cut off",
    header(b"77777777777", b"x") + bytes(4096): "a header of more than 1048576 bytes",
    header(b"\xff" * 11 + b"\0", b"L") + bytes(4096): "is damaged",
    _RECORD * 4000 + header(b"0"): "is damaged",
    header(b"0", b"S") + bytes(1024): "is sparse",
    header(b"%011o\0" % 11, b"g") + b"11 size=99\n".ljust(512, b"\0") + header(b"0"): "of PAX for",
    b"": "",
}


@pytest.mark.parametrize("bad", _BAD, ids=range(len(_BAD)))
def test_bad_tars(session: sluice.Session, folder: Path, bad: bytes) -> None:
    (folder / "bad.tar").write_bytes(bad)
    with pytest.raises(sluice.Error, match=r"bad\.tar.*" + re.escape(_BAD[bad])):
        opened(session, folder)


def rank_is_refused(session: sluice.Session, folder: str) -> Any:
    ends = [error_of(opened, session, folder)["text"],
            error_of(opened, session, folder, transform=sluice.scale(1.0))["text"]]
    if session.rank == 0:
        os.remove(f"{folder}/bad.tar")
    form = "raw" if session.rank == 1 else "webdataset"
    ends.append(error_of(session.stream, folder, format=form, item_bytes=1)["text"])
    with opened(session, folder) as stream:
        return [ends, take(stream)]


def test_all_ranks_hear_what_is_wrong(folder: Path) -> None:
    (folder / "bad.tar").write_bytes(_GOOD[:1700])
    for rank, (texts, numbers) in enumerate(run_ranks(3, rank_is_refused, str(folder))):
        for text, wanted in zip(texts, ("bad.tar was cut off: it ends at byte 1700", "no transform",
                                        "and rank 1 of another format")):
            assert wanted in text
        assert numbers == list(range(rank, TARS * SAMPLES, 3))


@pytest.mark.parametrize("rest", ["{a,b}.tar?sig=SECRET", "x?token=SECRET&f=a.tar", "a.tar#SECRET"])
def test_a_query_is_refused_and_not_told(session: sluice.Session, rest: str) -> None:
    with pytest.raises(sluice.InvalidSpec, match="goes on with a query") as caught:
        opened(session, f"http://127.0.0.1:9/{rest}")
    assert "SECRET" not in str(caught.value)


def test_an_index_is_written_through_no_link(folder: Path) -> None:
    other = folder / "notes.txt"
    for name in (f".index.json.{os.getpid()}", "index.json"):
        (folder / name).symlink_to(other)
    with pytest.raises(sluice.InvalidSpec, match="was not written by"):
        sluice.write_index(folder)
    os.remove(folder / "index.json")
    os.mkfifo(folder / "index.json")  # which nobody waits for
    with pytest.raises(sluice.InvalidSpec, match="was not written by"):
        sluice.write_index(folder)
    os.remove(folder / "index.json")
    sluice.write_index(folder)
    assert other.read_text() == "no tar" and not (folder / "index.json").is_symlink()


def test_who_waits_polls_and_hears_signals() -> None:
    never, polls = Event(), []

    def poll() -> None:
        polls.append(1)
        if len(polls) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(polled([never.wait], poll))
    never.set()
    assert list(polled((partial(pow, 2, i) for i in range(100)), list, 3)) == [
        2 ** i for i in range(100)]


@pytest.mark.parametrize("name, text", [
    ("{0..999999999999}.tar", "stands for no name, or for more than"), ("{a}.tar", "is neither"),
    ("{0..9}{0..999}{0..999}.tar", "more than"), ("{3..1}.tar", "no name"), ("{a,{b,c}}", "braces"),
    ("../{000..001}.tar", "000.tar")])
def test_bad_names(session: sluice.Session, folder: Path, name: str, text: str) -> None:
    with pytest.raises(sluice.InvalidSpec, match=re.escape(text)):
        opened(session, f"{folder}/{name}")
