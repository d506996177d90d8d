"""The exceptions of the package, and how they come of what the C++ library says."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from ._words import in_python


class Code(IntEnum):
    """What kind of error it is; the numbers are those of absl::StatusCode."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16

    def __str__(self) -> str:
        return self.name


class Error(RuntimeError):
    """What Sluice raises. The text is that of the C++ library, for people."""

    __module__ = "sluice"  # as users write it, and tracebacks show it

    #: Equal to its number, too: a lost peer has Code.UNAVAILABLE, 14.
    code: Code = Code.INTERNAL

    def __init__(self, message: str = "", *, code: int | None = None, ranks: Iterable[int] = (),
                 tensor: str | None = None, epoch: int | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = Code(code)
        #: Ranks of the session that it is about, ascending.
        self.ranks: tuple[int, ...] = tuple(sorted(set(ranks)))
        #: The first tensor that it names.
        self.tensor = tensor
        #: The epoch of a world that could not begin.
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

    __module__ = "sluice"
    code = Code.INVALID_ARGUMENT


class Disagreement(Error):
    """Ranks call different things, or call them with different values. Nothing has begun."""

    __module__ = "sluice"
    code = Code.FAILED_PRECONDITION


class Timeout(Error, TimeoutError):
    """Something has not happened in time."""

    __module__ = "sluice"
    code = Code.DEADLINE_EXCEEDED


class PeerLost(Error, ConnectionError):
    """Another process, the store or a server is gone, or cannot be reached."""

    __module__ = "sluice"
    code = Code.UNAVAILABLE


class DataLoss(Error):
    """Bytes are missing, or are not those that were meant."""

    __module__ = "sluice"
    code = Code.DATA_LOSS


class Cancelled(Error):
    """The run was cancelled."""

    __module__ = "sluice"
    code = Code.CANCELLED


class Unsupported(Error, NotImplementedError):
    """It makes sense, and Sluice does not do it."""

    __module__ = "sluice"
    code = Code.UNIMPLEMENTED


_CLASSES: dict[int, type[Error]] = {
    Code.CANCELLED: Cancelled,
    Code.INVALID_ARGUMENT: InvalidSpec,
    Code.DEADLINE_EXCEEDED: Timeout,
    Code.NOT_FOUND: InvalidSpec,
    Code.ALREADY_EXISTS: InvalidSpec,
    Code.OUT_OF_RANGE: InvalidSpec,
    Code.UNIMPLEMENTED: Unsupported,
    Code.UNAVAILABLE: PeerLost,
    Code.DATA_LOSS: DataLoss,
}

def from_status(code: int, message: str, ranks: Iterable[int] = (), tensor: str | None = None,
                epoch: int | None = None, is_disagreement: bool = False) -> Error:
    """The exception for a status of the C++ library, and for the fields that it has."""
    ranks = list(ranks)
    kind = Disagreement if is_disagreement else _CLASSES.get(code, Error)
    return kind(in_python(message, ranks), code=code, ranks=ranks, tensor=tensor, epoch=epoch)
