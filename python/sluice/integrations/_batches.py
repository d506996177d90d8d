"""Updates of weights where a host's generators bring whole tensors, in batches of a fixed size.

Actors hold equal tensors. Each packs every A-th stripe of a batch, of A actors, and sends it to all
rollouts. So actors send equally many bytes, and copy no more than they send.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, cast

from .._errors import Code, Disagreement, Error
from .._group import describe
from .._halves import Halves, read_halves
from .._layouts import Layout, Replicate, Shard, Tensor
from .._transfer import connect_halves

if TYPE_CHECKING:
    from .._session import Session
    from .._transfer import Run, Transfer

Named = tuple[str, Any]  # a name and a tensor of PyTorch
_Spec = tuple[str, str, "list[int]", int]

_CALL = "a batch of weights"
_FAILED = -1  # what a member votes for that cannot go on
_END = "the end"  # what all vote for in place of a header once all is loaded
_ALIGNMENT = 256  # bytes: of each tensor in its batch
_STRIPES = 64  # that each actor has of a full batch
_PLANS_KEPT = 64  # The one that was used longest ago goes first.


@dataclass(frozen=True)
class Header:
    """What a batch has: of each tensor its name, dtype, shape and bytes. `last`: of its update."""

    tensors: list[_Spec]
    last: bool

    def to_json(self) -> str:
        return json.dumps([self.last, self.tensors], separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Header:
        last, tensors = json.loads(text)
        return cls([tuple(tensor) for tensor in tensors], last)

    @property
    def nbytes(self) -> int:
        """Of the batch, with what lies between its tensors."""
        return sum(_aligned(nbytes) for *_, nbytes in self.tensors)


@dataclass(frozen=True)
class _Packed:
    """A batch as one actor has it: its stripes, one in each of `rows`."""

    header: Header
    rows: int
    stripes: Any


class Batches:
    """One member's end of all updates of a session. Thread: the session's.

    `senders`: the role that sends; all other members receive. `bucket_bytes`: most bytes of a batch
    of more than one tensor; the least that a member gives counts. Receivers hold two batches, and
    each of A senders the A-th part of two. Collective; blocks.
    """

    def __init__(self, session: Session, bucket_bytes: int, senders: str) -> None:
        self._session = session
        ranks = range(session.size)
        self._senders = [i for i in ranks if session.members[i].role == senders]
        self._receivers = [i for i in ranks if i not in self._senders]
        self._bucket = min(session._exchange(_CALL, lambda: int(bucket_bytes)))
        count = len(self._senders)
        self._stripe = max(_ALIGNMENT, _aligned(-(-self._bucket // (_STRIPES * count))))
        self._row = self._stripe * count
        self._rows = -(-self._bucket // self._row)  # of a full batch
        #: Whether all members have come to the same end of the last update, and may have another.
        self.sound = True
        self._buffers: dict[int, Any] = {}
        #: By the batch's number, as last sent; equal on all members.
        self._headers: list[str] = []
        #: Equal on all members, and in the same order. One serves all batches of as many rows.
        self._plans: OrderedDict[int, Transfer] = OrderedDict()

    @property
    def size(self) -> int:
        return self._session.size

    @property
    def device(self) -> str:
        """Where a receiver gets tensors if nobody says it: the session's GPU, or the host."""
        gpu = self._session._native.gpu
        return "cpu" if gpu is None else f"cuda:{gpu}"

    def release(self) -> None:
        """Lets go of the memory of batches. The next update takes new memory."""
        self._buffers.clear()

    # What senders do.

    async def send(self, weights: Any) -> dict[str, float]:
        """Collective. Sends all that the generator brings, and waits until all have loaded it.

        `weights`: pairs of a name and a whole tensor, equal on all senders. It is walked to its end
        on every path, as its tensors may come of collectives. Returns bytes, batches and seconds.

        Whatever the generator raises. On the other members: Error, which names this one and has
        the text. Disagreement: generators differ, and which tensor.
        """
        begin = time.monotonic()
        self.sound = False
        pairs = _each(weights)
        run: Run | None = None
        number = nbytes = 0
        try:
            packing = self._packing(pairs)
            over = False
            while not over:
                failure: Exception | None = None
                packed: _Packed | None = None
                try:
                    packed = await packing.__anext__()
                except Exception as error:
                    failure = error
                if run is not None:
                    await run
                own = None if packed is None else packed.header.to_json()
                await self._agree(number, own, failure)
                assert packed is not None
                run = self._start(packed.rows, lambda: packed.stripes)  # noqa: B023 - called now
                over = packed.header.last
                number += 1
                nbytes += packed.rows * self._row
            if run is not None:
                await run
            await self._agree(number, _END, None)
        finally:
            with suppress(Exception):  # that is told already, or comes of what was told
                async for _ in pairs:
                    pass
        return {"bytes": nbytes, "batches": number, "seconds": time.monotonic() - begin}

    async def _packing(self, pairs: AsyncIterator[Named]) -> AsyncIterator[_Packed]:
        """The batches. Each one's memory is written again for the one after the next."""
        import torch
        number = at = 0
        tensors: list[_Spec] = []
        stripes = None
        async for name, tensor in pairs:
            if not isinstance(tensor, torch.Tensor) or hasattr(tensor, "full_tensor"):
                raise TypeError(f"'{name}' is a {type(tensor).__name__}; a generator of weights "
                                "has to bring whole tensors, as DTensor.full_tensor gives them")
            nbytes = tensor.numel() * tensor.element_size()
            if tensors and at + nbytes > self._bucket:
                yield self._packed(tensors, stripes, last=False)
                number, at, tensors, stripes = number + 1, 0, [], None
            if stripes is None:
                device = tensor.device if self._on_gpu and tensor.is_cuda else "cpu"
                stripes = self._buffer(number % 2, self._rows_of(nbytes) * self._stripe,
                                       self._rows * self._stripe, device)
            self._pack(tensor, nbytes, at, stripes)
            tensors.append((name, str(tensor.dtype).rpartition(".")[2], list(tensor.shape), nbytes))
            at = _aligned(at + nbytes)
        yield self._packed(tensors, stripes, last=True)

    def _packed(self, tensors: list[_Spec], stripes: Any, last: bool) -> _Packed:
        header = Header(tensors, last)
        rows = self._rows_of(header.nbytes)
        if rows:
            stripes = stripes[:rows * self._stripe].view(rows, 1, self._stripe)
        return _Packed(header, rows, stripes)

    def _pack(self, tensor: Any, nbytes: int, at: int, stripes: Any) -> None:
        """Copies this member's stripes of a tensor that begins at byte `at` of the batch."""
        import torch
        if not nbytes:
            return
        flat = tensor.detach().contiguous().view(-1).view(torch.uint8)
        first = self._senders.index(self._session.rank) * self._stripe
        for row in range(at // self._row, self._rows_of(at + nbytes)):
            stripe = row * self._row + first  # where it begins in the batch
            begin, end = max(at, stripe), min(at + nbytes, stripe + self._stripe)
            if begin < end:
                place = row * self._stripe - stripe
                stripes[place + begin:place + end].copy_(flat[begin - at:end - at])

    # What receivers do.

    async def receive(self, device: Any) -> AsyncGenerator[list[Named], None]:
        """Collective. Batches of names and tensors on `device`, in the senders' order.

        A batch may be used until the next one is asked for. In the meantime that comes into other
        memory. Closing the generator before its end ends the update on all members.
        Error: a member gives up, which it names. Other errors are those of runs.
        """
        self.sound = False
        number = 0
        ready: list[Named] | None = None
        run: Run | None = None
        try:
            while True:
                header = Header.from_json(await self._agree(number, None, None))
                rows = self._rows_of(header.nbytes)
                tensors: list[Named] = []
                run = self._start(rows, lambda: self._unpacked(
                    header, number, rows, device, tensors))  # noqa: B023 - called now
                number += 1
                if ready is not None:
                    yield ready
                if run is not None:
                    await run
                run = None
                ready = tensors
                if header.last:
                    break
            yield ready
            await self._agree(number, _END, None)
        except GeneratorExit:
            with suppress(_Stopped, Error):  # whoever closes the generator has a reason to tell
                if run is not None:
                    await run
                await self._agree(number, None, _Stopped("it has stopped loading, and its own "
                                                         "output may say why"))
            raise

    def _unpacked(self, header: Header, number: int, rows: int, device: Any,
                  tensors: list[Named]) -> Any:
        """The memory of a batch, shaped as it comes. `tensors` gets those that lie in it."""
        import torch
        # Hosts tell by `_base` that a tensor's memory is not its own, and inference has none.
        with torch.inference_mode(False):
            batch = self._buffer(number % 2, rows * self._row, self._rows * self._row, device)
            at = 0
            for name, dtype, shape, nbytes in header.tensors:
                view = batch[at:at + nbytes].view(getattr(torch, dtype)).view(shape)
                tensors.append((name, view))
                at = _aligned(at + nbytes)
            return batch[:rows * self._row].view(rows, len(self._senders), self._stripe)

    # What all do.

    @property
    def _on_gpu(self) -> bool:
        return self._session._native.gpu is not None

    def _rows_of(self, nbytes: int) -> int:
        return -(-nbytes // self._row)

    def _buffer(self, slot: int, nbytes: int, full: int, device: Any) -> Any:
        """Memory of at least `nbytes`. Of a tensor that is larger than a batch, it is not kept."""
        import torch
        device = torch.device(device)
        kept = self._buffers.get(slot)
        if kept is not None and kept.device == device and kept.numel() >= nbytes:
            return kept
        # Pinned memory is the faster way from a GPU through the host. Not for receivers: a host's
        # copies out of it may go on after it asks for the next batch.
        pinned = (device.type == "cpu" and torch.cuda.is_available()
                  and self._session.rank in self._senders)
        with torch.inference_mode(False):
            made = torch.empty(max(nbytes, full), dtype=torch.uint8, device=device,
                               pin_memory=pinned)
        if nbytes <= full:
            self._buffers[slot] = made
        return made

    async def _agree(self, number: int, own: str | None, failure: Exception | None) -> str:
        """Collective. The header of batch `number`, or _END, as the senders have it in `own`.

        Members that know it from the last update vote for it, and it is sent where one does not.
        Raises on every member where one has a `failure`.
        """
        session = self._session
        known = self._headers[number] if number < len(self._headers) else ""
        text = known if own is None else own
        votes = await session._vote_awaited(_CALL, _FAILED if failure else _digest(text))
        if failure is None and all(vote == votes[0] for vote in votes):
            if text == _END:
                self.sound = True
            return text
        told: dict[str, Any] = {"error": describe(failure)} if failure is not None else {}
        if failure is None and session.rank in self._senders:
            differ = any(votes[i] != votes[session.rank] for i in self._senders)
            if differ or session.rank == self._senders[0]:
                told["header"] = text
        answers = [json.loads(answer) for answer in
                   session._all_gather(_CALL, json.dumps(told).encode())]
        try:
            if failure is not None:
                raise failure
            self._raise_told(number, answers)
            text = self._same_header(number, answers)
        except Exception:
            self.sound = True  # as all members raise here
            raise
        finally:
            del failure  # its traceback has this frame
        self._headers[number:number + 1] = [text]
        return text

    def _raise_told(self, number: int, answers: list[dict[str, Any]]) -> None:
        failed = [i for i, answer in enumerate(answers) if "error" in answer]
        if failed:
            told = "; ".join(f"{self._session.members[i]} gives up at batch {number} of an update "
                             f"of weights: {answers[i]['error']}" for i in failed)
            raise Error(told, code=Code.ABORTED, ranks=failed)

    def _same_header(self, number: int, answers: list[dict[str, Any]]) -> str:
        headers = {i: str(answers[i]["header"]) for i in self._senders if "header" in answers[i]}
        first, *_ = headers
        for i, text in headers.items():
            if text != headers[first]:
                names = [self._session.members[each].name for each in (first, i)]
                raise _different(number, names, headers[first], text, (first, i))
        return headers[first]

    def _start(self, rows: int, make: Callable[[], Any]) -> Run | None:
        """Collective. Begins the run of a batch in the memory that `make` gives.

        Where `make` raises on a member, every member raises. None: nothing has to move.
        """
        if not rows:
            make()
            return None
        session = self._session
        failure: Error | None = None
        halves = Halves()
        try:
            view = make()
            sends = session.rank in self._senders
            ranks, placement = ((self._senders, Shard(1)) if sends else
                                (self._receivers, Replicate()))
            batch = [Tensor("batch", (rows, len(self._senders), self._stripe), "u8",
                            Layout.over((len(ranks),), ranks, (placement,)), view)]
            halves = read_halves(session, batch if sends else None, None if sends else batch,
                                 windows=None)
        except Exception as error:
            failure = Error(f"there is no memory for a batch of weights: {describe(error)}",
                            code=Code.RESOURCE_EXHAUSTED)
        transfer = self._plans.get(rows)
        try:
            if transfer is None:
                transfer = connect_halves(session, halves, {}, failure)
                # Memory is bound anew for each run, and plans outlive it.
                transfer._let_go()
                self._plans[rows] = transfer
                if len(self._plans) > _PLANS_KEPT:
                    self._plans.popitem(last=False)[1].drop()
            elif failure is not None:
                transfer._refuse(cast(Any, failure))
            else:
                transfer._native.rebind(*halves.bindings())
                transfer._native.disown()
                self._plans.move_to_end(rows)
        finally:
            del failure  # its traceback has this frame
        return transfer._begin(None, None, False, halves.places(), keep=halves)


class _Stopped(Exception):
    """A receiver's generator was closed before its end."""


async def _each(weights: Any) -> AsyncIterator[Named]:
    if hasattr(weights, "__aiter__"):
        async for pair in weights:
            yield pair
    else:
        for pair in weights:
            yield pair


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT) * _ALIGNMENT


def _digest(text: str) -> int:
    """A number of 63 bits."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def _different(number: int, names: list[str], one: str, other: str,
               ranks: tuple[int, int]) -> Disagreement:
    """What two senders hear whose generators bring different tensors."""
    tensors = [Header.from_json(text).tensors if text != _END else [] for text in (one, other)]
    pairs = zip_longest(*tensors)
    first, second = next((pair for pair in pairs if pair[0] != pair[1]), (None, None))
    shown = ["ends" if each is None else f"has '{each[0]}' ({each[1]}, {each[2]})"
             for each in (first, second)]
    return Disagreement(f"batch {number} of an update of weights: {names[0]} {shown[0]} where "
                        f"{names[1]} {shown[1]}; all senders have to bring equal tensors in one "
                        "order", ranks=ranks, tensor=(first or second or ("",))[0] or None)
