"""Lines for whoever runs the job, by the logger "sluice"."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from ._words import in_python

# logging is imported with the first line: its import takes long.


def warn(text: str) -> None:
    """On stderr, where nobody has configured logging."""
    import logging
    logging.getLogger("sluice").warning("sluice: %s", text)


def say(text: str) -> None:
    """A line of the C++ library, in the package's words."""
    warn(in_python(text))


def caution(text: str) -> None:
    """A warning at the line of the user's that has called the package.

    Calls of the package are made in several depths, as of `sync` in `World.versions`.
    """
    level = 2
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] == "sluice":
        frame = frame.f_back
        level += 1
    warnings.warn(text, stacklevel=level)


def inform(text: str) -> None:
    """To those who ask for it."""
    import logging
    logging.getLogger("sluice").info("sluice: %s", text)
