"""Options of sessions, checkpoints and streams: as types, and as the C++ library knows them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sluice
from ranks import LIMIT_SECONDS
from sluice import _sluice

_KINDS = {"session": sluice.SessionOptions, "checkpoint": sluice.CheckpointOptions,
          "stream": sluice.StreamOptions}


@pytest.mark.parametrize("kind", _KINDS)
def test_types_are_those_of_the_library(kind: str) -> None:
    annotations = {name: getattr(given, "__forward_arg__", given)
                   for name, given in _KINDS[kind].__annotations__.items()}
    assert annotations == getattr(_sluice, f"{kind}_option_types")()


@pytest.mark.parametrize("kind", _KINDS)
def test_docstrings_name_each_option(kind: str) -> None:
    text = _KINDS[kind].__doc__ or ""
    assert [name for name in _KINDS[kind].__annotations__ if f"`{name}`" not in text] == []


def test_metrics_are_typed(session: sluice.Session) -> None:
    assert session.metrics().keys() == sluice.Metrics.__annotations__.keys()


@pytest.mark.parametrize("kind, wrong, meant", [
    ("session", "budget_bukets", "budget_buckets"), ("stream", "shufle", "shuffle"),
    ("stream", "batch_size", "batch_items"), ("checkpoint", "time_out", "timeout")])
def test_a_typo_is_told(kind: str, wrong: str, meant: str) -> None:
    with pytest.raises(sluice.InvalidSpec) as error:
        getattr(_sluice, f"check_{kind}_options")({wrong: 1})
    assert f"there is no option '{wrong}'; did you mean '{meant}'? there are" in str(error.value)


_WRONG = """
import sluice

with sluice.Session.from_env(budget_bukets=8) as session:
    session.stream("file:/data", shufle=True)
    session.stream("file:/data", batch_size=4)
with sluice.Session.from_env(budget_buckets=8, timeout=60) as session:
    session.stream("file:/data", shuffle=True, batch_items=4, format="raw", item_bytes=12)
    session.load("/ckpt", {}, budget_bytes=1 << 20)
    runs: int = session.metrics()["runs"]
"""


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_mypy_finds_wrong_options(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(_WRONG)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--cache-dir", os.devnull,
         "wrong.py"], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_SECONDS,
        env={**os.environ, "MYPYPATH": ""})
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 3 and all(line.startswith("wrong.py:") for line in errors), done
    for wrong, line in zip(("budget_bukets", "shufle", "batch_size"), errors):
        assert wrong in line
