"""What the C++ library says of an error, in the words of the package.

The texts name options and calls as C++ has them, and begin with the bucket that has failed.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable

_NAMES = {
    "ignore_unused_sources would allow it": "ignore_unused=True would allow it",
    "or kNoLimit": "or None for no limit",
    "(-1: no limit) in": "(-1: None) in",
    "Connect": "transfer", "Start": "start", "Create": "the making of the session",
    "LoadCheckpoint": "load",
    "SaveCheckpoint": "save", "ReadCheckpointInfo": "load", "OpenStream": "stream",
    "AllocateShared": "allocate", "late_targets": "late=True",
    "`sluice-bench shards` writes one, or say what format the files of the directory have":
        'say what the files are by format="raw", "npy" or "safetensors", or write one as '
        "docs/streaming.md says",
}
_NAME = re.compile(r"(?<!['\w])(" + "|".join(map(re.escape, _NAMES)) + r")(?!['\w])")
_BUCKET = re.compile(r"((?:[^\n]*?: )?)bucket (run \d+ window \d+ round \d+ phase \d+, "
                     r"rank \d+ -> \d+, n \d+): (.*)", re.S)
_MESSAGE = re.compile(r"((?:send|receive|read|write) of \d+ bytes[^:]*): (rank \d+.*)", re.S)
_LEASED = re.compile(r"Next while all (\d+) device buffers are leased")
_NO_SOURCE = re.compile(r"no rank has a source for target '([^']+)'.*"
                        r"no target asks for source '([^']+)'", re.S)
_RANK = re.compile(r"\brank (\d+)(?=,| |:|$)")

# Sessions that are open: errors of C++ have ranks, and a session knows which members these are.
TYPE_CHECKING = False  # as in typing, whose import takes long
if TYPE_CHECKING:
    from ._session import Session
_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def note(session: Session) -> None:
    """A session has begun."""
    _sessions.add(session)


def open_sessions() -> list[Session]:
    """Sessions of this process that have not been closed."""
    return [session for session in _sessions if not session.closed]


def in_python(text: str, ranks: Iterable[int] | None = None) -> str:
    """The text in the package's words: members and tensors first, the bucket last.

    Of the ranks, None for all that the text names, it says which members they are.
    """
    if ranks is None:
        ranks = map(int, _RANK.findall(text))
    if (bucket := _BUCKET.fullmatch(text)) is not None:
        lead, place, text = bucket.groups()
        if (message := _MESSAGE.fullmatch(text)) is not None:
            text = f"{message[2]} ({message[1]})"
        text = f"{lead}{text} (bucket {place})"
    if (leased := _LEASED.search(text)) is not None:
        count = int(leased[1])
        return (f"all {count} buffers of the stream are held by batches or their tensors: release "
                "a batch, keep a copy (batch.tensor.clone()), or open the stream with "
                f"buffers={count + 1}")
    text = _NAME.sub(lambda name: _NAMES[name[1]], text)
    return _with_members(text + _rename_hint(text), set(ranks))


def _rename_hint(text: str) -> str:
    names = _NO_SOURCE.search(text)
    if names is None:
        return ""
    target, source = names.groups()
    if source.endswith(f".{target}"):
        return f"; did you mean rename=lambda name: '{source[:-len(target)]}' + name?"
    if target.endswith(f".{source}"):
        return f"; did you mean rename=lambda name: name.removeprefix('{target[:-len(source)]}')?"
    return ""


def _with_members(text: str, ranks: set[int]) -> str:
    """Says once of each of the ranks which member it is, where one session of roles is open."""
    open_ones = open_sessions()
    if not ranks or len(open_ones) != 1:
        return text
    members = open_ones[0].members
    told: set[int] = set()

    def named(match: re.Match[str]) -> str:
        rank = int(match[1])
        if rank not in ranks or rank in told or rank >= len(members):
            return match[0]
        told.add(rank)
        member = members[rank]
        return match[0] if member.role == "member" else f"{member.name} ({match[0]})"

    return _RANK.sub(named, text)
