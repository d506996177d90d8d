"""Lines for whoever runs the job, by the logger "sluice"."""

from __future__ import annotations

# logging is imported with the first line: its import takes long.


def warn(text: str) -> None:
    """In the package's words; on stderr, where nobody has configured logging."""
    import logging
    from ._words import in_python
    logging.getLogger("sluice").warning("sluice: %s", in_python(text))


def inform(text: str) -> None:
    """To those who ask for it."""
    import logging
    logging.getLogger("sluice").info("sluice: %s", text)
