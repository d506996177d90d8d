"""Samples of other libraries' data sets as tensors of PyTorch."""

from __future__ import annotations

import io
import json
import struct
import tarfile
from pathlib import Path

import pytest
import sluice
import torch


def test_files_of_tars(session: sluice.Session, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name, data in (("0.bin", bytes(range(200))), ("0.cls", b"7"), ("0.none", b"")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    with session.stream(tmp_path, format="webdataset") as stream:
        batch = next(stream)
        sample = batch.samples[0]
        assert sample["bin"].dtype == torch.uint8 and sample["bin"].tolist() == list(range(200))
        assert sample["cls"].tolist() == [55] and sample["none"].shape == (0,)
        begin = batch.tensors[0].data_ptr()
        assert sample["bin"].data_ptr() == begin + 512
        with pytest.warns(UserWarning, match="still referred to"):
            batch.release()


def test_arrays_that_lie_at_odd_places_are_copied(session: sluice.Session, tmp_path: Path) -> None:
    columns = {"a": "ndarray:int16:2,2", "b": "ndarray:float32:2", "c": "ndarray:uint8:1",
               "d": "ndarray:float64:1", "e": "ndarray:uint16:1"}
    parts = [struct.pack("<4h", 1, -2, 3, -4), struct.pack("<2f", 0.5, 2), b"\7",
             struct.pack("<d", 0.25), struct.pack("<H", 60000)]
    sample = b"".join(parts)
    data = struct.pack("<3I", 1, 12, 12 + len(sample)) + sample
    (tmp_path / "s.mds").write_bytes(data)
    (tmp_path / "index.json").write_text(json.dumps({"version": 2, "shards": [{
        "format": "mds", "samples": 1, "raw_data": {"basename": "s.mds", "bytes": len(data)},
        "column_names": list(columns), "column_encodings": list(columns.values()),
        "column_sizes": [len(part) for part in parts]}]}))
    with session.stream(tmp_path, format="mds") as stream:
        batch = next(stream)
        begin = batch.tensors[0].data_ptr()
        found = batch.samples[0]
        assert found["a"].tolist() == [[1, -2], [3, -4]] and found["a"].dtype == torch.int16
        assert found["b"].tolist() == [0.5, 2] and found["c"].tolist() == [7]
        assert found["d"].tolist() == [0.25] and found["e"].tolist() == [60000]
        assert [found[name].data_ptr() - begin for name in "abc"] == [0, 8, 16]
        assert not begin <= found["d"].data_ptr() < begin + len(sample)
