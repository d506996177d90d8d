"""Data sets of other libraries as sources of streams: WebDataset's tars and MosaicML's MDS.

The package finds where their samples lie, and the stream gets that as the text of an index.json.
"""

from __future__ import annotations

from typing import Any

from . import _mds, _webdataset
from ._batch import Decode
from ._errors import Disagreement, InvalidSpec
from ._group import Group
from ._paths import shown

# Options of a stream that are those of a load, too.
_READ_OPTIONS = ("attempts_max", "backoff", "request_timeout", "connections", "ca_file",
                 "s3_endpoint", "s3_region", "s3_credentials")


def find_index(session: Group, format: str, options: dict[str, Any]) -> Any:
    """What a rank tells the others of its source. Sets `uri` and `index` of `options`.

    Rank 0 looks at the storage; without an exchange each rank does. Waits. Errors are those of
    reads, and InvalidSpec, Unsupported and DataLoss, which name the shard.
    """
    uri = options["uri"]
    answer = {"format": format, "uri": uri}
    if not uri:
        raise InvalidSpec(f'format="{format}" takes a uri')
    for other in ("transform", "index"):
        if options.get(other):
            raise InvalidSpec(f'format="{format}" takes no {other}')
    looks = session.rank == 0 or not options.get("exchange", True)
    read = {name: options[name] for name in _READ_OPTIONS if name in options}
    if format == "mds":
        if looks:
            options["index"], answer["columns"] = _mds.index_of(uri, read, session._native.poll)
        return answer
    options["uri"], names = _webdataset.names_of(uri)
    if looks:
        options["index"] = _webdataset.index_of(options["uri"], names, read, session._native.poll)
    return answer


def decoder_of(rank: int, answers: list[Any]) -> Decode | None:
    """How items are taken apart. `answers`: of `find_index` on each rank, None for other formats.

    Disagreement: ranks open different sources.
    """
    def words(answer: Any) -> str:
        return f"{shown(answer['uri'])} as {answer['format']}" if answer else "another format"

    for other, answer in enumerate(answers):
        if words(answer) != words(answers[0]):
            raise Disagreement(f"rank 0 opens a stream of {words(answers[0])}, and rank {other} of "
                               f"{words(answer)}", ranks=(0, other))
    if answers[0] is None:
        return None
    if answers[0]["format"] == "webdataset":
        return _webdataset.decode
    columns = answers[rank].get("columns") or answers[0]["columns"]
    return _mds.decoder(columns)
