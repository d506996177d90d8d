"""What adapters say of the host that they find."""

from __future__ import annotations

from contextlib import suppress

from .._log import warn

_warned: set[str] = set()


def warn_of_version(host: str, tried: str, *distributions: str) -> None:
    """One line, once a process, where the host's installed version is not the one tried.

    `distributions`: what the host's package may be called.
    """
    from importlib.metadata import PackageNotFoundError, version

    found = "of an unknown version"
    for distribution in distributions:
        with suppress(PackageNotFoundError):
            found = version(distribution).partition("+")[0]
    if found != tried:
        warn_once(f"{host} {found} was not tried with this Sluice, which was with {tried}")


def warn_once(text: str) -> None:
    """A line that this process has not written yet."""
    if text not in _warned:
        _warned.add(text)
        warn(text)
