"""Progress of long work in the terminal: a bar of tqdm, a line every few seconds, or nothing."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

_LINE_SECONDS = 5.0  # between lines, and before the first
_TICK_SECONDS = 0.5  # between looks at work that blocks


def human_bytes(count: float) -> str:
    """12.3 GB"""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def _tqdm() -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm


class Display:
    """Shows how far a piece of work is, where stderr is a terminal.

    `total`: bytes. Whoever works calls `show`. Or `look` gives the bytes so far and all of them: a
    thread of its own then shows these, so that the work may block. Such work is shown by lines
    where stderr is something else, too, such as the file of a job's output.
    """

    def __init__(self, title: str, total: int, *, enabled: bool = True,
                 look: Callable[[], tuple[int, int]] | None = None) -> None:
        self._title = title
        self._total = total
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._enabled = (enabled and sys.stderr is not None
                         and (self._is_terminal or look is not None))
        self._look = look
        self._bar: Any = None
        self._begin = self._last = time.monotonic()
        self._stop = threading.Event()
        self._ticker: threading.Thread | None = None

    def __enter__(self) -> Display:
        if not self._enabled:
            return self
        tqdm = _tqdm() if self._is_terminal else None
        if tqdm is not None:
            self._bar = tqdm(desc=self._title, total=self._total, unit="B", unit_scale=True,
                             leave=False, file=sys.stderr)
        if self._look is not None:
            self._ticker = threading.Thread(target=self._tick, args=(self._look,),
                                            name="sluice-progress", daemon=True)
            self._ticker.start()
        return self

    def show(self, done: int) -> None:
        """`done`: bytes so far."""
        if not self._enabled:
            return
        if self._bar is not None:
            self._bar.total = self._total
            self._bar.update(done - self._bar.n)
        elif self._is_due():
            self._print(f"{human_bytes(done)} of {human_bytes(self._total)}")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._stop.set()
        if self._ticker is not None:
            self._ticker.join()
        if self._bar is not None:
            self._bar.close()

    def _tick(self, look: Callable[[], tuple[int, int]]) -> None:
        while not self._stop.wait(_TICK_SECONDS):
            done, self._total = look()
            self.show(done)
            if self._bar is not None:
                self._bar.refresh()  # the time goes on where nothing else does

    def _is_due(self) -> bool:
        now = time.monotonic()
        if now - self._last < _LINE_SECONDS:
            return False
        self._last = now
        return True

    def _print(self, text: str) -> None:
        seconds = time.monotonic() - self._begin
        print(f"{self._title}: {text}, {seconds:.0f} s", file=sys.stderr, flush=True)
