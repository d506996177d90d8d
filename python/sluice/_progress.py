"""Progress of long work in the terminal: a bar of tqdm, a line every few seconds, or nothing."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

_LINE_SECONDS = 5.0  # between lines, and before the first
_TICK_SECONDS = 0.5  # of work that says nothing while it goes on


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

    `total`: bytes. Without `show`, a thread of its own shows how long the work takes already
    (`ticking`), so that it may block.
    """

    def __init__(self, title: str, total: int, *, enabled: bool = True,
                 ticking: bool = False) -> None:
        self._title = title
        self._total = total
        self._enabled = enabled and sys.stderr is not None and sys.stderr.isatty()
        self._ticking = ticking
        self._bar: Any = None
        self._begin = self._last = time.monotonic()
        self._stop = threading.Event()
        self._ticker: threading.Thread | None = None

    def __enter__(self) -> Display:
        if not self._enabled:
            return self
        tqdm = _tqdm()
        if tqdm is not None and self._ticking:
            self._bar = tqdm(desc=f"{self._title}, {human_bytes(self._total)}", leave=False,
                             bar_format="{desc}: {elapsed}", file=sys.stderr)
        elif tqdm is not None:
            self._bar = tqdm(desc=self._title, total=self._total, unit="B", unit_scale=True,
                             leave=False, file=sys.stderr)
        if self._ticking:
            self._ticker = threading.Thread(target=self._tick, name="sluice-progress", daemon=True)
            self._ticker.start()
        return self

    def show(self, done: int) -> None:
        """`done`: bytes so far."""
        if not self._enabled:
            return
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
        elif self._is_due():
            self._print(f"{human_bytes(done)} of {human_bytes(self._total)}")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._stop.set()
        if self._ticker is not None:
            self._ticker.join()
        if self._bar is not None:
            self._bar.close()

    def _tick(self) -> None:
        while not self._stop.wait(_TICK_SECONDS):
            if self._bar is not None:
                self._bar.refresh()
            elif self._is_due():
                self._print(human_bytes(self._total))

    def _is_due(self) -> bool:
        now = time.monotonic()
        if now - self._last < _LINE_SECONDS:
            return False
        self._last = now
        return True

    def _print(self, text: str) -> None:
        seconds = time.monotonic() - self._begin
        print(f"{self._title}: {text}, {seconds:.0f} s", file=sys.stderr, flush=True)
