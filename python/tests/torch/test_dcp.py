"""Checkpoints of torch.distributed.checkpoint: read as DCP reads them, and what is refused."""

from __future__ import annotations

import copy
import functools
import io
import os
import pickle
import random
import struct
import threading
import types
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.6")

import sluice  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from ranks import error_of  # noqa: E402
from sluice.integrations.dcp import Reader  # noqa: E402
from test_optimizer import differences, trained  # noqa: E402
from torch.distributed.checkpoint.filesystem import _StorageInfo  # noqa: E402
from torch_ranks import gloo_session, run_job, same_bytes  # noqa: E402

# A folder with NumPy, which DCP takes to run on several ranks, and what it reads safetensors by.
# Nothing else here may find NumPy.
BESIDE = os.environ.get("SLUICE_TEST_BESIDE", "")
SEED = int(os.environ.get("SLUICE_TEST_SEED", "1"))
THOROUGH = "SLUICE_TEST_THOROUGH" in os.environ
SIZE = 4
# Meshes of four ranks, and what each of their dimensions does.
LAYOUTS: list[tuple[tuple[int, ...], str]] = [
    ((4,), "S0"), ((4,), "S1"), ((4,), "R"), ((2, 2), "S0 S1"), ((2, 2), "S1 S0"),
    ((2, 2), "R S0"), ((2, 2), "S0 R"), ((2, 2), "S1 R"), ((2, 2), "R S1"), ((1, 4), "R S0"),
    ((4, 1), "S1 S0"), ((2, 1, 2), "S0 R S1"),
]
SHAPES = {"w": (7, 5), "model.u": (13, 3, 2), "layers.0.b": (3, 2), "large": (257, 130)}
DTYPES = {"w": "float32", "model.u": "bfloat16", "layers.0.b": "float64", "large": "float32"}


def whole(name: str) -> torch.Tensor:
    """The tensor of this name."""
    torch.manual_seed(len(name))
    return torch.randn(SHAPES[name]).to(getattr(torch, DTYPES[name]))


@functools.lru_cache(None)  # each has groups of its own, with threads
def mesh_of(sizes: tuple[int, ...]) -> Any:
    from torch.distributed.device_mesh import init_device_mesh
    return init_device_mesh("cpu", sizes)


def placed(layout: tuple[tuple[int, ...], str], empty: bool = False) -> dict[str, Any]:
    """A state in a layout; `empty`: with other values."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    sizes, words = layout
    mesh = mesh_of(sizes)
    places = [Replicate() if word == "R" else Shard(int(word[1])) for word in words.split()]
    state: dict[str, Any] = {name: distribute_tensor(whole(name), mesh, places) for name in SHAPES}
    state["scalar"] = torch.tensor(2.5)
    state["step"] = 7
    if empty:
        for value in state.values():
            if isinstance(value, torch.Tensor):
                getattr(value, "_local_tensor", value).fill_(-1)
        state["step"] = 0
    return state


def wrong(state: dict[str, Any], layout: tuple[tuple[int, ...], str]) -> list[str]:
    """The names of what differs from the layout's state."""
    right = placed(layout)
    return [name for name, value in state.items() if name == "step" and value != 7 or
            isinstance(value, torch.Tensor) and not same_bytes(
                *[getattr(part, "_local_tensor", part) for part in (value, right[name])])]


def _job(folder: str, url: str) -> dict[str, Any]:
    """All that takes several ranks, in one job, as each rank of one takes seconds to begin."""
    with gloo_session() as session:
        for number, layout in enumerate(LAYOUTS):
            dcp.save(placed(layout), checkpoint_id=f"{folder}/{number}")
        place = f"{'dcp:' if session.rank == 0 else ''}{folder}/0"
        kinds = error_of(session.load, place, {"w": torch.zeros(2)})["text"]
        return {"read": _reads(session, folder, url), "kinds": kinds,
                "saved": _reads_a_save(session, f"{folder}/saved")}


def _reads(session: sluice.Session, folder: str, url: str) -> list[Any]:
    found = []
    for number, layout in enumerate(LAYOUTS):
        for source in range(len(LAYOUTS)):
            if not THOROUGH and (number + source + SEED) % 3 > 0:
                continue  # another day
            state = placed(layout, empty=True)
            place = url if (number + source) % 5 == 0 else folder
            stats = session.load(f"dcp:{place}/{source}", state, strict=True, progress=False,
                                 piece_bytes=4096 if source % 2 else 1 << 20)
            found.append([wrong(state, layout), stats["file_bytes"]])
        state = placed(layout, empty=True)
        dcp.load(state, storage_reader=Reader(f"{folder}/{number}", session))
        found.append([wrong(state, layout), 0])
        state = placed(layout, empty=True)
        dcp.load(state, checkpoint_id=f"{folder}/{number}")  # the test itself is right
        found.append([wrong(state, layout), 0])
    return found


def _reads_a_save(session: sluice.Session, folder: str) -> list[str]:
    from torch.distributed.checkpoint import HuggingFaceStorageReader
    state = {name: value for name, value in placed(LAYOUTS[3]).items() if name in SHAPES}
    session.save(folder, state, progress=False, shard_bytes_max=1000)
    found = []
    for layout in LAYOUTS[:5]:
        other = {name: value for name, value in placed(layout, empty=True).items()
                 if name in SHAPES}
        dcp.load(other, storage_reader=HuggingFaceStorageReader(folder))
        found += wrong(other, layout)
    return found


class _Ranges(SimpleHTTPRequestHandler):
    """Files, also parts of them."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        try:
            data = Path(self.translate_path(self.path)).read_bytes()
        except OSError:
            self.send_error(404)
            return
        first, last = 0, len(data) - 1
        asked = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
        if asked[0]:
            first, last = int(asked[0]), min(last, int(asked[2] or last))
        self.send_response(206 if asked[0] else 200)
        self.send_header("ETag", f'"{len(data)}"')
        self.send_header("Content-Length", str(last - first + 1))
        if asked[0]:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.end_headers()
        self.wfile.write(data[first:last + 1])


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of the folder."""
    def handler(*args: Any) -> _Ranges:
        return _Ranges(*args, directory=str(folder))

    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module", name="job")
def _of_job(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each rank found."""
    if not BESIDE:
        pytest.skip("SLUICE_TEST_BESIDE names no folder with NumPy and safetensors")
    folder = tmp_path_factory.mktemp("dcp")
    with served(folder) as url:
        return run_job(SIZE, _job, str(folder), url, path=BESIDE)


def test_each_layout_reads_each(job: list[dict[str, Any]]) -> None:
    values = sum(whole(name).nbytes for name in SHAPES) + 4
    for ranks in zip(*[answer["read"] for answer in job]):
        assert all(not names for names, _ in ranks), ranks
        read = sum(count for _, count in ranks)
        assert read in (0, values)  # each byte once


def test_ranks_load_one_kind(job: list[dict[str, Any]]) -> None:
    for answer in job:
        assert "of another kind" in answer["kinds"]


def test_dcp_reads_saves(job: list[dict[str, Any]]) -> None:
    assert [answer["saved"] for answer in job] == [[]] * SIZE


def save(folder: Path, state: dict[str, Any], name: str = "x") -> Path:
    """A checkpoint of this process alone."""
    dcp.save(state, checkpoint_id=folder / name)
    return folder / name


def load(place: Path | str, state: dict[str, Any], **options: Any) -> dict[str, Any]:
    return sluice.load(f"dcp:{place}", state, progress=False, **options)


def emptied(state: Any) -> Any:
    """A copy with other values."""
    if isinstance(state, torch.Tensor):
        empty = torch.empty_strided(state.shape, state.stride(), dtype=state.dtype)
        empty.untyped_storage().fill_(1)
        return empty
    if isinstance(state, dict):
        return {name: emptied(value) for name, value in state.items()}
    if isinstance(state, list):
        return [emptied(value) for value in state]
    return type(state)() if state is not None else None


NAMED = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
         "bool", "complex64", "complex128", "uint16", "uint32", "uint64", "float8_e4m3fn",
         "float8_e5m2"]


def random_state(dice: random.Random) -> dict[str, Any]:
    """Tensors of many types, shapes and orders of dimensions, in dicts and lists; and values."""
    def tensor() -> torch.Tensor:
        shape = [dice.choice([0, 1, 2, 3, 5, 17]) if dice.random() < 0.9 else 300
                 for _ in range(dice.randint(0, 4))]
        dtype = getattr(torch, dice.choice(NAMED))
        count = max(1, torch.Size(shape).numel()) * dtype.itemsize
        memory = torch.randint(0, 2 if dtype == torch.bool else 256, (count,), dtype=torch.uint8)
        made = memory.view(dtype)[:torch.Size(shape).numel()].reshape(shape)
        order = list(range(len(shape)))
        dice.shuffle(order)
        made = made.permute(order)
        if made.ndim > 0 and made.shape[0] > 1 and dice.random() < 0.3:
            made = made[1:]  # DCP copies it
        return made

    def value() -> Any:
        return dice.choice([1, -2.5, "text", None, True, [1, 2], (3, "x")])

    def some(depth: int) -> Any:
        kind = dice.random()
        if depth > 2 or kind < 0.5:
            return tensor()
        if kind < 0.65:
            return value()
        if kind < 0.85:
            return {dice.choice(["a", "b.c", "weight", "ü", "0"]): some(depth + 1)
                    for _ in range(dice.randint(1, 3))}
        return [some(depth + 1) for _ in range(dice.randint(1, 3))]

    return {f"{dice.choice(['m', 'opt', 'x y'])}{i}": some(0) for i in range(dice.randint(1, 6))}


@pytest.mark.parametrize("part", range(4))
def test_random_states_are_as_dcp_has_them(tmp_path: Path, part: int) -> None:
    count = 75 if THOROUGH else 15
    for number in range(count):
        seed = SEED * 1000 + part * 100 + number
        dice = random.Random(seed)
        torch.manual_seed(seed)
        state = random_state(dice)
        place = save(tmp_path, state, str(number))
        ours, own, its = emptied(state), emptied(state), emptied(state)
        load(place, ours, strict=True)
        dcp.load(its, checkpoint_id=place)
        with sluice.Session.local() as session:
            dcp.load(own, storage_reader=Reader(place, session))
        assert not differences(its, ours), seed
        assert not differences(its, own), seed


def test_an_optimizer(tmp_path: Path) -> None:
    model, optimizer = trained(3, 1)
    place = save(tmp_path, {"model": model.state_dict(), "optim": optimizer.state_dict()})
    other, its = trained(1, 2)
    state = {"model": other.state_dict(), "optim": its.state_dict()}
    load(place, state)
    assert not differences(model.state_dict(), other.state_dict())
    saved = optimizer.state_dict()
    assert not differences(saved["state"], state["optim"]["state"])
    assert state["optim"]["param_groups"] == saved["param_groups"]


def test_casts_and_names(tmp_path: Path) -> None:
    place = save(tmp_path, {"model": {"w": torch.arange(6.0)}, "other": torch.zeros(3)})
    state = {"w": torch.zeros(6, dtype=torch.bfloat16)}
    stats = load(place, state, rename={"w": "model.w"}, strict=False)
    assert state["w"].tolist() == [0, 1, 2, 3, 4, 5]
    assert stats["unexpected"] == ["other"]
    assert "the checkpoint lacks 'w'" in error_of(load, place, state)["text"]


def test_tied_weights_are_there_twice(tmp_path: Path) -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = torch.nn.Linear(3, 3)
            self.embed = torch.nn.Embedding(3, 3)
            self.embed.weight = self.head.weight

    model = Tied()
    place = save(tmp_path, model.state_dict())
    sluice.save(tmp_path / "own", model, progress=False)
    for where in (f"dcp:{place}", tmp_path / "own"):
        other = Tied()
        stats = sluice.load(where, other, strict=True, progress=False)
        assert stats["unexpected"] == []
        assert torch.equal(other.embed.weight, model.head.weight)


def test_a_scattered_item(tmp_path: Path) -> None:
    # The pickle of many strides is longer than what is read of an item's begin.
    state = {"w" * 5000: torch.arange(100000.0)}
    place = save(tmp_path, state)
    ours = emptied(state)
    load(place, ours)
    assert not differences(state, ours)


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, ("touch " + os.environ["EVIL"],))


def edit_metadata(place: Path, edit: Callable[[Any], Any]) -> None:
    metadata = pickle.loads((place / ".metadata").read_bytes())
    changed = edit(metadata) or metadata
    (place / ".metadata").write_bytes(pickle.dumps(changed))


@pytest.mark.parametrize("where", ["metadata", "planner", "item"])
def test_a_pickle_may_not_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setenv("EVIL", str(tmp_path / "evil"))
    state = {"w": torch.zeros(4), "n": 5}
    place = save(tmp_path, state)
    if where == "metadata":
        edit_metadata(place, lambda _: _Evil())
    elif where == "planner":
        edit_metadata(place, lambda metadata: setattr(metadata, "planner_data", _Evil()))
    else:
        item = io.BytesIO()
        torch.save(_Evil(), item)
        file = place / "__0_0.distcp"
        begin = file.stat().st_size
        with file.open("ab") as out:
            out.write(item.getvalue())

        def moved(metadata: Any) -> None:
            for index in metadata.storage_data:
                metadata.storage_data[index] = _StorageInfo(file.name, begin,
                                                            len(item.getvalue()))
        edit_metadata(place, moved)
    with sluice.Session.local() as session:
        for call in (lambda: load(place, emptied(state)),
                     lambda: dcp.load(emptied(state), storage_reader=Reader(place, session))):
            with pytest.raises(BaseException, match=r"it names posix\.system"):
                call()
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("pickled, text", [
    (b"\x80\x04}" + b")" + b"\x85" * 1000000 + b"K\x01s.", "a key that is a tuple"),
    (b"\x80\x04Nr\xff\xff\xff\x7f.", "a NoneType"),  # a memo of 2^31 places
    (b"\x80\x04cbuiltins\neval\n.", r"it names builtins\.eval"),
    (b"\x80\x04\x8c\x05torch\x8c\x10serialization.os\x93.", r"it names torch\.serialization\.os"),
    (b"\x80\x04\x8b\xff\xff\xff\x7f.", "step 0x8b"),
    (b"\x80\x04\x8a\xff" + b"\x01" * 255 + b".", "a number of 255 bytes"),
    (b"\x80\x04N", "index out of range"),
    (b"\x80\x04.", "pop from empty list"),
    (b"\x80\x04ctorch\nfloat32\n)R.", "a call of what is no function"),
    (b"\x80\x04cpathlib\nPosixPath\n}\x8c\x06existsK\x01sb.", "a state of what has none"),
])
def test_bad_metadata(tmp_path: Path, pickled: bytes, text: str) -> None:
    place = save(tmp_path, {"w": torch.zeros(4)})
    (place / ".metadata").write_bytes(pickled)
    with pytest.raises(sluice.InvalidSpec, match=f"is not what DCP writes.*{text}"):
        load(place, {"w": torch.zeros(4)})


def test_a_value_is_plain(tmp_path: Path) -> None:
    for value in ({1, 2}, 1j):
        place = save(tmp_path, {"w": torch.zeros(2), "v": value}, str(type(value).__name__))
        with pytest.raises(sluice.Unsupported, match="'v' of the checkpoint is") as raised:
            load(place, {"w": torch.zeros(2), "v": 0})
        assert raised.value.tensor == "v"
    place = save(tmp_path, {"v": {"raw": b"\x00\xff", "size": torch.Size([1])}}, "reader")
    state = {"v": {"raw": b"", "size": None}}
    with sluice.Session.local() as session:
        dcp.load(state, storage_reader=Reader(place, session))
    assert state == {"v": {"raw": b"\x00\xff", "size": (1,)}}


def test_a_value_is_small(tmp_path: Path) -> None:
    # A list of two lists that are one, and so on: 2^60 parts. DCP itself would not end.
    place = save(tmp_path, {"v": [[1], 2]})
    file = place / "__0_0.distcp"
    item = io.BytesIO()
    with zipfile.ZipFile(item, "w") as archive:
        archive.writestr("x/data.pkl", b"\x80\x04]K\x01a" + b"".join(
            b"q" + bytes([i]) + b"]h" + bytes([i]) + b"ah" + bytes([i]) + b"a"
            for i in range(60)) + b".")
    file.write_bytes(item.getvalue())

    def moved(metadata: Any) -> None:
        for index in metadata.storage_data:
            metadata.storage_data[index] = _StorageInfo(file.name, 0, len(item.getvalue()))

    edit_metadata(place, moved)
    with pytest.raises(sluice.Unsupported, match="too many parts"):
        load(place, {"v": [[0], 0]})


def test_conjugates_are_refused(tmp_path: Path) -> None:
    values = torch.randn(4, dtype=torch.complex64)
    for number, one in enumerate((torch.conj(values), torch.imag(torch.conj(values)))):
        place = save(tmp_path, {"w": one}, str(number))
        ours = emptied({"w": one.clone()})
        try:
            load(place, ours)
        except sluice.Unsupported as error:
            assert "save a clone" in str(error)
        else:
            assert torch.equal(ours["w"], one)  # DCP has written a plain one


def test_values_need_a_place(tmp_path: Path) -> None:
    place = save(tmp_path, {"w": torch.ones(2), "more": {"n": 5}})
    ours = {"w": torch.zeros(2), "more": types.MappingProxyType({"n": 0})}
    with pytest.raises(sluice.InvalidSpec, match="'more.n' is in a mappingproxy"):
        load(place, ours)
    assert ours["w"].tolist() == [0, 0]


def test_no_secret_is_shown(tmp_path: Path) -> None:
    for place in ("http://user:SECRET@127.0.0.1:1/x", "s3://KEY:SECRET@bucket/x",
                  "http://127.0.0.1:1/x?X-Amz-Signature=SECRET"):
        for call in (lambda: load(place, {"w": torch.zeros(2)}, attempts_max=1),
                     lambda: sluice.save(f"dcp:{place}", {"w": torch.zeros(2)}),
                     lambda: sluice.save(place, {"w": torch.zeros(2)})):
            with pytest.raises(sluice.Error) as raised:
                call()
            assert "SECRET" not in str(raised.value)


def damaged(place: Path, edit: Callable[[bytearray], None]) -> None:
    file = place / "__0_0.distcp"
    data = bytearray(file.read_bytes())
    edit(data)
    file.write_bytes(data)


def test_what_is_damaged_is_said(tmp_path: Path) -> None:
    state = {"w": torch.arange(500.0)}

    def fails(number: int, break_it: Callable[[Path], Any], kind: type[Exception], text: str
              ) -> None:
        place = save(tmp_path, state, str(number))
        break_it(place)
        ours = emptied(state)
        before = copy.deepcopy(ours)
        with pytest.raises(kind, match=text):
            load(place, ours)
        assert not differences(before, ours), number

    def info(metadata: Any, **fields: Any) -> None:
        for index, value in metadata.storage_data.items():
            metadata.storage_data[index] = _StorageInfo(**{**vars(value), **fields})

    def size(metadata: Any, size: list[int]) -> None:
        metadata.state_dict_metadata["w"].chunks[0].sizes = torch.Size(size)
        whole_size(metadata, size)

    def whole_size(metadata: Any, size: list[int]) -> None:
        metadata.state_dict_metadata["w"].size = torch.Size(size)

    def flip(data: bytearray) -> None:
        at = data.index(struct.pack("<f", 77.0))
        data[at] ^= 1

    invalid, lost = sluice.InvalidSpec, sluice.DataLoss
    fails(0, lambda place: (place / ".metadata").unlink(), invalid,
          "no checkpoint of PyTorch's DCP: cannot open")
    fails(1, lambda place: (place / ".metadata").rename(place / "__0.metadata"),
          sluice.Unsupported, "saved by each rank for itself")
    fails(2, lambda place: damaged(place, flip), lost, "a CRC")
    fails(3, lambda place: damaged(place, lambda data: data.__delitem__(slice(-700, None))), lost,
          "__0_0.distcp")
    fails(4, lambda place: edit_metadata(place, lambda data: info(data, offset=1 << 40)), lost,
          "__0_0.distcp")
    fails(5, lambda place: edit_metadata(place, lambda data: info(data, length=100)), lost,
          "damaged")
    fails(6, lambda place: edit_metadata(
        place, lambda data: info(data, transform_descriptors=["zstd"])), sluice.Unsupported,
        "compressed or encrypted")
    fails(7, lambda place: edit_metadata(place, lambda data: size(data, [499])), lost,
          r"an array of float32 \[500\]")
    fails(8, lambda place: edit_metadata(place, lambda data: info(data, relative_path="../x")),
          invalid, "../x")
    fails(9, lambda place: (place / "__0_0.distcp").unlink(), invalid, "__0_0.distcp")
    fails(10, lambda place: (place / ".metadata").write_bytes(b"\x80\x04."), invalid,
          "is not what DCP writes")
    fails(12, lambda place: edit_metadata(place, lambda data: whole_size(data, [501])), invalid,
          "its chunks are not all of it")
    fails(11, lambda place: edit_metadata(place, lambda data: data.storage_data.clear()), invalid,
          "is not what DCP writes")


def test_a_large_item_is_not_read_twice(tmp_path: Path) -> None:
    state = {"w": torch.arange(1 << 20, dtype=torch.float32)}
    place = save(tmp_path, state)
    ours = emptied(state)
    stats = load(f"buffered:{place}", ours)
    assert not differences(state, ours)
    assert stats["bytes_read"] == 4 << 20
    assert stats["tensors"] == 1


def test_only_loads(tmp_path: Path) -> None:
    with pytest.raises(sluice.InvalidSpec, match="are read, and not written"):
        sluice.save(f"dcp:{tmp_path}/x", {"w": torch.zeros(2)})
    entry = sluice.CheckpointEntry("w", "x.bin", 0, "f32", (2,))
    with pytest.raises(sluice.InvalidSpec, match="takes no catalog"):
        sluice.load(f"dcp:{tmp_path}/x", {"w": torch.zeros(2)}, catalog=[entry])
