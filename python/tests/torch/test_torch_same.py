"""What sync recognises quickly: never a tensor that lies elsewhere, or shows other values."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import sluice  # noqa: E402
from sluice._same import Seen, print_of  # noqa: E402
from sluice._transfer import Transfer  # noqa: E402
from torch_ranks import gloo_session, run_job  # noqa: E402


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "stride": lambda state: state["w"].t_(),
    "shape": lambda state: state["w"].resize_(2, 8),
    "memory": lambda state: setattr(state["w"], "data", torch.zeros(4, 4)),
    "offset": lambda state: setattr(state["w"], "data", torch.zeros(20)[1:17].view(4, 4)),
    "dtype": lambda state: state.update(w=state["w"].view(torch.int32)),
    "freed": lambda state: state["w"].untyped_storage().resize_(0),
    "name": lambda state: state.update(v=state.pop("w")),
    "one more": lambda state: state.update(v=torch.zeros(1)),
    "order": lambda state: state.update(b=state.pop("b"), w=state.pop("w")),
    "a text": lambda state: state.update(w="w"),
    "nested": lambda state: state.update(w={"w": state["w"]}),
}


def plain_state() -> dict[str, Any]:
    return {"w": torch.arange(16.0).view(4, 4), "b": torch.zeros(3, dtype=torch.bfloat16),
            "scale": torch.tensor(2.0), "none": torch.zeros(0, 4),
            "p": torch.nn.Parameter(torch.zeros(2, 2))}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(change: str) -> None:
    state = plain_state()
    seen = Seen.of(state)
    assert seen is not None and seen.keeps(state) is not None
    # Other objects over the same memory, as state_dict() makes them.
    assert seen.keeps({name: one.detach() for name, one in state.items()}) is not None
    CHANGES[change](state)
    assert seen.keeps(state) is None


def test_values_that_memory_does_not_show() -> None:
    base = torch.tensor([1 + 2j, 3 + 4j])
    assert Seen.of({"c": base}) is None  # a conjugate of it would lie there, too
    imag = base.imag
    seen = Seen.of({"w": imag})
    assert seen is not None and seen.keeps({"w": imag}) is not None
    assert base.conj().imag.data_ptr() == imag.data_ptr()
    assert seen.keeps({"w": base.conj().imag}) is None
    assert Seen.of({"w": base.conj().imag}) is None
    one = torch.tensor(1 + 2j)
    seen = Seen.of({"w": one.imag})
    assert seen is not None and seen.keeps({"w": one.conj().imag}) is None


@pytest.mark.parametrize("value", [torch.zeros(2, device="meta"), torch.zeros(2).to_sparse(),
                                   [torch.zeros(2)], "text", None, object()])
def test_what_cannot_be_told(value: Any) -> None:
    assert Seen.of({"w": value}) is None


def test_a_subclass_is_not_taken_for_its_memory() -> None:
    class Mine(torch.Tensor):
        pass

    assert Seen.of({"w": torch.zeros(2).as_subclass(Mine)}) is None
    state = {"w": torch.zeros(2)}
    seen = Seen.of(state)
    assert seen is not None and seen.keeps({"w": state["w"].as_subclass(Mine)}) is None


def boxed(memory: Any) -> sluice.Tensor:
    return sluice.Tensor("w", (4, 4), "f32", sluice.Boxes([sluice.Box((0, 0), (4, 4), memory)]))


def placed(memory: Any) -> sluice.Tensor:
    return sluice.Tensor("w", (4, 4), "f32", sluice.Layout(mesh=[0], placements="R"), memory)


@pytest.mark.parametrize("make", [boxed, placed])
def test_what_stands_for_memory(make: Callable[[Any], sluice.Tensor]) -> None:
    memory = torch.zeros(4, 4)
    tensor = make(memory)
    seen = Seen.of([tensor])
    assert seen is not None and seen.keeps([tensor]) is not None
    # Another one is read again: it may be placed in another way.
    assert seen.keeps([make(memory)]) is None
    memory.data = torch.zeros(4, 4)
    assert seen.keeps([tensor]) is None


def test_nothing_is_referred_to() -> None:
    memory = torch.zeros(4, 4)
    tensors = [placed(memory), boxed(memory.clone())]
    state = plain_state()
    watches = [weakref.ref(one) for one in (*tensors, memory, *state.values())]
    seen = [Seen.of(tensors), Seen.of(state)]
    assert None not in seen
    del tensors, state, memory
    gc.collect()
    assert [watch() for watch in watches] == [None] * len(watches)
    # One of these may have the address of one of those.
    assert all(seen[0].keeps([placed(torch.zeros(4, 4)), boxed(torch.zeros(4, 4))]) is None
               for _ in range(50))


def test_many_at_once() -> None:
    tensors = [torch.zeros(i % 5, 3) for i in range(500)]
    print_ = print_of(tensors)
    assert print_ is not None and print_.same(tensors)
    assert not print_.same(tensors[:-1]) and not print_.same([*tensors, tensors[0]])
    assert not print_.same([*tensors[1:], tensors[0]])


def test_renames_and_into() -> None:
    state = plain_state()
    seen = Seen.of(sluice.into(state, rename={"w": "x"}))
    assert seen is not None
    assert seen.keeps(sluice.into(state, rename={"w": "x"})) is not None
    for other in (state, sluice.into(state), sluice.into(state, rename={"w": "y"}),
                  sluice.into(state, rename=str.upper), sluice.into(state, views={"w": None})):
        assert seen.keeps(other) is None
    assert Seen.of(sluice.into(state, rename=str.upper)) is None


def rank_syncs_dtensors() -> Any:
    """DTensors whose placement, memory or local tensor changes: every sync has its values."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    whole = torch.arange(64.0).view(8, 8)
    good = []
    with gloo_session() as session:
        mesh = init_device_mesh("cpu", (2,))
        src = {"w": distribute_tensor(whole.clone(), mesh, [Shard(0)])}
        seen = Seen.of(src)
        assert seen is not None
        good.append(seen.keeps({"w": src["w"].detach()}) is not None)
        local = src["w"].to_local()
        columns = DTensor.from_local(local.view(8, 4), mesh, [Shard(1)])
        good.append(seen.keeps({"w": columns}) is None)
        for step, kind in enumerate((Shard(1), Shard(1), Replicate(), Shard(0), Shard(1))):
            with torch.no_grad():
                src["w"].to_local().add_(1)
            dst = {"w": DTensor.from_local(torch.zeros_like(
                distribute_tensor(whole, mesh, [kind]).to_local()), mesh, [kind])}
            for _ in range(3):
                sluice.sync(src, dst, session=session)
                good.append(bool(torch.equal(dst["w"].full_tensor(), whole + step + 1)))
                dst["w"].to_local().zero_()
        plans = len(session._synced.plans)
    return [all(good), plans]


def test_dtensors() -> None:
    assert run_job(2, rank_syncs_dtensors) == [[True, 3], [True, 3]]


@pytest.mark.parametrize("known", [False, True])
def test_a_run_that_goes_on_keeps_its_memory(known: bool) -> None:
    """After a Timeout the tensor gets other memory, and the run still writes to the first one."""
    from local_ranks import on_ranks
    from torch.multiprocessing.reductions import StorageWeakRef

    changed = threading.Event()
    calls = 3 if known else 1

    def work(native: Any, rank: int) -> Any:
        session = sluice.Session(native)
        tensor = torch.full((4096,), 1.0 - rank)
        sides = ({"w": tensor}, None) if rank == 0 else (None, {"w": tensor})
        for _ in range(calls - 1):
            sluice.sync(*sides, session=session)
        if rank == 0:
            transfer_of = Transfer._begin

            def begin(self: Any, *args: Any, **named: Any) -> Any:
                while self._session._native is native and not changed.wait(0.01):
                    session.poll()
                return transfer_of(self, *args, **named)

            Transfer._begin = begin  # type: ignore[method-assign]
            try:
                sluice.sync(*sides, session=session)
            finally:
                Transfer._begin = transfer_of  # type: ignore[method-assign]
            return None
        with pytest.raises(sluice.Timeout, match="goes on"):
            sluice.sync(*sides, session=session, timeout=0.3)
        storage = StorageWeakRef(tensor.untyped_storage())
        tensor.data = torch.zeros(2)
        gc.collect()
        kept = not storage.expired()
        changed.set()
        while session._in_flight:
            session.poll()
        gc.collect()
        return kept, storage.expired(), tensor.tolist()

    assert on_ranks(2, work, direct=False)[1] == (True, True, [0.0, 0.0])


def rank_changes_alone(rounds: int) -> Any:
    """Each time one rank gives other memory, strides or dtypes, and all get what was sent."""
    chance = random.Random(7)  # the same on all ranks
    wrong = 0
    with gloo_session() as session:
        src = {f"w{i}": torch.zeros(6, 6) for i in range(5)}
        dst = {f"w{i}": torch.zeros(6, 6) for i in range(5)}
        for step in range(1, rounds + 1):
            one, name, kind = chance.randrange(3), f"w{chance.randrange(5)}", chance.randrange(6)
            dtype = chance.choice([torch.float16, torch.float32])
            if session.rank == one:
                if kind == 0:
                    dst[name] = torch.zeros(6, 6)
                elif kind == 1:
                    dst[name] = dst[name].t()
                elif kind == 2:
                    dst[name].t_()
                elif kind == 3:
                    dst[name].data = torch.zeros(6, 6)
                elif kind == 4:
                    dst[name] = torch.zeros(6, 6, dtype=dtype)
            expected = torch.arange(36.0).view(6, 6)
            for i, tensor in enumerate(src.values()):
                tensor.copy_(expected + step + i)
            if session.rank == 0:
                sluice.sync(src, None, session=session)
            else:
                sluice.sync(None, dst, session=session)
                wrong += sum(not torch.equal(tensor.float(), expected + step + i)
                             for i, tensor in enumerate(dst.values()))
    return wrong


def test_one_rank_changes() -> None:
    assert run_job(3, rank_changes_alone, 60) == [0, 0, 0]
