"""Loads by a catalog: arrays of a format that Sluice does not know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sluice
from ranks import error_of, run_ranks

Entry = sluice.CheckpointEntry
SHAPE = (6, 4)


def whole() -> Any:
    return np.arange(24, dtype=np.float32).reshape(SHAPE)


def written(folder: Path) -> list[Entry]:
    """The first two rows by columns, then the others by rows, behind five bytes; and a scalar."""
    upper, lower = np.ascontiguousarray(whole()[:2].T), whole()[2:]
    (folder / "a.bin").write_bytes(b"12345" + upper.tobytes())
    (folder / "b.bin").write_bytes(lower.tobytes() + np.float64(2.5).tobytes())
    return [Entry("w", "a.bin", 5, np.float32, (2, 4), strides=(1, 2)),
            Entry("w", "b.bin", 0, "f32", (4, 4), offset=(2, 0)),
            Entry("s", "b.bin", 64, "F64", ())]


def rank_loads(session: sluice.Session, folder: str, catalog: list[dict[str, Any]]) -> Any:
    entries = [Entry(**fields) for fields in catalog]
    columns = sluice.Layout([0, 1], [sluice.Shard(1)])
    part = np.zeros((6, 2), np.float64)
    scalar = np.zeros((), np.float32)
    state = [sluice.Tensor("w", SHAPE, "f64", columns, part), sluice.Tensor("s", (), "f32", None,
                                                                           scalar)]
    stats = session.load(folder, state, catalog=entries, strict=True)
    right = part.tolist() == whole()[:, 2 * session.rank:][:, :2].tolist() and scalar == 2.5
    differing = entries[:2] if session.rank == 0 else entries[1::-1]
    error = error_of(session.load, folder, state[:1], catalog=differing)
    return [bool(right), stats["file_bytes"], stats["missing"], error["text"]]


def test_ranks_load_arrays(tmp_path: Path) -> None:
    catalog = [{"tensor": entry.tensor, "file": entry.file, "begin": entry.begin,
                "dtype": "f64" if entry.tensor == "s" else "f32", "shape": entry.shape,
                "offset": entry.offset, "strides": entry.strides} for entry in written(tmp_path)]
    answers = run_ranks(2, rank_loads, str(tmp_path), catalog)
    assert [right for right, *_ in answers] == [True, True]
    assert sum(count for _, count, *_ in answers) == 24 * 4 + 8
    assert all(missing == [] and "or catalog" in text for *_, missing, text in answers)


def test_one_process_loads_arrays(tmp_path: Path) -> None:
    state = {"w": np.zeros(SHAPE, np.float32)}
    stats = sluice.load(tmp_path, state, catalog=written(tmp_path), strict=False)
    assert state["w"].tolist() == whole().tolist()
    assert stats["unexpected"] == ["s"]


@pytest.mark.parametrize("catalog, text", [
    ([], "has no entry"),
    ("a.bin", "list of CheckpointEntry"),
    ([("w", "a.bin")], "has to be a CheckpointEntry"),
    ([Entry("w", "a.bin", 5, "f33", (2, 4))], "f33"),
    ([Entry("w", "a.bin", -5, "f32", (2, 4))], "begin"),
    ([Entry("w", "a.bin", 5, "f32", (2.5, 4))], "whole numbers"),
    ([Entry("w", "a.bin", 5, "f32", 8)], "whole numbers"),
    ([Entry("w", Path("a.bin"), 5, "f32", (2, 4))], "both have to be texts"),  # type: ignore
    ([Entry("w", "a.bin", 5, "f32", (1 << 40, 1 << 40))], "more bytes than"),
    ([Entry("w", "a.bin", 5, "f32", (6, 4))], "up to byte 101"),
    ([Entry("w", "../a.bin", 5, "f32", (6, 4))], "../a.bin"),
    ([Entry("w", "a.bin", 5, "f32", (2, 4))], r"has shape \[2,4\] in the checkpoint, not \[6,4\]"),
])
def test_bad_catalogs(tmp_path: Path, catalog: Any, text: str) -> None:
    written(tmp_path)
    state = {"w": np.full(SHAPE, -1, np.float32)}
    with pytest.raises(sluice.Error, match=text):
        sluice.load(tmp_path, state, catalog=catalog)
    assert (state["w"] == -1).all()
