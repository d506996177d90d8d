"""What long work shows in a terminal, and elsewhere."""

from __future__ import annotations

import io
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sluice
from sluice import _progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def take_terminal(monkeypatch: pytest.MonkeyPatch, tqdm: bool = False) -> Terminal:
    """In place of stderr; lines come at once. In the test itself, as pytest sets stderr before."""
    made = Terminal()
    if not tqdm:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setattr(_progress, "_LINE_SECONDS", 0.0)
    monkeypatch.setattr(_progress, "_TICK_SECONDS", 0.01)
    return made


def test_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = take_terminal(monkeypatch)
    with _progress.Display("work", 4_000_000) as display:
        display.show(1_500_000)
    assert re.fullmatch(r"work: 1\.5 MB of 4\.0 MB, \d+ s\n", terminal.getvalue())


def test_work_that_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = take_terminal(monkeypatch)
    with _progress.Display("load", 0, look=lambda: (500_000_000, 2_000_000_000)):
        end = time.monotonic() + 240
        while not terminal.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    assert re.match(r"load: 500\.0 MB of 2\.0 GB, \d+ s\n", terminal.getvalue())


def test_a_checkpoint(session: sluice.Session, monkeypatch: pytest.MonkeyPatch,
                      tmp_path: Path) -> None:
    take_terminal(monkeypatch)
    shown: list[tuple[int, int]] = []

    class Recording(_progress.Display):
        def __exit__(self, *how: object) -> None:
            assert self._look is not None
            shown.append(self._look())
            super().__exit__(*how)

    monkeypatch.setattr("sluice._checkpoint.Display", Recording)
    session.save(str(tmp_path), {"w": np.ones((100, 7), np.float32)}, dtype="bf16")
    target = {"w": np.zeros((100, 7), np.float64)}
    session.load(str(tmp_path), target)
    assert target["w"].all()
    assert shown == [(1400, 1400)] * 2  # as they lie in the file


def test_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = take_terminal(monkeypatch, tqdm=True)
    pytest.importorskip("tqdm")
    with _progress.Display("work", 4_000_000) as display:
        display.show(4_000_000)
    # It does not draw every step.
    assert "work:" in terminal.getvalue() and "4.00M" in terminal.getvalue()


@pytest.mark.parametrize("how", [{"enabled": False}, {"enabled": False, "look": tuple}])
def test_nothing_if_not_wanted(monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]) -> None:
    terminal = take_terminal(monkeypatch)
    with _progress.Display("work", 4_000_000, **how) as display:
        display.show(1)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("blocks", [False, True])
def test_without_a_terminal(monkeypatch: pytest.MonkeyPatch, blocks: bool) -> None:
    """Lines of work that blocks, such as a checkpoint's, and nothing of other work."""
    plain = io.StringIO()
    monkeypatch.setattr(sys, "stderr", plain)
    monkeypatch.setattr(_progress, "_LINE_SECONDS", 0.0)
    look = (lambda: (1_500_000, 4_000_000)) if blocks else None
    with _progress.Display("work", 4_000_000, look=look) as display:
        display.show(1_500_000)
    line = r"(work: 1\.5 MB of 4\.0 MB, \d+ s\n)+"
    assert re.fullmatch(line, plain.getvalue()) if blocks else plain.getvalue() == ""


def test_a_run(session: sluice.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = take_terminal(monkeypatch)
    source, target = {"w": np.ones(1000, np.float32)}, {"w": np.zeros(1000, np.float32)}
    sluice.sync(source, target, session=session)
    assert target["w"].all()
    assert "sluice: run" in terminal.getvalue()
    before = terminal.getvalue()
    sluice.sync(source, target, session=session)
    assert terminal.getvalue() == before, "only a first call shows its progress"


@pytest.mark.parametrize("count,text", [(999, "999 B"), (12_345, "12.3 KB"), (5e13, "50.0 TB")])
def test_human_bytes(count: float, text: str) -> None:
    assert _progress.human_bytes(count) == text
