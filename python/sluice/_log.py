"""Lines for whoever runs the job, by the logger "sluice"."""

from __future__ import annotations

from ._words import in_python

# logging is imported with the first line: its import takes long.


def warn(text: str) -> None:
    """On stderr, where nobody has configured logging."""
    import logging
    logging.getLogger("sluice").warning("sluice: %s", text)


def say(text: str) -> None:
    """A line of the C++ library, in the package's words."""
    warn(in_python(text))


def inform(text: str) -> None:
    """To those who ask for it."""
    import logging
    logging.getLogger("sluice").info("sluice: %s", text)
