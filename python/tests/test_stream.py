"""Streams as iterators: what batches hold, how long, and how they are resumed."""

from __future__ import annotations

import gc
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sluice
from ranks import run_ranks

ITEMS, WIDTH = 40, 8


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Item i of two files is WIDTH bytes of value i."""
    data = np.repeat(np.arange(ITEMS, dtype=np.uint8), WIDTH).reshape(ITEMS, WIDTH)
    np.save(tmp_path / "a.npy", data[: ITEMS // 2])
    np.save(tmp_path / "b.npy", data[ITEMS // 2:])
    return tmp_path


def npy(folder: Path | str, **options: Any) -> dict[str, Any]:
    return {"uri": f"buffered:{folder}", "format": "npy", **options}


def test_batches(session: sluice.Session, folder: Path) -> None:
    seen = []
    with session.stream(**npy(folder, batch_items=3)) as stream:
        assert stream.items == ITEMS
        for batch in stream:
            assert batch.tensor.shape == (len(batch), WIDTH) and batch.tensor.dtype == np.uint8
            assert batch.tensor[:, 0].tolist() == batch.items == batch.tensor[:, -1].tolist()
            assert set(batch.epochs) == {0}
            assert [tensor.tolist() for tensor in batch.tensors] == batch.tensor.tolist()
            seen += batch.items
        assert next(stream, None) is None
        assert stream.stats["items"] == ITEMS
    assert seen == list(range(ITEMS))


def test_numbers_of_one_dimension(session: sluice.Session, tmp_path: Path) -> None:
    numbers = np.array([3, 1, 4, 1, 5, 9], dtype=np.int64)
    for array in (numbers, numbers.reshape(6, 1)):
        np.save(tmp_path / "a.npy", array)
        with session.stream(**npy(tmp_path, batch_items=4)) as stream:
            for batch, wanted in zip(stream, (array[:4], array[4:])):
                assert batch.tensor.dtype == array.dtype and batch.tensor.shape == wanted.shape
                assert batch.tensor.tolist() == wanted.tolist()
                assert np.from_dlpack(batch).shape == wanted.shape


def test_a_given_index(session: sluice.Session, folder: Path) -> None:
    index = {"version": 1, "format": "npy", "items": 2, "dtype": "u8", "shape": [WIDTH],
             "objects": [{"name": "b.npy", "items": 2, "offset": 128, "item_bytes": WIDTH}]}
    with session.stream(folder, index=json.dumps(index)) as stream:
        assert [batch.tensor[0, 0] for batch in stream] == [ITEMS // 2, ITEMS // 2 + 1]
    with pytest.raises(sluice.InvalidSpec, match="goes with no format but"):
        session.stream(**npy(folder, index=json.dumps(index)))


def test_transform(session: sluice.Session, folder: Path) -> None:
    with session.stream(**npy(folder, transform=sluice.scale(0.5, 1.0))) as stream:
        for i, batch in enumerate(stream):
            assert batch.tensor.dtype == np.float32
            assert batch.tensor.tolist() == [[i * 0.5 + 1] * WIDTH]
    transform = sluice.Transform(src="u8", dst="bf16")
    with session.stream(**npy(folder, transform=transform)) as stream:
        assert str(next(stream).tensor.dtype) == "bfloat16"


def test_memory_is_given_back(session: sluice.Session, folder: Path) -> None:
    with session.stream(**npy(folder)) as stream:
        first = next(stream)
        next(stream)
        with pytest.raises(sluice.InvalidSpec, match="keep"):
            first.tensor.sum()
        assert "given back" in repr(first)


def test_keep(session: sluice.Session, folder: Path) -> None:
    with session.stream(**npy(folder, buffers=3)) as stream:
        kept = next(stream).keep()
        for _ in range(5):
            next(stream)
        assert kept.tensor.tolist() == [[0] * WIDTH]
        kept.release()
        kept.release()
        assert len(list(stream)) == ITEMS - 6


def test_a_tensor_that_is_held_stays_right(session: sluice.Session, folder: Path) -> None:
    with session.stream(**npy(folder, buffers=2)) as stream:
        held = next(stream).tensor
        second = next(stream)
        part = second.tensor[:, :2]
        with pytest.raises(sluice.Error, match="buffers of the stream are held"):
            next(stream)
        assert held.tolist() == [[0] * WIDTH] and part.tolist() == [[1, 1]]
        del held
        gc.collect()
        assert next(stream).tensor.tolist() == [[2] * WIDTH]
    assert part.tolist() == [[1, 1]], "a tensor may outlive its stream"


def test_release_says_that_somebody_still_refers_to_a_tensor(
        session: sluice.Session, folder: Path) -> None:
    with session.stream(**npy(folder)) as stream:
        batch = next(stream)
        held = batch.tensor
        before = stream.state_dict()
        with pytest.warns(UserWarning, match=r"release: 1 tensor\(s\) of this batch of 1 items are "
                                             r"still referred to: 1 of batch\.tensor\. The memory"):
            batch.release()
        assert stream.state_dict() == before
        del held
        assert stream.state_dict() != before
        batch = next(stream)
        assert batch.tensor.tolist() == [[1] * WIDTH]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            batch.release()
            held = next(stream).tensor
            next(stream)  # what is asked for gives back, as soon as the loop's variable moves on


def test_release_names_the_items_of_tensors_that_are_held(
        session: sluice.Session, folder: Path) -> None:
    with session.stream(**npy(folder, batch_items=8, buffers=2)) as stream:
        batch = next(stream)
        held = [batch.tensors[2], batch.tensors[5][1:], batch.tensors[5], batch.tensor[3]]
        wanted = [array.tolist() for array in held]
        with pytest.warns(UserWarning, match=r"4 tensor\(s\) of this batch of 8 items are still "
                                             r"referred to: 1 of batch\.tensor, "
                                             r"1 of item 2 \(batch\.tensors\[2\]\), "
                                             r"2 of item 5 \(batch\.tensors\[5\]\)\. The"):
            batch.release()
        # One buffer is left, and what is held is not filled again.
        for batch in (next(stream), next(stream)):
            del batch
            assert [array.tolist() for array in held] == wanted
        with pytest.warns(UserWarning, match=r"tensors\[3\]\), and those of 4 more items\. The"):
            batch = next(stream)
            every = batch.tensors
            batch.release()
        del every


def test_dlpack(session: sluice.Session, folder: Path) -> None:
    with session.stream(**npy(folder)) as stream:
        array = np.from_dlpack(next(stream))
        assert array.tolist() == [[0] * WIDTH]
        del array
        assert next(stream).tensor.tolist() == [[1] * WIDTH]


def test_generator(session: sluice.Session) -> None:
    def make(item: int, into: memoryview) -> None:
        into[:] = bytes([item] * len(into))

    for generator in (make, lambda item, into: bytes([item] * len(into))):
        with session.stream(generator=generator, generator_items=5, item_bytes=4) as stream:
            assert [batch.tensor.tolist() for batch in stream] == [[[i] * 4] for i in range(5)]

    def fail(item: int, into: memoryview) -> None:
        raise ZeroDivisionError(f"item {item}")

    with session.stream(generator=fail, generator_items=5, item_bytes=4) as stream:
        with pytest.raises(sluice.Error, match="ZeroDivisionError"):
            next(stream)

    with session.stream(generator=lambda item, into: item + 1, generator_items=3, item_bytes=4,
                        sized=True) as stream:
        assert [batch.tensors[0].shape for batch in stream] == [(1,), (2,), (3,)]


def test_resume(session: sluice.Session, folder: Path) -> None:
    options = npy(folder, batch_items=4, shuffle=True, seed=3, epochs=2)
    with session.stream(**options) as stream:
        wanted = [batch.items for batch in stream]
    with session.stream(**options) as stream:
        for _ in range(3):
            batch = next(stream)
        in_hand = stream.state_dict()
        batch.release()
        state = stream.state_dict()
        next(stream)
        stream.load_state_dict(state)
        assert [batch.items for batch in stream] == wanted[3:]
    with session.stream(**options, state=in_hand) as stream:
        assert [batch.items for batch in stream] == wanted[2:]


def rank_resumes(session: sluice.Session, folder: str, states: Any) -> Any:
    state = None if states is None else sluice.merge_states(states)
    items = []
    with session.stream(**npy(folder, shuffle=True, seed=5), state=state) as stream:
        for batch in stream:
            items += batch.items
            batch.release()
            if states is None and len(items) == 6 + session.rank:
                break
        return [items, stream.state_dict()]


def test_resume_with_other_ranks(folder: Path) -> None:
    first = run_ranks(2, rank_resumes, str(folder), None)
    second = run_ranks(3, rank_resumes, str(folder), [state for _, state in first])
    seen = [item for items, _ in (*first, *second) for item in items]
    assert len(seen) == ITEMS and sorted(seen) == list(range(ITEMS))


def test_bad_states(session: sluice.Session, folder: Path) -> None:
    for state, text in (({}, "state_dict"), ({"sluice_stream": 1, "cursor": "AAAA"}, "."),
                        ({"sluice_stream": 2, "cursor": ""}, "format 2")):
        with pytest.raises(sluice.InvalidSpec, match=text):
            sluice.merge_states([state])
    with pytest.raises(sluice.InvalidSpec, match="crop"):
        session.stream(**npy(folder), transform=sluice.Transform(crop=(1, 2)))
    with pytest.raises(sluice.Unsupported, match="dtype q8"):
        session.stream(**npy(folder), transform=sluice.scale(1.0, dst="q8"))
    with pytest.raises(sluice.Error, match="nowhere"):
        session.stream(**npy(folder / "nowhere"))


def test_arrays_of_mapped_files_are_read_only(session: sluice.Session, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(8192, dtype=np.float32).reshape(2, 4096))
    for scheme, writeable in (("mmap:", False), ("file:", True)):
        with session.stream(f"{scheme}{tmp_path}", format="npy") as stream:
            batch = next(iter(stream))
            for array in (batch.tensor, batch.tensors[0]):
                assert array.flags.writeable == writeable
