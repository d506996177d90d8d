"""Tensors that move into memory of the node, and back, with all that refers to them."""

from __future__ import annotations

import gc
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

import sluice  # noqa: E402
from torch_ranks import gloo_session, run_job, same_bytes  # noqa: E402


def mapping_of(address: int) -> str:
    """The name of the mapping that has the address."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            begin, end = (int(each, 16) for each in line.split()[0].split("-"))
            if begin <= address < end:
                return line.partition(" 00:")[2]
    return ""


class Tied(torch.nn.Module):  # type: ignore[misc]
    """Parameters that are one, that share a storage, and with strides; and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        whole = torch.arange(24, dtype=torch.bfloat16).reshape(4, 6)
        self.upper = torch.nn.Parameter(whole[:2])
        self.lower = torch.nn.Parameter(whole[2:].t())
        self.first = torch.nn.Linear(3, 5)
        self.second = self.first
        self.register_buffer("steps", torch.tensor(7))
        self.empty = torch.nn.Parameter(torch.empty(0, 3))


def test_all_of_a_module_is_the_same_elsewhere(session: sluice.Session) -> None:
    model, twin = Tied(), Tied()
    twin.load_state_dict(model.state_dict())
    held = {name: (one, one.stride(), one.storage_offset(), one.data_ptr())
            for name, one in model.named_parameters()}
    assert session.share(model) is model
    for name, one in model.named_parameters():
        before = held[name]
        assert one is before[0] and (one.stride(), one.storage_offset()) == before[1:3]
        assert one.numel() == 0 or one.data_ptr() != before[3]
        assert same_bytes(one, twin.get_parameter(name)), name
    assert int(model.steps) == 7
    storages = model.upper.untyped_storage(), model.lower.untyped_storage()
    assert storages[0].data_ptr() == storages[1].data_ptr()
    model.first(torch.ones(2, 3)).sum().backward()
    torch.optim.SGD(model.parameters(), 0.1).step()
    assert not torch.equal(model.first.weight, twin.first.weight)
    addresses = [one.data_ptr() for one in model.parameters()]
    session.share(model)  # it is there already
    assert [one.data_ptr() for one in model.parameters()] == addresses
    values = [one.detach().clone() for one in model.parameters()]
    session.unshare(model)
    for one, address, value in zip(model.parameters(), addresses, values):
        assert same_bytes(one.detach(), value)
        assert one.numel() == 0 or one.data_ptr() != address
    session.unshare(model)  # nothing to do


def test_memory_lives_as_long_as_its_tensors() -> None:
    with sluice.Session.from_exchange(0, 1, lambda own: [own]) as session:
        tensors = session.share({"a": [torch.full((1000,), 3.0)], "b": torch.ones(8)})
    gc.collect()
    tensors["a"][0].add_(1)
    assert tensors["a"][0].sum() == 4000 and tensors["b"].sum() == 8
    tensors.pop("a")
    gc.collect()
    assert tensors["b"].sum() == 8


def _viewed(one: Any) -> Any:
    return one[1:]


def _saved(one: Any) -> Any:
    return (torch.ones_like(one, requires_grad=True) * one).sum()


@pytest.mark.parametrize("hold", [
    _viewed, lambda one: one.__dlpack__(), _saved, lambda one: torch.nn.Parameter(one)])
def test_memory_that_others_hold_stays(session: sluice.Session, hold: Any) -> None:
    one, other = torch.arange(4.0), torch.ones(2)
    addresses = one.data_ptr(), other.data_ptr()
    held = hold(one)
    with pytest.raises(sluice.Unsupported, match="something else holds the memory of 'b.0'"):
        session.share({"a": other, "b": [one]})
    assert (one.data_ptr(), other.data_ptr()) == addresses
    del held
    session.share([one, other])
    held = hold(one)
    with pytest.raises(sluice.Unsupported, match="something else"):
        session.unshare([other, one])
    del held
    session.unshare([other, one])
    assert one.tolist() == [0, 1, 2, 3]


def test_views_may_be_given_together(session: sluice.Session) -> None:
    one = torch.arange(6.0)
    both = session.share([one, one[2:]])
    both[1].fill_(9)
    assert one.tolist() == [0, 1, 9, 9, 9, 9]


@pytest.mark.parametrize("what, says", [
    (5, "is a int"), ({"a": {"b": "text"}}, "'a.b' is a str"),
    (torch.empty(2, device="meta"), "is on 'meta'"),
    (torch.eye(2).to_sparse(), "sparse"), (torch.ones(2, requires_grad=True) * 2, "give leaves"),
    (torch.nn.Linear(2, 2, device="meta"), "'weight' is on 'meta'"),
    (torch.ones(2, dtype=torch.complex64).conj(), "resolve_conj"),
    (torch.ones(2, dtype=torch.complex64).conj().imag, "resolve_neg"),
    (torch.quantize_per_tensor(torch.ones(3), 0.5, 0, torch.qint8), "quantized"),
    (torch.nested.nested_tensor([torch.ones(2)], layout=torch.strided), "nested"),
    (torch.inference_mode()(torch.ones)(3), "inference mode")])
def test_what_is_no_memory_of_the_host_is_refused(session: sluice.Session, what: Any,
                                                  says: str) -> None:
    first = torch.ones(4)
    address = first.data_ptr()
    with pytest.raises(sluice.Error, match=says):
        session.share({"first": first, **what} if isinstance(what, dict) else [first, what])
    assert first.data_ptr() == address


def test_a_storage_that_was_made_smaller_is_refused(session: sluice.Session) -> None:
    one = torch.ones(8)
    one.untyped_storage().resize_(8)
    with pytest.raises(sluice.InvalidSpec, match="made smaller"):
        session.share(one)


def test_modes_of_the_caller_do_not_matter(session: sluice.Session) -> None:
    model = torch.nn.Linear(3, 3)
    with torch.inference_mode(), torch.device("meta"):
        session.share(model)
    model(torch.ones(1, 3)).sum().backward()
    with torch.inference_mode(), torch.device("meta"):
        session.unshare(model)
    model(torch.ones(1, 3)).sum().backward()


def rank_shares() -> list[Any]:
    """Of two ranks, one at first gives what cannot be shared."""
    with gloo_session() as session:
        model = torch.nn.Linear(64, 64)
        torch.nn.init.constant_(model.weight, session.rank + 1.0)
        view = model.weight[1:] if session.rank else None
        said: list[Any] = []
        try:
            session.share(model)
        except sluice.Unsupported as error:
            said = [str(error), error.ranks]
        del view
        session.share(model if session.rank else [model.weight])
        sources = {"weight": model.weight} if session.rank == 0 else None
        targets = {"weight": model.weight} if session.rank == 1 else None
        for value in (1.0, 5.0):
            if session.rank == 0:
                torch.nn.init.constant_(model.weight, value)
            session.sync(sources, targets)
            assert (model.weight == value).all()
        name = mapping_of(model.weight.data_ptr())
    return [*said, name]


def test_ranks_share_or_none_does() -> None:
    for rank, (said, ranks, name) in enumerate(run_job(2, rank_shares)):
        assert "something else holds the memory of 'weight'" in said, said
        assert list(ranks) == [[1], []][rank]
        assert "sluice" in name, name
