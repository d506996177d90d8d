"""Directories as they may be found: each is used right, or an error names what is wrong with it.

Cases are drawn from a seed: that of the day, or SLUICE_TEST_SEED. SLUICE_ODD_CASES says how many.
"""

from __future__ import annotations

import json
import os
import random
import socket
import struct
import threading
import time
from pathlib import Path

import pytest
from ranks import LIMIT_SECONDS, SESSION_SECONDS, job_limit

import sluice

np = pytest.importorskip("numpy")
CASES = int(os.environ.get("SLUICE_ODD_CASES", "40"))
SEED = int(os.environ.get("SLUICE_TEST_SEED") or time.time() // 86400 * 1000)
ITEM_BYTES = 8
# What a name may look like after its beginning, which tells files apart in texts.
TAILS = ("", " with blanks", "-café", "-'quoted' \"twice\"", "%41?x#y", "-" + "long" * 40)
BAD_TAILS = (b"-\xff\xe9", b"-a\nb", b"-\x1b[31m", b"-back\\slash")
GOOD, LEFT_OUT, BAD = "good", "left out", "bad"


def tensor_file(name: str, value: int, count: int = 3) -> bytes:
    header = json.dumps({name: {"dtype": "U8", "shape": [count],
                                "data_offsets": [0, count]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes([value]) * count


class Drawn:
    """A directory that was drawn, and what is to come of it."""

    def __init__(self, folder: Path, number: int, draw: random.Random) -> None:
        self.folder, self.draw = folder, draw
        self.files: dict[str, bytes] = {}  # those that count, by name
        self.wrong: list[str] = []  # beginnings of the names that an error may show
        self.log: list[str] = []
        self.number = number
        os.makedirs(folder)

    def path(self, name: bytes) -> bytes:
        return os.fsencode(self.folder) + b"/" + name

    def write(self, name: bytes, data: bytes) -> None:
        with open(self.path(name), "wb") as file:
            file.write(data)

    def add(self, number: int, suffix: str, good: bytes, wrong: list[bytes]) -> None:
        draw = self.draw
        mark = f"f{number:02}"
        name = (mark + draw.choice(TAILS)).encode() + suffix.encode()
        kind = draw.choice(("file",) * 6 + ("link", "hidden", "folder", "link to folder", "fifo",
                                            "socket", "dangling", "loop", "bad name", "refused",
                                            "wrong", "wrong"))
        if kind == "refused" and os.geteuid() == 0:
            kind = "file"  # root may read all
        outcome = GOOD
        if kind in ("file", "link"):
            self.write(name, good)
            if kind == "link":
                os.makedirs(self.path(b".aside"), exist_ok=True)
                os.rename(self.path(name), self.path(b".aside/" + mark.encode()))
                os.symlink(b".aside/" + mark.encode(), self.path(name))
        elif kind == "hidden":
            outcome = LEFT_OUT
            self.write(b"." + name[:200], draw.choice(wrong + [good]))
        elif kind in ("folder", "link to folder"):
            outcome = LEFT_OUT
            target = b".folder" + mark.encode() if kind != "folder" else name
            os.mkdir(self.path(target))
            if kind != "folder":
                os.symlink(target, self.path(name))
        elif kind == "fifo":
            outcome = LEFT_OUT
            os.mkfifo(self.path(name))
        elif kind == "socket":
            outcome = LEFT_OUT
            short = mark.encode() + suffix.encode()
            with socket.socket(socket.AF_UNIX) as one:
                here = os.open(self.folder, os.O_RDONLY)
                one.bind(f"/proc/self/fd/{here}/".encode() + short)
                os.close(here)
        else:
            outcome = BAD
            if kind == "dangling":
                os.symlink("../none/" + mark, self.path(name))
            elif kind == "loop":
                os.symlink(name, self.path(name))
            elif kind == "bad name":
                name = mark.encode() + draw.choice(BAD_TAILS) + suffix.encode()
                self.write(name, good)
            elif kind == "refused":
                self.write(name, good)
                os.chmod(self.path(name), 0)
            else:
                self.write(name, draw.choice(wrong))
        self.log.append(f"{kind} {name!r}")
        if outcome == GOOD:
            self.files[name.decode()] = good
        elif outcome == BAD:
            self.wrong.append(mark)

    def put(self, files: dict[bytes, bytes], may_be_odd: tuple[bytes, ...]) -> None:
        """Writes these, and something else in place of one."""
        odd = self.draw.choice(may_be_odd)
        for name, data in files.items():
            if name == odd:
                self.put_odd(name)
            else:
                self.write(name, data)

    def put_odd(self, name: bytes) -> None:
        """In place of a file that has to be there."""
        kind = self.draw.choice(("folder", "fifo", "dangling", "loop", "empty", "other", "none"))
        self.log.append(f"{kind} {name!r}")
        self.wrong.append(name.decode())
        if kind == "folder":
            os.mkdir(self.path(name))
        elif kind == "fifo":
            os.mkfifo(self.path(name))
        elif kind == "dangling":
            os.symlink("../gone", self.path(name))
        elif kind == "loop":
            os.symlink(name, self.path(name))
        elif kind == "empty":
            self.write(name, b"")
        elif kind == "other":
            self.write(name, b"<html>!" if name == b"f01" else b"<!DOCTYPE html>" * 9)


def with_session(work: object) -> object:
    session = sluice.Session.from_exchange(0, 1, lambda mine: [bytes(mine)],
                                          timeout=SESSION_SECONDS)
    try:
        return work(session)  # type: ignore[operator]
    finally:
        session.close()


def streaming(case: Drawn, **options: object) -> object:
    uri = case.draw.choice(("file", "buffered", "mmap")) + f":{case.folder}"

    def work(session: sluice.Session) -> bytes:
        return b"".join(np.asarray(batch.tensor).tobytes()
                        for batch in session.stream(uri, timeout=SESSION_SECONDS, **options))

    return work


def loading(case: Drawn, names: list[str]) -> object:
    uri = case.draw.choice(("file:", "buffered:", "mmap:", "")) + str(case.folder)

    def work(session: sluice.Session) -> bytes:
        state = {name: np.zeros(3, np.uint8) for name in names}
        session.load(uri, state, progress=False, timeout=SESSION_SECONDS)
        return b"".join(state[name].tobytes() for name in sorted(state))

    return work


def stream_of(case: Drawn) -> tuple[object, bytes]:
    draw = case.draw
    wrong = [b"1234567", b"<html>" + b"x" * 7, b"x" * 9]  # no whole items
    for number in range(draw.randrange(1, 7)):
        items = draw.randrange(1, 4)
        case.add(number, draw.choice((".bin", "", ".raw")),
                 b"".join(struct.pack("<II", number, i) for i in range(items)), wrong)
    by_name = sorted(case.files.items(), key=lambda item: os.fsencode(item[0]))
    return (streaming(case, format="raw", item_bytes=ITEM_BYTES),
            b"".join(data for _, data in by_name))


def checkpoint_of(case: Drawn) -> tuple[object, bytes]:
    draw = case.draw
    whole = tensor_file("a", 1)
    wrong = [b"", b"1234567", whole[:-1], whole + b"x", b"<!DOCTYPE html>" * 9,
             b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64,
             b"\x80\x04" * 40, struct.pack("<Q", 2**40) + b"{}"]
    for number in range(draw.randrange(1, 6)):
        case.add(number, ".safetensors", tensor_file(f"t{number:02}", number), wrong)
    if draw.randrange(4) == 0:
        # Where there is one, what else lies there does not count.
        case.write(b"model.safetensors", tensor_file("t99", 99))
        case.files, case.wrong = {"f99": tensor_file("t99", 99)}, []
    if draw.randrange(3) == 0:
        case.write(b"README.md", b"text")
    names = [f"t{name[1:3]}" for name in case.files]
    return (loading(case, names or ["t00"]),
            b"".join(bytes([int(name[1:])]) * 3 for name in sorted(names)))


def index_of(case: Drawn) -> tuple[object, bytes]:
    """A checkpoint's index, or a file that it names, is something else."""
    index, shard = b"model.safetensors.index.json", b"model-00001-of-00001.safetensors"
    text = json.dumps({"weight_map": {"a": shard.decode()}}).encode()
    case.put({index: text, shard: tensor_file("a", 7)}, (index, shard))
    return loading(case, ["a"]), b""


def stream_index_of(case: Drawn) -> tuple[object, bytes]:
    """The same of a stream's index."""
    data = struct.pack("<II", 1, 2)
    text = json.dumps({"version": 1, "format": "raw", "items": 2, "objects": [
        {"name": name, "items": 1, "item_bytes": ITEM_BYTES} for name in ("f00", "f01")]}).encode()
    case.put({b"index.json": text, b"f00": data, b"f01": data}, (b"index.json", b"f01"))
    return streaming(case), b""


def outcome_of(case: Drawn, work: object, want: bytes) -> str:
    """Empty: as it must be."""
    try:
        got = with_session(work)
    except sluice.Error as error:
        text = str(error)
        if isinstance(error, (sluice.Timeout, sluice.PeerLost)):
            return f"{type(error).__name__}: {text}"
        if not text.isprintable():
            return f"a text with control characters: {text!r}"
        if case.wrong:
            return "" if any(mark in text for mark in case.wrong) else f"names no file: {text}"
        if not case.files:
            return "" if str(case.folder) in text else f"does not name the directory: {text}"
        return f"a good directory is refused: {text}"
    except Exception as error:
        return f"{type(error).__name__} out of the package: {error}"
    if case.wrong or not case.files:
        return "no error"
    return "" if got == want else f"{got!r} for {want!r}"


def test_each_is_used_right_or_named(tmp_path: Path) -> None:
    failed: list[str] = []
    now = ["none"]

    def run() -> None:
        for number in range(CASES):
            draw = random.Random(f"{SEED}-{number}")
            case = Drawn(tmp_path / f"case {number}", number, draw)
            make = draw.choice((stream_of, checkpoint_of, stream_index_of, index_of))
            work, want = make(case)
            now[0] = f"{make.__name__} {number} of seed {SEED}: {case.log}"
            if trouble := outcome_of(case, work, want):
                failed.append(f"{now[0]}: {trouble}")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(LIMIT_SECONDS)
    assert not thread.is_alive(), f"{now[0]} hangs:\n{job_limit.frames(os.getpid())}"
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("name", ["weight", "it's", "layer 'a' of b", "a\nb", "rank 7.weight"])
def test_errors_tell_names_from_their_text(tmp_path: Path, name: str) -> None:
    (tmp_path / "model.safetensors").write_bytes(tensor_file(name, 1))

    def load(state: dict[str, object]) -> object:
        return lambda session: session.load(f"file:{tmp_path}", state, progress=False)

    with pytest.raises(sluice.InvalidSpec) as wrong:
        with_session(load({name: np.zeros(4, np.uint8)}))
    assert wrong.value.tensor == name and str(wrong.value).isprintable()
    with pytest.raises(sluice.InvalidSpec) as missing:
        with_session(load({name + ".bias": np.zeros(4, np.uint8)}))
    assert missing.value.ranks == () and str(missing.value).isprintable()
