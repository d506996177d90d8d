"""Where checkpoints and data are, as users write it: one rule for `load`, `save` and `stream`."""

from __future__ import annotations

import os
from typing import Any

from ._errors import InvalidSpec
from ._texts import check_text

_LOCAL = ("file", "buffered", "mmap")
_HTTP = ("http", "https")


def place_of(what: str, given: Any) -> str:
    """The place as the C++ library takes it: "file:/data", or another URI as it was given.

    A str without a scheme and an os.PathLike are paths; `~` is the home directory. InvalidSpec:
    `given` is neither, or is empty.
    """
    scheme, rest = _split(what, given)
    if scheme in _LOCAL:
        return f"{scheme}:{_absolute(what, rest)}"
    return rest


def checkpoint_of(what: str, given: Any) -> tuple[str, bool]:
    """The place of a checkpoint, and whether it is one of PyTorch's DCP: "dcp:", then a place."""
    is_dcp = isinstance(given, str) and given.startswith("dcp:")
    return place_of(what, given[len("dcp:"):] if is_dcp else given), is_dcp


def directory_of(what: str, given: Any) -> str:
    """The path of a directory to write: a path, or "file:". InvalidSpec, as of `place_of`."""
    scheme, rest = _split(what, given)
    if isinstance(given, str) and given.startswith("dcp:"):
        raise InvalidSpec(f"{what} is '{shown(given)}'; checkpoints of PyTorch's DCP are read, and not "
                          "written. DCP reads a save by HuggingFaceStorageReader")
    if scheme != "file":
        raise InvalidSpec(f"{what} is '{shown(given)}'; it has to be a path or \"file:PATH\", as files "
                          "are written there")
    return _absolute(what, rest)


def shown(place: Any) -> str:
    """The place for messages: without a user, a password, or what may be a signature."""
    text = str(place)
    scheme, mark, rest = text.partition("://")
    if not mark:
        return text
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}".partition("?")[0].partition("#")[0]


def _split(what: str, given: Any) -> tuple[str, str]:
    """The scheme, and the path; of other schemes than those of files, all of it."""
    if not isinstance(given, (str, os.PathLike)) or not os.fspath(given):
        raise InvalidSpec(f"{what} is {given!r}; it has to be a str or a path, and not empty")
    text = check_text(what, os.fspath(given))
    scheme, colon, rest = text.partition(":")
    if isinstance(given, os.PathLike) or not colon:
        return "file", text
    if scheme in _LOCAL:
        # "file:///data" and "file://localhost/data" are the same as "file:/data".
        if rest.startswith("//"):
            host, slash, path = rest[2:].partition("/")
            if host not in ("", "localhost"):
                raise InvalidSpec(f"{what} is {given!r}; the path of this host is written as "
                                  f"\"{scheme}:/{rest.lstrip('/')}\"")
            rest = slash + path
        if not rest:
            raise InvalidSpec(f"{what} is {given!r}, which has no path")
        return scheme, rest
    if scheme in _HTTP or rest.startswith("//"):
        return scheme, text  # the C++ library says which ones there are
    return "file", text


def _absolute(what: str, path: str) -> str:
    # "..", links and a slash at the end mean what they mean to the system.
    path = os.path.expanduser(path)
    return check_text(what, path if os.path.isabs(path) else os.path.join(os.getcwd(), path))
