"""The exceptions of the package, and how they come of what the C++ library says."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Of absl::StatusCode. Values are fixed.
CANCELLED = 1
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15

# A text that names more ranks than this names a mesh.
_RANKS_MAX = 1 << 16


class Error(RuntimeError):
    """What Sluice raises. The text is that of the C++ library, and names tensors and ranks."""

    #: Of absl::StatusCode: 4 is a deadline, 14 a lost peer, and so on.
    code: int = INTERNAL

    def __init__(self, message: str = "", *, code: int | None = None, ranks: Iterable[int] = (),
                 tensor: str | None = None, epoch: int | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        #: Ranks of the session that the text names, ascending.
        self.ranks: tuple[int, ...] = tuple(sorted(set(ranks)))
        #: The first tensor that the text names.
        self.tensor = tensor
        #: The epoch of a world that the text names.
        self.epoch = epoch

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions with keyword arguments do not pickle by themselves, and travel between workers.
        return (_rebuilt, (type(self), str(self), self.code, self.ranks, self.tensor, self.epoch))


def _rebuilt(kind: type[Error], message: str, code: int, ranks: tuple[int, ...],
             tensor: str | None, epoch: int | None) -> Error:
    return kind(message, code=code, ranks=ranks, tensor=tensor, epoch=epoch)


class InvalidSpec(Error, ValueError):
    """What was given makes no sense, or does not fit what others gave.

    Nothing has begun, but where a call says otherwise: `Transfer.start` and `Captured.finish`.
    """

    code = INVALID_ARGUMENT


class Disagreement(Error):
    """Ranks call different things, or call them with different values. Nothing has begun."""

    code = FAILED_PRECONDITION


class Timeout(Error, TimeoutError):
    """Something has not happened in time."""

    code = DEADLINE_EXCEEDED


class PeerLost(Error, ConnectionError):
    """Another process, the store or a server is gone, or cannot be reached."""

    code = UNAVAILABLE


class DataLoss(Error):
    """Bytes are missing, or are not those that were meant."""

    code = DATA_LOSS


class Cancelled(Error):
    """The run was cancelled."""

    code = CANCELLED


class Unsupported(Error, NotImplementedError):
    """It makes sense, and Sluice does not do it."""

    code = UNIMPLEMENTED


_CLASSES: dict[int, type[Error]] = {
    CANCELLED: Cancelled,
    INVALID_ARGUMENT: InvalidSpec,
    DEADLINE_EXCEEDED: Timeout,
    NOT_FOUND: InvalidSpec,
    ALREADY_EXISTS: InvalidSpec,
    OUT_OF_RANGE: InvalidSpec,
    UNIMPLEMENTED: Unsupported,
    UNAVAILABLE: PeerLost,
    DATA_LOSS: DataLoss,
}

# "rank 3", "ranks 0-3, 5", "ranks 0, 1 and 7 more".
_RANKS = re.compile(r"\brank (\d+)|\branks (\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*)")
_EPOCH = re.compile(r"\bepoch (\d+)")
# The library escapes as C does, and shows 60 bytes of a name.
_TENSOR = re.compile(r"\b(?:tensor|source|target|destination)(?: \d+)? (['\"])((?:\\.|(?!\1).)*)\1")
_QUOTED = re.compile(r"(?<![\w'])'((?:\\.|[^'\\])+)' of ranks? ")
# Names and paths, which may read like anything. An apostrophe begins none of them.
_ANY_QUOTED = re.compile(r"(?<!\w)(['\"])(?:\\.|(?!\1)[^\\])*\1(?!\w)")
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}
_OUT_OF_STEP = ("ranks disagree", "ranks make different calls", "different versions of Sluice",
                "another build of Sluice", "all ranks must start the same", "declares the roles")


def from_status(code: int, message: str) -> Error:
    """The exception for a status of the C++ library, with what can be read from its text."""
    kind = _CLASSES.get(code, Error)
    if code == FAILED_PRECONDITION and any(text in message for text in _OUT_OF_STEP):
        kind = Disagreement
    epoch = _EPOCH.search(_unquoted(message))
    return kind(message, code=code, ranks=ranks_in(message), tensor=tensor_in(message),
                epoch=int(epoch.group(1)) if epoch else None)


def ranks_in(message: str) -> tuple[int, ...]:
    """The ranks that a text names, ascending."""
    found: set[int] = set()
    for match in _RANKS.finditer(_unquoted(message)):
        for part in (match[1] or match[2]).split(", "):
            first, _, last = part.partition("-")
            end = int(last or first)
            if end - int(first) >= _RANKS_MAX or len(found) >= _RANKS_MAX:
                continue
            found.update(range(int(first), end + 1))
    return tuple(sorted(found))


def tensor_in(message: str) -> str | None:
    """The first tensor that a text names; of a long name, what the text has of it."""
    found = [(match.start(), match[kind]) for match, kind in
             ((_TENSOR.search(message), 2), (_QUOTED.search(message), 1)) if match]
    if not found:
        return None
    return _ESCAPE.sub(_unescaped, min(found)[1].encode()).decode(errors="replace")


def _unquoted(message: str) -> str:
    return _ANY_QUOTED.sub(" ", message)


def _unescaped(match: re.Match[bytes]) -> bytes:
    text = match.group(1)
    if len(text) == 3:
        return bytes([int(text[1:], 16)])
    return _ESCAPED.get(text, text)
