"""Places of checkpoints and data, in all the forms that users write them in."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sluice
from sluice._paths import directory_of, place_of

FORMS: dict[str, Callable[[Path], Any]] = {
    "path": lambda path: path,
    "str": str,
    "relative": lambda path: os.path.relpath(path),
    "home": lambda path: f"~/{path.name}",
    "home of a Path": lambda path: Path("~") / path.name,
    "file": lambda path: f"file:{path}",
    "file, relative": lambda path: f"file:{os.path.relpath(path)}",
    "file of home": lambda path: f"file:~/{path.name}",
    "file URI": lambda path: path.as_uri(),
    "file URI with a host": lambda path: f"file://localhost{path}",
}


def values() -> Any:
    return np.arange(6, dtype=np.float32)


@pytest.mark.parametrize("form", FORMS)
def test_load_save_and_stream_take(form: str, session: sluice.Session, tmp_path: Path,
                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    given = FORMS[form]
    session.save(given(tmp_path / "ckpt"), {"w": values()}, progress=False)
    assert (tmp_path / "ckpt" / "model.safetensors").is_file()
    found = np.zeros_like(values())
    session.load(given(tmp_path / "ckpt"), {"w": found}, progress=False)
    assert found.tolist() == values().tolist()
    with session.stream(given(tmp_path / "ckpt"), format="safetensors") as stream:
        assert [batch.tensor.tolist() for batch in stream] == [[values().tolist()]]


@pytest.mark.parametrize("scheme", ["buffered", "mmap"])
def test_other_schemes_of_files(scheme: str, session: sluice.Session, tmp_path: Path) -> None:
    session.save(tmp_path, {"w": values()}, progress=False)
    found = np.zeros_like(values())
    session.load(f"{scheme}:{tmp_path}", {"w": found}, progress=False)
    assert found.tolist() == values().tolist()


@pytest.mark.parametrize("form", [*FORMS, "buffered", "mmap"])
def test_one_file(form: str, session: sluice.Session, tmp_path: Path,
                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    session.save(tmp_path, {"a": values(), "b": values() + 1}, shard_bytes_max=24, progress=False)
    second = tmp_path / "model-00002-of-00002.safetensors"
    found = np.zeros_like(values())
    given = FORMS.get(form, lambda path: f"{form}:{path}")
    session.load(given(second), {"b": found}, progress=False)
    assert found.tolist() == (values() + 1).tolist()
    with pytest.raises(sluice.InvalidSpec, match="lacks 1 tensor: 'a'"):
        session.load(given(second), {"a": found}, progress=False)
    with pytest.raises(sluice.InvalidSpec, match="there is no .*none.safetensors"):
        session.load(given(tmp_path / "none.safetensors"), {"a": found}, progress=False)


def test_a_directory_with_the_name_of_a_file(session: sluice.Session, tmp_path: Path) -> None:
    with pytest.raises(sluice.InvalidSpec, match="the name of a file, and a save makes a directory"):
        session.save(tmp_path / "odd.safetensors", {"w": values()}, progress=False)
    assert not (tmp_path / "odd.safetensors").exists()
    session.save(f"{tmp_path}/odd.safetensors/", {"w": values()}, progress=False)
    found = np.zeros_like(values())
    session.load(f"{tmp_path}/odd.safetensors/", {"w": found}, progress=False)
    assert found.tolist() == values().tolist()


@pytest.mark.parametrize("place, wanted", [
    ("http://host/base", "http://host/base"), ("s3://bucket/x", "s3://bucket/x"),
    ("/a:b", "file:/a:b"), ("mmap:///data", "mmap:/data"), (Path("/data"), "file:/data")])
def test_places(place: Any, wanted: str) -> None:
    assert place_of("uri", place) == wanted


@pytest.mark.parametrize("place, words", [
    (None, "it has to be a str or a path"), (b"/x", "it has to be a str or a path"),
    ("", "not empty"), ("file:", "has no path"), ("file://server/x", '"file:/server/x"')])
def test_no_places(place: Any, words: str) -> None:
    for look in place_of, directory_of:
        with pytest.raises(sluice.InvalidSpec) as error:
            look("uri", place)
        assert words in str(error.value)


@pytest.mark.parametrize("place", ["mmap:/x", "buffered:/x", "http://host/x", "s3://x/y"])
def test_save_writes_files(place: str) -> None:
    with pytest.raises(sluice.InvalidSpec, match="as files are written there"):
        directory_of("directory", place)
