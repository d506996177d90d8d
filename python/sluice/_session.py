"""Sessions: a fixed group of ranks that move tensors between them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _bootstrap, _sluice, _words
from ._errors import Code, Error, InvalidSpec, Unsupported
from ._group import Group
from ._streams import Stream as StreamLike
from ._tables import Report
from ._texts import check_made
from ._transfer import Renames, Transfer, Windows, connect

if TYPE_CHECKING:
    from ._catalog import CheckpointEntry
    from typing_extensions import Unpack

    from ._options import CheckpointOptions, SessionOptions, StreamOptions
    from ._stream import Stream, Transform


@dataclass(frozen=True)
class Member:
    """A process that takes part."""

    role: str
    rank: int  # in its role
    host: str
    pid: int
    alive: bool = True

    @property
    def name(self) -> str:
        """Such as "trainer 0"."""
        return f"{self.role} {self.rank}"

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid} on {self.host})"


_END_OF_TRACE = "the end of trace"

_coming: set[tuple[str | None, ...]] = set()  # places of sessions that from_env makes now


class Session(Group):
    """One rank's end of a group of ranks. Made by `from_env`, other functions, or by a World.

    Calls marked collective are made by all ranks in the same order. A rank that differs, or that
    ends, is named in an error on the others. The first error of a run ends the session: from then
    on every call raises it, and `close` is what is left to do.

    Thread: the one that made it. After os.fork() every call raises in the child.

    The functions that make sessions take the options of `SessionOptions` as keywords.
    """

    def __init__(self, native: Any = None, *, members: Sequence[Member] = (), epoch: int = 0,
                 rank_of: Callable[[int], int] | None = None, owned: Any = None) -> None:
        check_made(native, _sluice.Session, "a Session",
                   "Session.from_env(), Session.local() or World.session()")
        super().__init__(native, epoch=epoch, rank_of=rank_of)
        self._members = list(members)
        self._owned = owned
        self._closed = False
        self._place: tuple[str | None, ...] | None = None  # where from_env made it
        _words.note(self)

    # Who takes part.

    @classmethod
    def from_env(cls, *, token: _bootstrap.Token = None, wires: str | None = None,
                 bind: str | None = None, join_timeout: float | None = None,
                 **options: Unpack[SessionOptions]) -> Session:
        """Collective; blocks. A session of all processes that one launcher has started.

        RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say who meets where (torchrun, Slurm); so do
        the variables of Open MPI, MPICH and Slurm, and SLUICE_RANK, SLUICE_SIZE, SLUICE_WORLD.
        docs/joining.md has all of them. Needs no PyTorch. `token`: a secret that all ranks know, or
        a function that returns it; None: SLUICE_TOKEN. It is needed unless they meet on the
        loopback interface. `join_timeout`: seconds to wait for the store, at most 5 minutes, and
        for the others. None: SLUICE_WORLD_TIMEOUT, or no limit for the others.
        """
        overrides: dict[str, Any] = {}
        for name, value in (("token", _bootstrap.text_of(token)), ("wires", wires), ("bind", bind),
                            ("timeout", join_timeout)):
            if value is not None:
                overrides[name] = value
        place = _bootstrap.place_in_environment()
        if place in _coming or any(session._place == place for session in _words.open_sessions()):
            raise InvalidSpec("this process has a session of its environment already: close that "
                              "one first")
        _coming.add(place)
        try:
            world, native, failure = _bootstrap.by_environment(options, overrides, join_timeout)
            members = [Member(**member) for member in world.members()]
            session = cls(native, members=members, owned=world)
            session._place = place
        finally:
            _coming.discard(place)

        def check() -> None:
            if isinstance(failure, (InvalidSpec, Unsupported)):
                raise failure

        try:
            session._exchange("from_env", check)
            if failure is not None:
                raise failure  # options of ranks differ, and none is wrong by itself
        except BaseException:
            session.close()
            raise
        finally:
            failure = None  # its traceback has this frame
        return session

    @classmethod
    def from_process_group(cls, pg: Any = None, *, wires: str = "auto", bind: str = "",
                           join_timeout: float | None = 300.0,
                           **options: Unpack[SessionOptions]) -> Session:
        """Collective; blocks. A session of a process group of torch.distributed, of any backend.

        Only an all-gather of bytes is used, twice. `pg`: None is the default group. Ranks of the
        session are ranks of the group. A DTensor's mesh has ranks of the job, which are translated.
        """
        import torch.distributed as dist

        rank, size = dist.get_rank(pg), dist.get_world_size(pg)
        if rank < 0:
            raise InvalidSpec(f"this process, rank {dist.get_rank()} of the job, is not in the "
                              "process group")

        job_ranks = dist.get_process_group_ranks(dist.group.WORLD if pg is None else pg)
        return cls.from_exchange(rank, size, _bootstrap.gather_of(pg), job_ranks=job_ranks,
                                 wires=wires, bind=bind, join_timeout=join_timeout, **options)

    @classmethod
    def from_mpi(cls, comm: Any, *, wires: str = "auto", bind: str = "",
                 join_timeout: float | None = 300.0,
                 **options: Unpack[SessionOptions]) -> Session:
        """Collective; blocks. A session of an mpi4py communicator; any MPI, which is not linked.

        Only comm.allgather is used, twice.
        """
        return cls.from_exchange(comm.Get_rank(), comm.Get_size(), comm.allgather, wires=wires,
                                 bind=bind, join_timeout=join_timeout, **options)

    @classmethod
    def from_exchange(cls, rank: int, size: int, allgather: Callable[[bytes], list[bytes]], *,
                      job_ranks: Sequence[int] | None = None, wires: str = "auto", bind: str = "",
                      join_timeout: float | None = 300.0,
                      **options: Unpack[SessionOptions]) -> Session:
        """Collective; blocks. A session of ranks that can gather bytes in any way of their own.

        `allgather` takes this rank's bytes, about 1 KiB, and returns those of all ranks by rank. It
        is called twice. Rank 0 serves a store with a random token, and tells its addresses and the
        token in this way. So whoever can read what is gathered can join. `job_ranks`: what each
        rank of the session is called by DTensor meshes, where that differs.

        InvalidSpec, on all ranks: what one of them has found wrong. Disagreement: ranks have
        different versions of Sluice, or other options.
        """
        _bootstrap.check_rank(rank, size)
        ranks: dict[int, int] | None = None

        def check() -> None:
            nonlocal ranks
            if job_ranks is not None:
                ranks = {job_rank: i for i, job_rank in enumerate(job_ranks)}
                if len(ranks) != size or len(job_ranks) != size:
                    raise InvalidSpec(f"job_ranks has {len(ranks)} ranks, and the session {size}")

        owned, found, native = _bootstrap.by_exchange(rank, size, allgather, options, wires, bind,
                                                      join_timeout, check)
        return cls(native, members=[Member(**member) for member in found], owned=owned,
                   rank_of=None if ranks is None else _JobRanks(ranks))

    @classmethod
    def local(cls, **options: Unpack[SessionOptions]) -> Session:
        """A session of this process alone, as for a notebook. Nothing listens, and nobody joins."""
        import socket

        native = _sluice.local_fabrics(1)[0].session(_sluice.check_session_options(options))
        return cls(native, members=[Member("member", 0, socket.gethostname(), os.getpid())])

    @property
    def epoch(self) -> int:
        """Of a World's session: equal on all its members, and growing. Otherwise 0."""
        return self._epoch

    @property
    def members(self) -> list[Member]:
        """The processes that take part, by session rank, as they were when the session began."""
        return list(self._members)

    @property
    def closed(self) -> bool:
        return self._closed

    # What moves.

    def transfer(self, src: Any = None, dst: Any = None, *, rename: Renames = None,
                 window_of: Windows = None, late: bool = False, ignore_unused: bool = False,
                 priority: int | None = None) -> Transfer:
        """Collective; blocks. Matches what all ranks have by name, and plans how it moves.

        Each rank gives what it has: `src` to come from, `dst` to go to, either, both or none. Each
        is a state dict (nested ones get names with dots), an iterable of `sluice.Tensor`, or what
        `sluice.into` returns. Values are DTensors, tensors of PyTorch, arrays of NumPy and others
        that speak DLPack, `sluice.Tensor` or `sluice.Boxes`. A plain tensor is a whole copy, on the
        ranks that give it.

        **Give a module itself, not its `state_dict()`.** A dict keeps the memory that the module
        had, so after `to(dtype)`, `load_state_dict(assign=True)` or `.data =` old values move, and
        no error says so. Of a module, `start` notices.

        `rename`: {name of destination: name of source}, given by any rank; or a function that takes
        each destination's name of this rank and returns its source's. `window_of`: a dict or
        function from a name to a number, or None. Tensors of one number move together, and lower
        numbers before higher ones. `late`: destinations may lack memory, such as tensors on the
        meta device. It is given by `Run.supply` for each run. `ignore_unused`: sources that nobody
        asks for are no error. `priority`: 0 (most urgent) to 3.

        An error of one rank is raised on all, names tensors and ranks, and leaves the session as it
        was. InvalidSpec: what a rank gives makes no sense, or shapes differ. Unsupported: a
        placement, dtype or device. Disagreement: ranks give different things. Error: a run is in
        flight.
        """
        return connect(self, src, dst, rename=rename, window_of=window_of, late=late,
                       ignore_unused=ignore_unused, priority=priority)

    def sync(self, src: Any = None, dst: Any = None, *, rename: Renames = None,
             ignore_unused: bool = False, version: int | str | None = None,
             timeout: float | None = None, progress: bool = True,
             stream: StreamLike = None) -> None:
        """Collective; blocks. `sluice.sync` with this session."""
        from ._sync import sync
        sync(src, dst, session=self, rename=rename, ignore_unused=ignore_unused, version=version,
             timeout=timeout, progress=progress, stream=stream)

    def allocate(self, nbytes: int) -> _sluice.Memory:
        """Collective; blocks; each rank for as much as it needs, or 0. Zeroed memory of the host.

        Ranks of this node copy to and from it faster than any other memory. Its `memory` is a
        memoryview: torch.frombuffer and numpy.frombuffer make tensors of that. It may outlive the
        session. No run may be in flight.
        """
        def check() -> int:
            if type(nbytes) is bool or not isinstance(nbytes, int) or not 0 <= nbytes < 1 << 63:
                raise InvalidSpec(f"allocate needs a number of bytes, not {nbytes!r}")
            return nbytes

        self._exchange("allocate", check)
        return self._native.allocate(nbytes)

    def share(self, what: Any) -> Any:
        """Collective; blocks; each rank for what it has, or `{}`. Returns `what`.

        Moves tensors into memory as of `allocate`, with their values. They stay the same objects
        with the same shapes and strides. Do so before transfers are made of them. `what`: a module,
        a tensor, or dicts and lists of tensors, of PyTorch and in memory of the host. What lies in
        shared memory already stays. The memory lives as long as the tensors, beyond the session. A
        forked child writes to the same memory.

        Unsupported, on all ranks, and nothing has moved: something else holds the memory of a
        tensor, such as a view that is not in `what`. An array that PyTorch made a tensor from keeps
        the old memory, and no error says so. No run may be in flight.
        """
        from ._share import share
        return share(self, what)

    @staticmethod
    def unshare(what: Any) -> Any:
        """Moves what `share` has moved back into memory of this process. Not collective.

        No run of these tensors may be in flight. Unsupported: as of `share`.
        """
        from ._share import unshare
        return unshare(what)

    # Checkpoints and data.

    def load(self, uri: str | os.PathLike[str], state: Any, *, rename: Renames = None,
             strict: bool | None = None, catalog: Iterable[CheckpointEntry] | None = None,
             progress: bool = True, stream: StreamLike = None,
             **options: Unpack[CheckpointOptions]) -> dict[str, Any]:
        """Collective; blocks. Fills the tensors of `state` from a checkpoint.

        `uri`: a path, which may begin with `~`, or "file:PATH" (reads past the page cache),
        "buffered:PATH", "mmap:PATH" (fast where the page cache has the files),
        "http://HOST/BASE/" or "s3://BUCKET/PREFIX". The place is a directory, or one file whose
        name ends in ".safetensors". "dcp:" before a place: the checkpoint is one of
        torch.distributed.checkpoint. `catalog`: where the arrays of any other format lie, equal on
        all ranks; the place has the files that it names.
        `state`: as `dst` of `Session.transfer`; each rank gives what it has. Names may differ
        between ranks, as under pipeline parallelism. Values of a state dict that are no tensors
        are replaced by those that `save` has kept. `rename`: from a name in `state` to the
        checkpoint's. Several tensors may have one name there, which is then read for each.
        Otherwise each byte is read once for all ranks, and cast where dtypes differ. `options`:
        those of `CheckpointOptions`. Returns what it came to: bytes, seconds and so on. `progress`:
        one rank shows on stderr how far the files are. `stream`: as in
        `Transfer.start`. Device memory is written after what this stream holds now, and is complete
        when the call returns.

        `strict`: True: the checkpoint has all names of `state`, and no others. False: what it lacks
        is left as it was. None: it has all names, and may have more. With True or False the result
        has lists of what was `missing` and `unexpected`.

        Bad input is an error on all ranks before anything is written: InvalidSpec; Unsupported.
        InvalidSpec also for a checkpoint that is not there, or that lacks names. DataLoss: a file
        is too short, or was replaced meanwhile. No run may be in flight.
        """
        from ._checkpoint import load
        return load(self, uri, state, rename=rename, strict=strict, catalog=catalog,
                    progress=progress, stream=stream, **options)

    def save(self, directory: str | os.PathLike[str], state: Any, *, dtype: Any = None,
             rename: Renames = None, progress: bool = True, stream: StreamLike = None,
             **options: Unpack[CheckpointOptions]) -> dict[str, Any]:
        """Collective; blocks. Writes `state` as a safetensors checkpoint into `directory`.

        All ranks see the directory, a path or "file:PATH" that does not end in ".safetensors"; its
        parent is there. `state`, `rename` and options are as `load` has them, but each tensor has a
        name of its own there. Boxes cover their tensor. `dtype`: what floating elements are in the
        files, such as "bf16" or torch.bfloat16; None: as in memory. Of replicas one is written.

        Numbers, texts, None, and lists, tuples and dicts of these are kept, too, as in
        `optimizer.state_dict()`. Their names are those of tensors: keys with dots between. A list
        without tensors is one value; the elements of others have their numbers as names. Ranks give
        equal ones, or Disagreement says which differs. Other objects are InvalidSpec.

        Until the new checkpoint is whole, the directory has the old one.
        `stream`: as in `Transfer.start`. Device memory is read after what this stream holds now.
        Errors are those of `load`.
        """
        from ._checkpoint import save
        return save(self, directory, state, dtype=dtype, rename=rename, progress=progress,
                    stream=stream, **options)

    def stream(self, uri: str | os.PathLike[str] = "", *,
               generator: Callable[..., Any] | None = None,
               transform: Transform | None = None, state: Mapping[str, Any] | None = None,
               **options: Unpack[StreamOptions]) -> Stream:
        """Collective; blocks. An iterator over data shards, read ahead of who consumes them.

        `uri`: a directory, as `load` has it; or `generator`, which is called with an item's number
        and memory to fill, and returns None, how many bytes it has written, or bytes. `transform`:
        such as sluice.scale(1 / 255). `state`: where to go on, from `Stream.state_dict` or
        `sluice.merge_states`. By default this rank takes items `rank`, `rank + size` and so on:
        `first` and `step` say otherwise. Ranks that need the same items read them once.

        `options`: those of `StreamOptions`, such as batch_items, shuffle and format. No run may be
        in flight.

        InvalidSpec and others say on all ranks what is wrong with source, options or state.
        """
        from ._stream import open_stream
        return open_stream(self, uri, generator=generator, transform=transform, state=state,
                           **options)

    # Looking inside.

    def report(self) -> str:
        """What carries bytes to the other ranks, on one line. Thread: any.

        Says so where device memory goes through the host, of which a first run warns, too.
        """
        report = Report(self._native.report())
        report.wires = list(self._native.wires())
        return report

    @contextmanager
    def trace(self, path: str | os.PathLike[str]) -> Iterator[None]:
        """Collective, at both ends. Records what happens within, and writes it to `path`.

        Rank 0 writes one file of all ranks: JSON for ui.perfetto.dev. It says when each bucket was
        filled, moved and drained, of which tensors, and arrows lead from senders to receivers.
        Sessions need the option trace_events on all ranks. No run may be in flight at either end.
        A rank that an exception ends writes what it has, to a file with its number: trace.3.json.
        """
        path = os.fspath(path)
        self._exchange("trace", self._native.clear_trace)
        self._native.clear_trace()  # of the exchange itself
        try:
            yield
        except BaseException:
            root, ending = os.path.splitext(path)
            with suppress(Error):
                self._native.write_trace(f"{root}.{self._rank}{ending}")
            raise
        self._write_trace(path)

    def _write_trace(self, path: str) -> None:
        """Collective; blocks. Rank 0 writes what all ranks have recorded."""
        record = bytes(self._native.trace())
        self._vote(_END_OF_TRACE, 0)
        clocks = self._vote(_END_OF_TRACE, time.monotonic_ns())  # as they left that vote
        records = self._all_gather(_END_OF_TRACE, record, only_on=0)

        def write() -> None:
            if self._rank > 0:
                return
            hosts = [member.host for member in self._members]
            parts = []
            for rank, content in enumerate(records):
                member = self._members[rank] if self._members else None
                # Ranks of one host share a clock.
                one_clock = member is None or member.host == hosts[0]
                label = f"{member.name}, {member.host}" if member else ""
                parts.append((content, 0 if one_clock else clocks[0] - clocks[rank], label))
            try:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(_sluice.chrome_trace(parts))
            except OSError as error:
                raise Error(f"cannot write the trace to {path}: {error.strerror}",
                            code=Code.FAILED_PRECONDITION) from error

        self._exchange(_END_OF_TRACE, write)

    def poll(self) -> None:
        """Makes progress without blocking. Raises the error that has ended the session."""
        self._native.poll()
        self._prune()

    # The end.

    def close(self) -> None:
        """Ends the session, and waits for its runs before. Then no memory is in use any more.

        Timeout: a run is in flight 2 s after the session's timeout, and nothing has ended; or,
        after an error, a rank is silent with which something was under way. A session that is
        dropped instead is closed by itself. What it cannot close keeps its memory for ever, as
        other ranks may still use it.
        """
        if self._closed:
            return
        self._native.close()
        self._closed = True
        self._in_flight.clear()
        self._ballot = None
        self._synced = None
        self._end_owned()

    def _end_owned(self) -> None:
        owned, self._owned = self._owned, None
        if owned is not None:
            try:
                owned.close()
            except Error:
                pass  # the store may be gone, which changes nothing for a session

    def _close_after(self, failed: bool) -> None:
        """`close` where an exception is on its way already, if `failed`."""
        try:
            self.close()
        except Error:
            if not failed:
                raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._close_after(kind is not None)

    def __repr__(self) -> str:
        return f"<sluice.Session, rank {self._rank} of {self._size}{', closed' * self._closed}>"


class _JobRanks:
    """Session ranks of the job's ranks."""

    def __init__(self, ranks: dict[int, int]) -> None:
        self._ranks = ranks

    def __call__(self, job_rank: int) -> int:
        rank = self._ranks.get(job_rank)
        if rank is None:
            raise InvalidSpec(f"rank {job_rank} of the job is not in the session's process group")
        return rank

