"""Loaders as engines have them, captured: the result is what the loader itself has loaded."""

from __future__ import annotations

import copy as copy_module
import random
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

import sluice  # noqa: E402
from random_views import random_view  # noqa: E402
from sluice._capture import capture  # noqa: E402
from sluice._captured import Captured  # noqa: E402
from sluice._errors import InvalidSpec  # noqa: E402
from sluice._layouts import Boxes  # noqa: E402

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INNER, EXPERTS, VOCAB = 24, 6, 2, 4, 12, 3, 29
PAD_TO = 16


class Layer(torch.nn.Module):
    """One rank's part of a decoder layer, and of the embeddings, as an inference engine has it."""

    def __init__(self, rank: int, ranks: int, dtype: Any, device: str = "cpu") -> None:
        super().__init__()
        self.rank, self.ranks = rank, ranks
        self.q = HEADS // ranks * HEAD_DIM
        self.kv_heads = max(1, KV_HEADS // ranks)
        self.kv = self.kv_heads * HEAD_DIM
        self.inner = INNER // ranks
        self.vocab = -(-VOCAB // (PAD_TO * ranks)) * PAD_TO

        def param(*shape: int, of: Any = dtype) -> Any:
            return torch.nn.Parameter(torch.empty(shape, dtype=of, device=device))

        self.embed = param(self.vocab, HIDDEN)
        self.qkv = param(self.q + 2 * self.kv, HIDDEN)
        self.qkv_bias = param(self.q + 2 * self.kv)
        self.o = param(HIDDEN, self.q)
        self.gate_up = param(2 * self.inner, HIDDEN)
        self.down_t = param(self.inner, HIDDEN)
        self.w13 = param(EXPERTS, 2 * self.inner, HIDDEN)
        self.w2 = param(EXPERTS, HIDDEN, self.inner)
        self.norm = param(HIDDEN, of=torch.float32)
        self.conv = param(HIDDEN // ranks, 1, 4)
        self.scale = param(EXPERTS, of=torch.float32)
        self.interleaved = param(self.inner, 2, HIDDEN)
        self.gamma = param(HIDDEN)
        self.register_buffer("table", torch.zeros(5, dtype=torch.int64, device=device))


def checkpoint(dtype: Any) -> dict[str, Any]:
    shapes = {
        "embed.weight": (VOCAB, HIDDEN), "q.weight": (HEADS * HEAD_DIM, HIDDEN),
        "k.weight": (KV_HEADS * HEAD_DIM, HIDDEN), "v.weight": (KV_HEADS * HEAD_DIM, HIDDEN),
        "q.bias": (HEADS * HEAD_DIM,), "k.bias": (KV_HEADS * HEAD_DIM,),
        "v.bias": (KV_HEADS * HEAD_DIM,), "o.weight": (HIDDEN, HEADS * HEAD_DIM),
        "gate.weight": (INNER, HIDDEN), "up.weight": (INNER, HIDDEN),
        "down.weight": (HIDDEN, INNER), "norm.weight": (HIDDEN,), "conv.weight": (HIDDEN, 1, 4),
        "pair.weight": (2 * INNER, HIDDEN), "gamma": (HIDDEN,), "rotary.inv_freq": (4,),
    }
    for e in range(EXPERTS):
        shapes.update({f"experts.{e}.w1": (INNER, HIDDEN), f"experts.{e}.w2": (HIDDEN, INNER),
                       f"experts.{e}.w3": (INNER, HIDDEN), f"experts.{e}.scale": ()})
    made = {}
    for i, (name, shape) in enumerate(shapes.items()):
        count = torch.Size(shape).numel()
        values = (torch.arange(count) * 7 + i * 31) % 251
        made[name] = values.to(dtype).reshape(shape)
    made["table"] = torch.arange(5)
    return made


def load_into(model: Layer, weights: Any) -> None:
    """What an engine's load_weights does, in its ways."""
    rank, ranks = model.rank, model.ranks
    kv_rank = rank // max(1, ranks // KV_HEADS)

    def part(tensor: Any, dim: int, size: int, at: int = rank) -> Any:
        return tensor.narrow(dim, at * size, size)

    for name, loaded in weights:
        if "inv_freq" in name:
            continue
        kind = name.split(".")
        if name == "embed.weight":
            first = rank * model.vocab
            last = min(VOCAB, first + model.vocab)
            rows = loaded.narrow(0, min(first, VOCAB), max(0, last - first))
            model.embed[:rows.shape[0]].data.copy_(rows)
            model.embed[rows.shape[0]:].data.fill_(0)
        elif kind[0] in ("q", "k", "v"):
            param = model.qkv if kind[1] == "weight" else model.qkv_bias
            at, size, own = {"q": (0, model.q, rank), "k": (model.q, model.kv, kv_rank),
                             "v": (model.q + model.kv, model.kv, kv_rank)}[kind[0]]
            target = param.data.narrow(0, at, size)
            source = part(loaded, 0, size, own)
            assert target.shape == source.shape
            target.copy_(source)
        elif name == "o.weight":
            model.o.data.copy_(loaded.chunk(ranks, dim=1)[rank])
        elif kind[0] in ("gate", "up"):
            half = 0 if kind[0] == "gate" else 1
            shard = torch.split(loaded, model.inner, dim=0)[rank]
            model.gate_up.data[half * model.inner:(half + 1) * model.inner] = shard
        elif name == "down.weight":
            model.down_t.data.copy_(loaded.t().contiguous()[rank * model.inner:
                                                            (rank + 1) * model.inner])
        elif kind[0] == "experts":
            e = int(kind[1])
            if kind[2] == "scale":
                model.scale.data[e] = loaded
            elif kind[2] == "w2":
                model.w2.data[e].copy_(part(loaded, 1, model.inner))
            else:
                half = model.w13.data[e].chunk(2)[0 if kind[2] == "w1" else 1]
                half.copy_(part(loaded, 0, model.inner))
        elif name == "conv.weight":
            with torch.no_grad():
                model.conv.copy_(loaded.view(ranks, -1, 1, 4)[rank])
        elif name == "pair.weight":
            rows = loaded.unflatten(0, (2, INNER)).permute(1, 0, 2)
            model.interleaved.data[...] = rows[rank * model.inner:(rank + 1) * model.inner]
        elif name == "norm.weight":
            model.norm.data.copy_(loaded.view(-1).to(loaded.dtype))
        elif name == "gamma":
            model.gamma.data.copy_(loaded + 1)  # no copy: falls back
        elif name == "table":
            model.table.copy_(loaded)
        else:
            raise KeyError(name)


def poison(model: Layer) -> None:
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data.fill_(113)


def apply(captured: Captured, values: dict[str, Any]) -> None:
    """What a transfer does: boxes of the sources into the views, and then the rest."""
    for target in captured.targets:
        source = values[captured.renames.get(target.name, target.name)]
        if not isinstance(target.layout, Boxes):
            target.view.copy_(source)
            continue
        source = source.reshape(target.shape)
        for box in target.layout:
            if isinstance(box.view, torch.Tensor):  # of one that falls back
                box.view.copy_(source)
                continue
            memory, owner = box.view, box.view.owner
            assert memory.shape == box.shape
            at = (memory.ptr - owner.data_ptr()) // owner.element_size() + owner.storage_offset()
            strides = memory.strides or torch.empty(memory.shape, device="meta").stride()
            part = source[tuple(slice(o, o + n) for o, n in zip(box.offset, box.shape))]
            torch.as_strided(owner.detach(), memory.shape, strides, at).copy_(part)
    captured.finish()


def same(one: Layer, other: Layer) -> None:
    theirs = {**dict(other.named_parameters()), **dict(other.named_buffers())}
    for name, tensor in {**dict(one.named_parameters()), **dict(one.named_buffers())}.items():
        assert torch.equal(tensor.data, theirs[name].data), name


@pytest.mark.parametrize("ranks", [1, 2, 6])
@pytest.mark.parametrize("dtypes", [(torch.float32, torch.float32), (torch.bfloat16, torch.float32),
                                    (torch.float32, torch.bfloat16)])
def test_a_captured_loader_loads_what_the_loader_loads(ranks: int, dtypes: Any) -> None:
    own, theirs = dtypes
    values = checkpoint(theirs)
    for rank in range(ranks):
        expected, model = Layer(rank, ranks, own), Layer(rank, ranks, own)
        poison(expected)
        load_into(expected, values.items())
        poison(model)
        captured = capture(lambda weights: load_into(model, weights), values, model)
        assert set(captured.fallback) == {"gamma"}
        assert "add" in captured.fallback["gamma"]
        assert captured.ignored == ["rotary.inv_freq"]
        apply(captured, values)
        same(model, expected)


def test_a_capture_on_meta_is_bound_to_memory() -> None:
    values = checkpoint(torch.float32)
    on_meta = Layer(1, 2, torch.float32, "meta")
    captured = capture(lambda weights: load_into(on_meta, weights), values, on_meta)
    assert all(copy.memory.ptr == 0 for copy in captured.copies)
    model, expected = Layer(1, 2, torch.float32), Layer(1, 2, torch.float32)
    poison(model)
    poison(expected)
    load_into(expected, values.items())
    # The loader of the model that has memory gets what falls back.
    bound = captured.bind(model, lambda weights: load_into(model, weights))
    apply(bound, values)
    assert torch.equal(model.gamma, expected.gamma)
    model.embed.data[VOCAB - model.vocab:] = 0  # the loader's padding is not in the capture
    same(model, expected)
    with pytest.raises(InvalidSpec, match="'embed' was captured with dtype f32"):
        captured.bind(Layer(1, 2, torch.bfloat16))


def one_tensor(load: Any, shape: Any = (4, 6), dtype: Any = torch.float32,
               param: Any = None) -> Captured:
    params = {"p": torch.zeros(4, 6) if param is None else param}
    return capture(lambda weights: [load(params["p"], loaded) for _, loaded in weights],
                   {"w": (shape, dtype)}, params)


@pytest.mark.parametrize("load, reason", [
    (lambda p, w: p.fill_(w[0, 0].item()), "values"),
    (lambda p, w: p.copy_(w.to(torch.bfloat16)), "rounds it to bf16 first"),
    (lambda p, w: p.copy_(w.half().double()), "_to_copy"),
    (lambda p, w: p.copy_(w.to(torch.int32)), "_to_copy"),
    (lambda p, w: p.copy_(w * 2), "mul"),
    (lambda p, w: p.copy_(w.mul_(2)), "mul_"),
    (lambda p, w: p.copy_(torch.cat([w[:2], w[2:]])), "cat"),
    (lambda p, w: p.add_(w), "add_"),
    (lambda p, w: p.copy_(w[torch.tensor([0, 1, 2, 3])]), "index"),
    (lambda p, w: torch.zeros(4, 6).copy_(w), "no parameter"),
    (lambda p, w: torch.empty_like(w).copy_(w), "empty_like"),
    (lambda p, w: p.copy_(w) if w.sum() > 0 else None, "sum"),
    (lambda p, w: p.copy_(torch.tensor(w.tolist())), "values"),
    (lambda p, w: p.copy_(w.view(torch.int32).view(torch.float32)), "view"),
    (lambda p, w: w.narrow(0, 0, 2), "nowhere"),
    (lambda p, w: (p.copy_(w), p[0].copy_(w[1])), "twice"),
    (lambda p, w: setattr(p, "data", w), "replaces the memory of 'p'"),
    (lambda p, w: w.data_ptr(), "values"),
])
def test_what_is_no_copy_falls_back_with_the_reason(load: Any, reason: str) -> None:
    captured = one_tensor(load)
    assert list(captured.fallback) == ["w"]
    assert reason in captured.fallback["w"]
    assert captured.copies == []
    (target,) = captured.targets
    assert target.name == "w" and [box.view.shape for box in target.layout] == [(4, 6)]


@pytest.mark.parametrize("copy", [
    lambda t: t.t().clone(),
    lambda t: t.t().to("cpu", copy=True),
    lambda t: t.t().to(t.dtype, copy=True, memory_format=torch.preserve_format),
    lambda t: t.t().contiguous(),
    lambda t: t.t().clone(memory_format=torch.contiguous_format),
    lambda t: t.view(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
    lambda t: t.view(1, 2, 3, 4).to(memory_format=torch.channels_last, copy=True),
    lambda t: t.view(2, 3, 4).permute(2, 0, 1).clone(),
    lambda t: t.view(2, 3, 4).permute(2, 0, 1)[:, :1].clone(),
    lambda t: t[:, ::2].t().clone(),
    lambda t: t[:1].expand(4, 6).clone(),
    lambda t: copy_module.deepcopy(t.t().detach()),
    lambda t: torch.empty_like(t.t()).copy_(t.t()),
    lambda t: t.t() + 0,
])
def test_copies_keep_the_strides_that_pytorch_gives_them(copy: Any) -> None:
    def by_strides(p: Any, w: Any) -> None:
        made = copy(w)
        p.view(-1)[:made.numel()].copy_(made.as_strided((made.numel(),), (1,)))
        if made.is_contiguous():
            p.view(-1)[24:].fill_(7)

    value = torch.arange(24.0).view(4, 6) + 1
    wanted, param = torch.zeros(5, 6), torch.zeros(5, 6)
    by_strides(wanted, value)
    captured = one_tensor(by_strides, param=param)
    param[:4].zero_()
    apply(captured, {"w": value})
    assert torch.equal(param, wanted)


def test_a_loader_that_catches_errors_falls_back_all_the_same() -> None:
    def load(p: Any, w: Any) -> None:
        try:
            p.fill_(w[0, 0].item())
        except Exception:
            p.copy_(w)

    assert list(one_tensor(load).fallback) == ["w"]


def test_casts_that_do_not_exist_fall_back() -> None:
    captured = one_tensor(lambda p, w: p.copy_(w), dtype=torch.int32)
    assert captured.fallback == {"w": "there is no cast from i32 to f32"}
    captured = one_tensor(lambda p, w: p.copy_(w), dtype="f8e4m3")
    assert captured.fallback == {}


def test_two_sources_of_one_place_fall_back_both_and_keep_their_order() -> None:
    p = torch.zeros(4, 4)

    def load(weights: Any) -> None:
        for name, loaded in weights:
            (p[:, :2] if name == "a" else p[:, 2:] if name == "b" else p[1:2]).copy_(loaded)

    shapes = {"a": ((4, 2), "f32"), "b": ((4, 2), "f32")}
    assert capture(load, shapes, {"p": p}).fallback == {}  # columns interleave in memory
    captured = capture(load, {**shapes, "c": ((1, 4), "f32")}, {"p": p})
    assert set(captured.fallback) == {"a", "b", "c"}
    assert "'p' twice" in captured.fallback["a"]


def _zeroes_first(p: Any, pairs: Any) -> None:
    p.zero_()
    for name, tensor in pairs:
        if name == "a":
            p[:4].copy_(tensor)
        else:
            p[4:].copy_(tensor * 2)


def _copies_on(p: Any, pairs: Any) -> None:
    for name, tensor in pairs:
        if name == "a":
            p[:4].copy_(tensor)
            p[4:].copy_(p[:4])


def _changes(p: Any, pairs: Any) -> None:
    for name, tensor in pairs:
        if name == "a":
            p[:4].copy_(tensor)
            p[2:6].mul_(2)


def _overwrites(p: Any, pairs: Any) -> None:
    for name, tensor in pairs:
        if name == "a":
            p[:4].copy_(tensor)
        else:
            p[1] = tensor[0].item()


@pytest.mark.parametrize("load,falling", [
    (_zeroes_first, {"a": "without the others", "b": "mul"}),
    (_copies_on, {"a": "reads", "b": "with 'a': the loader reads"}),
    (_changes, {"a": "reads", "b": "with 'a': the loader reads"}),
    (_overwrites, {"a": "with 'b': the loader needs its values", "b": "its values"}),
])
def test_what_the_loader_does_by_itself_is_not_lost(session: sluice.Session, load: Any,
                                                    falling: dict[str, str]) -> None:
    sources = {"a": torch.arange(4.0) + 1, "b": torch.arange(4.0) + 10}
    wanted = torch.zeros(8)
    load(wanted, iter(sources.items()))
    param = torch.zeros(8)
    captured = capture(lambda pairs: load(param, pairs), sources, {"p": param})
    assert set(captured.fallback) == set(falling)
    for name, reason in falling.items():
        assert reason in captured.fallback[name]
    for name in captured.ignored:
        del sources[name]
    for _ in range(2):
        param.fill_(-1 if load is _zeroes_first else 0)
        sluice.sync(sources, captured, session=session)
        assert torch.equal(param, wanted)


def test_a_loader_that_needs_values_keeps_its_order(session: sluice.Session) -> None:
    def load(pairs: Any) -> None:
        for name, tensor in pairs:
            if name == "a":
                param[0] = float(tensor[0])
            else:
                (param if name == "b" else other).copy_(tensor)

    param, other = torch.zeros(4), torch.zeros(4)
    sources = {"a": torch.ones(4), "b": torch.full((4,), 2.0), "c": torch.zeros(4)}
    captured = capture(load, sources, {"p": param, "q": other})
    assert set(captured.fallback) == {"a", "b", "c"}
    sluice.sync(sources, captured, session=session)
    assert param.tolist() == [2.0] * 4


def _packs(flat: Any, pairs: Any) -> None:
    offset = 0
    for _, tensor in pairs:
        flat[offset:offset + tensor.numel()].copy_(tensor)
        offset += tensor.numel()


def _packs_doubled(flat: Any, pairs: Any) -> None:
    _packs(flat, ((name, tensor * 2 if name == "b" else tensor) for name, tensor in pairs))


def _packs_what_is_small(flat: Any, pairs: Any) -> None:
    _packs(flat, ((name, tensor) for name, tensor in pairs if name != "b" or tensor.max() < 1e9))


def _fills_rows(flat: Any, pairs: Any) -> None:
    for i, (name, tensor) in enumerate(pairs):
        flat.view(3, 4)[i].copy_(tensor * 3 if name == "b" else tensor)


def _pads_behind(flat: Any, pairs: Any) -> None:
    _packs(flat, pairs)
    flat[10:].zero_()


def _pads_where_it_ends(flat: Any, pairs: Any) -> None:
    end = 0
    for name, tensor in pairs:
        end += 4
        flat["abc".index(name) * 4:][:4].copy_(tensor * 2 if name == "a" else tensor)
    flat[end:].zero_()


@pytest.mark.parametrize("names", ["abc", "bac", "acb", "ab", "ba"])
@pytest.mark.parametrize("load", [_packs, _packs_doubled, _packs_what_is_small, _fills_rows,
                                  _pads_behind, _pads_where_it_ends])
def test_a_loader_that_places_by_what_came_before(load: Any, names: str) -> None:
    sources = {name: torch.arange(4.0) + 10 * (i + 1) for i, name in enumerate(names)}
    wanted, flat = torch.zeros(12), torch.zeros(12)
    load(wanted, iter(sources.items()))
    captured = capture(lambda pairs: load(flat, pairs), sources, {"flat": flat})
    assert load is not _packs or captured.fallback == {}
    flat.zero_()
    apply(captured, sources)
    assert torch.equal(flat, wanted)


class Abc(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for name in "abc":
            setattr(self, name, torch.nn.Parameter(torch.zeros(4), requires_grad=False))


ABC = {name: ((4,), torch.float32) for name in "abc"}


def _by_number(engine: Any, pairs: Any) -> None:
    for i, (name, tensor) in enumerate(pairs):
        getattr(engine, name).copy_(tensor * (i + 1) if name == "b" else tensor)


def _by_what_came(engine: Any, pairs: Any) -> None:
    seen = set()
    for name, tensor in pairs:
        seen.add(name)
        if name == "b":
            tensor = tensor + 100 if "a" in seen else tensor * 1
        getattr(engine, name).copy_(tensor)


def _by_how_many(engine: Any, pairs: Any) -> None:
    given = list(pairs)
    for name, tensor in given:
        getattr(engine, name).copy_(tensor / len(given) if name == "b" else tensor)


def _by_a_table(engine: Any, pairs: Any) -> None:
    given = list(pairs)
    factors = torch.full((4,), float(len(given)))
    for name, tensor in given:
        getattr(engine, name).copy_(factors * tensor if name == "b" else tensor)


def _by_a_neighbour(engine: Any, pairs: Any) -> None:
    before = None
    for name, tensor in pairs:
        if name == "b":
            tensor = tensor.round() * 1 if before else tensor * 1
        getattr(engine, name).copy_(tensor)
        before = tensor.shape


def _doubles_at_b(engine: Any, pairs: Any) -> None:
    for name, tensor in pairs:
        getattr(engine, name).copy_(tensor)
        if name == "b":
            engine.a.mul_(2)


def _clears_at_b(engine: Any, pairs: Any) -> None:
    for name, tensor in pairs:
        getattr(engine, name).copy_(tensor)
        if name == "b":
            engine.a[0].zero_()


def _fills_with_a_count(engine: Any, pairs: Any) -> None:
    for i, (name, tensor) in enumerate(pairs):
        engine.c.fill_(i)
        if name != "c":
            getattr(engine, name).copy_(tensor * 2 if name == "b" else tensor)


def _adds_to_what_is_there(engine: Any, pairs: Any) -> None:
    engine.c.add_(1)
    for name, tensor in pairs:
        if name != "c":
            getattr(engine, name).copy_(tensor * 2 if name == "b" else tensor)


def _reads_and_clears(engine: Any, pairs: Any) -> None:
    factor = engine.c.sum()
    engine.c.zero_()
    for name, tensor in pairs:
        if name != "c":
            getattr(engine, name).copy_(tensor * factor if name == "b" else tensor)


def _clears_by_number(engine: Any, pairs: Any) -> None:
    for i, (name, tensor) in enumerate(pairs):
        if name == "b":
            (engine.c if i == 0 else engine.b)[0].fill_(7)
        if name != "c":
            getattr(engine, name)[1:].copy_(tensor[1:] * 2 if name == "b" else tensor[1:])


def _copies(engine: Any, pairs: Any) -> None:
    for name, tensor in pairs:
        getattr(engine, name).copy_(tensor)


def _doubles_in_a_thread(engine: Any, pairs: Any) -> None:
    def copy() -> None:
        _copies(engine, pairs)
        engine.a.mul_(2)

    thread = threading.Thread(target=copy)
    thread.start()
    thread.join()


def _looks_by_tolist(engine: Any, pairs: Any) -> None:
    _copies(engine, pairs)
    engine.b.fill_(engine.a.tolist()[1])


def _lends_memory(engine: Any, pairs: Any) -> None:
    _copies(engine, pairs)
    lent = engine.a.__dlpack__()
    thread = threading.Thread(target=lambda: torch.from_dlpack(lent).add_(1))
    thread.start()
    thread.join()


def _doubles_each_alike(engine: Any, pairs: Any) -> None:
    engine.c.zero_()
    for name, tensor in pairs:
        if name != "c":
            getattr(engine, name).copy_(tensor * torch.tensor([1, 2, 3, 4]) if name == "b"
                                        else tensor)


@pytest.mark.parametrize("load,falling", [
    (_by_number, "abc"), (_by_what_came, "abc"), (_by_how_many, "abc"), (_by_a_table, "abc"),
    (_by_a_neighbour, "abc"), (_doubles_at_b, "abc"), (_clears_at_b, "abc"),
    (_fills_with_a_count, "abc"), (_adds_to_what_is_there, "abc"), (_reads_and_clears, "abc"),
    (_clears_by_number, "abc"), (_doubles_in_a_thread, "abc"), (_looks_by_tolist, "abc"),
    (_lends_memory, "abc"), (_doubles_each_alike, "b"),
])
def test_a_loader_that_computes_by_what_came_before(load: Any, falling: str) -> None:
    sources = {name: torch.arange(4.0) + 10.25 * (i + 1) for i, name in enumerate("abc")}
    wanted, engine = Abc(), Abc()
    for each in (wanted, engine):
        each.c.fill_(3)
    load(wanted, iter(sources.items()))
    captured = capture(lambda pairs: load(engine, pairs), sources, engine)
    assert "".join(captured.fallback) == falling
    for name in captured.ignored:
        del sources[name]
    apply(captured, sources)
    for name, value in wanted.state_dict().items():
        assert torch.equal(engine.state_dict()[name], value), name


def _replaces(param: Any, tensor: Any) -> None:
    tensor.data = tensor.data.flip(0)
    param.copy_(tensor)


def _replaces_a_clone(param: Any, tensor: Any) -> None:
    clone = tensor.clone()
    clone.data = torch.ones(2, 3)
    param.copy_(clone)


def _turns(param: Any, tensor: Any) -> None:
    tensor.t_()
    param.copy_(tensor.reshape(2, 3))


def _keeps_the_former(param: Any, tensor: Any) -> None:
    param.mul_(0.5)
    param[0].copy_(tensor[1])


@pytest.mark.parametrize("load", [_replaces, _replaces_a_clone, _turns, _keeps_the_former])
def test_a_loader_that_changes_what_it_finds_is_right_in_each_run(load: Any) -> None:
    wanted, engine = torch.ones(2, 3), torch.ones(2, 3)
    captured = capture(lambda pairs: [load(engine, tensor) for _, tensor in pairs],
                       {"a": ((2, 3), "f32")}, {"w": engine})
    assert set(captured.fallback) == {"a"}
    for run in range(3):
        source = torch.arange(6.0).reshape(2, 3) + run
        load(wanted, source.clone())
        apply(captured, {"a": source})
        assert torch.equal(engine, wanted), run


@pytest.mark.parametrize("chain", [
    (torch.float32, torch.bfloat16, torch.bfloat16), (torch.bfloat16, torch.float32, torch.float16),
    (torch.float16, torch.float64, torch.bfloat16), (torch.float32, torch.float64, torch.float32),
])
def test_casts_of_the_loader_that_round_once_are_captured(session: sluice.Session,
                                                          chain: Any) -> None:
    theirs, between, own = chain
    value = torch.randn(64, 64).to(theirs)
    wanted, param = torch.zeros(64, 64, dtype=own), torch.zeros(64, 64, dtype=own)
    load = lambda p, w: p.copy_(w.t().to(between))  # noqa: E731
    load(wanted, value)
    captured = one_tensor(load, (64, 64), theirs, param)
    assert captured.fallback == {}
    sluice.sync({"w": value}, captured, session=session)
    assert torch.equal(param, wanted)


def test_a_loader_that_writes_elsewhere_than_when_it_was_captured_is_refused() -> None:
    at: int | None = 4

    def load(pairs: Any) -> None:
        for name, tensor in pairs:
            if at is not None:
                flat[0 if name == "a" else at:][:4].copy_(tensor if name == "a" else tensor * 2)

    flat = torch.zeros(12)
    sources = {"a": torch.ones(4), "b": torch.ones(4)}
    captured = capture(load, sources, {"flat": flat})
    assert set(captured.fallback) == {"b"}
    apply(captured, sources)
    assert flat.tolist() == [1.0] * 4 + [2.0] * 4 + [0.0] * 4
    at = 6
    with pytest.raises(InvalidSpec, match="'flat' elsewhere than when .* has taken 'b'") as caught:
        apply(captured, sources)
    assert caught.value.tensor == "b" and flat[8:].tolist() == [0.0] * 4
    at = None
    with pytest.raises(InvalidSpec, match="writes 0 times .* when it was captured 1 times"):
        apply(captured, sources)


class Engine(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(4), requires_grad=False)
        self.v = torch.nn.Parameter(torch.zeros(4), requires_grad=False)
        self.register_buffer("start", torch.zeros((), dtype=torch.int64))


def _steers(engine: Engine, pairs: Any) -> None:
    for name, tensor in pairs:
        if name == "start":
            engine.start.copy_(tensor)
        elif name == "w":
            engine.w.copy_(tensor[int(engine.start):][:4])
        else:
            engine.v.copy_(tensor[:4])


def _branches(engine: Engine, pairs: Any) -> None:
    for name, tensor in pairs:
        if name == "start":
            engine.start.copy_(tensor)
        elif engine.start.item() > 0:
            (engine.w if name == "w" else engine.v).copy_(tensor[:4])


def _keeps(engine: Engine, pairs: Any) -> None:
    for name, tensor in pairs:
        if name == "w":
            engine.w.copy_(tensor[:4])
            engine.raw = tensor
        elif name == "v":
            engine.v.copy_(tensor[:4])


def _counts(engine: Engine, pairs: Any) -> None:
    count = 0
    for name, tensor in pairs:
        count += 1
        if name == "w":
            engine.w.copy_(tensor[:4])
        elif name == "v":
            engine.v.copy_(tensor[:4] + 1)
    assert count == 3


def _adds_then_copies(engine: Engine, pairs: Any) -> None:
    weights = dict(pairs)
    if "w" in weights:
        engine.w.add_(weights["w"][:4])
    if "v" in weights:
        engine.w.copy_(weights["v"][:4])


class _Halves(torch.Tensor):  # type: ignore[misc]
    """Stores half of what is copied into it."""

    inner: Any

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func is torch.ops.aten.copy_.default, func
        args[0].inner.copy_(args[1] * 0.5)
        return args[0]


def _halves(engine: Engine, pairs: Any) -> None:
    for name, tensor in pairs:
        if name != "start":
            inner = getattr(engine, name).data
            halves = torch.Tensor._make_subclass(_Halves, inner)
            halves.inner = inner
            halves.copy_(tensor[:4])


def _calls_cond(engine: Engine, pairs: Any) -> None:
    torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (torch.ones(2),))
    for name, tensor in pairs:
        if name != "start":
            getattr(engine, name).copy_(tensor[:4] + (name == "v"))


@pytest.mark.parametrize("load,falling", [
    (_steers, {"start", "w", "v"}), (_branches, {"start", "w", "v"}), (_keeps, {"start", "w", "v"}),
    (_counts, {"start", "w", "v"}), (_adds_then_copies, {"start", "w", "v"}), (_calls_cond, {"w", "v"}),
    (_halves, {"w", "v"}),
])
def test_a_loader_that_does_more_than_copy(session: sluice.Session, load: Any,
                                           falling: set[str]) -> None:
    sources = {"start": torch.tensor(2), "w": torch.arange(8.0) + 1, "v": torch.arange(8.0) + 10}
    wanted, engine = Engine(), Engine()
    load(wanted, iter(sources.items()))
    captured = capture(lambda pairs: load(engine, pairs), sources, engine)
    assert set(captured.fallback) == falling, captured.fallback
    for name in captured.ignored:
        del sources[name]
    sluice.sync(sources, captured, session=session)
    for name, value in wanted.state_dict().items():
        assert torch.equal(engine.state_dict()[name], value), name
    assert load is not _keeps or torch.equal(engine.raw, wanted.raw)


def _linear() -> tuple[Any, Any]:
    """A module, and its loader."""
    module = torch.nn.Linear(4, 4, bias=False)

    def load(pairs: Any) -> None:
        with torch.no_grad():
            for _, tensor in pairs:
                module.weight.copy_(tensor)

    return module, load


def _replaces_data(module: Any) -> None:
    module.weight.data = torch.zeros(4, 4)


def _assigns(module: Any) -> None:
    module.load_state_dict({"weight": torch.zeros(4, 4)}, assign=True)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_casts_to_short_floats_give_what_copy_gives(session: sluice.Session, dtype: str) -> None:
    param = torch.zeros(2 ** 16, dtype=getattr(torch, dtype))
    if torch.tensor(500.0).to(torch.float8_e4m3fn).isnan():
        pytest.skip("this PyTorch does not saturate")
    halves = torch.arange(2 ** 16, dtype=torch.int32).to(torch.uint16)
    for width, sources in (("f16", halves.view(torch.float16)),
                           ("bf16", halves.view(torch.bfloat16)),
                           ("f32", halves.to(torch.int32).bitwise_left_shift(16)
                            .bitwise_or(0x8001).view(torch.float32))):
        wanted = param.clone().copy_(sources)
        captured = capture(lambda pairs: [param.copy_(each) for _, each in pairs],
                           {"w": (param.shape, width)}, {"p": param})
        assert captured.fallback == {}
        session.transfer({"w": sources}, captured).run()
        same = (param.view(torch.uint8) == wanted.view(torch.uint8)) | (
            param.float().isnan() & wanted.float().isnan())
        assert same.all(), (width, sources[~same][:5], param[~same][:5], wanted[~same][:5])


def _casts(module: Any) -> None:
    module.to(torch.float64)


@pytest.mark.parametrize("change", [_replaces_data, _assigns, _casts])
def test_parameters_that_have_other_memory_are_noticed(session: sluice.Session,
                                                       change: Any) -> None:
    module, load = _linear()
    sources = {"w": torch.arange(16.0).view(4, 4)}
    captured = capture(load, sources, module)
    transfer = session.transfer(sources, captured)
    transfer.run()
    for _ in range(2):
        module.weight.detach().zero_()
        sluice.sync(sources, captured, session=session)
        assert torch.equal(module.weight, sources["w"])
    change(module)
    for call in (lambda: session.transfer(sources, captured),
                 lambda: sluice.sync(sources, captured, session=session),
                 lambda: session.load("file:/nowhere", captured)):
        with pytest.raises(InvalidSpec, match="parameter 'weight'") as caught:
            call()
        assert caught.value.tensor == "weight"
    if change is not _casts:
        sluice.sync(sources, captured.bind(module), session=session)
        assert torch.equal(module.weight, sources["w"])


@pytest.mark.parametrize("change", [_replaces_data, _assigns, _casts])
@pytest.mark.parametrize("side", ["captured", "dst", "into", "src"])
def test_a_transfer_notices_parameters_that_have_other_memory(session: sluice.Session, change: Any,
                                                              side: str) -> None:
    module, load = _linear()

    def given() -> Any:
        return {"src": (module, {"weight": other}), "dst": ({"weight": other}, module),
                "into": ({"weight": other}, sluice.into(module)),
                "captured": ({"w": other}, captured)}[side]

    other = torch.arange(16.0).view(4, 4)
    captured = capture(load, {"w": other}, module)
    transfer = session.transfer(*given())
    transfer.run()
    old = module.weight.detach()
    change(module)
    old_before = old.fill_(3).clone()
    for call in (transfer.run, transfer.start):
        with pytest.raises(InvalidSpec, match="'weight'") as caught:
            call()
        assert caught.value.tensor == "weight"
    assert torch.equal(old, old_before)
    if change is not _casts:
        if side == "captured":
            captured = captured.bind(module)
        transfer.rebind(*given())
        other.fill_(5)
        transfer.run()
        assert torch.equal(module.weight, other)


def _turns(module: Any) -> None:
    module.weight.data = module.weight.data.t()


def _becomes_numbers(module: Any) -> None:
    module.weight.data = module.weight.data.view(torch.int32)


@pytest.mark.parametrize("change", [_turns, lambda module: module.weight.t_(), _becomes_numbers])
@pytest.mark.parametrize("side", ["dst", "into", "src"])
def test_a_transfer_notices_parameters_that_lie_another_way(session: sluice.Session, change: Any,
                                                            side: str) -> None:
    module = torch.nn.Linear(4, 4, bias=False).requires_grad_(False)
    other = {"weight": torch.arange(16.0).view(4, 4)}
    src, dst = {"src": (module, other), "dst": (other, module),
                "into": (other, sluice.into(module))}[side]
    transfer = session.transfer(src, dst)
    transfer.run()
    change(module)
    with pytest.raises(InvalidSpec, match="'weight'.*another dtype, shape or stride"):
        transfer.run()


def test_a_transfer_notices_a_part_of_a_module_that_is_replaced(session: sluice.Session) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False)).requires_grad_(False)
    other = torch.arange(16.0).view(4, 4)
    transfer = session.transfer({"0.weight": other}, module)
    for _ in range(2):
        transfer.run()
        assert torch.equal(module[0].weight, other)
        # The same memory in another part is no change.
        part = torch.nn.Linear(4, 4, bias=False).requires_grad_(False)
        part.weight = module[0].weight
        module[0] = part
    module[0] = torch.nn.Linear(4, 4, bias=False).requires_grad_(False)
    with pytest.raises(InvalidSpec, match="'0.weight'"):
        transfer.run()


def test_the_same_copy_twice_is_one() -> None:
    captured = one_tensor(lambda p, w: (p.copy_(w), p.copy_(w)))
    assert captured.fallback == {} and len(captured.copies) == 1


def test_a_list_of_weights_and_an_early_item() -> None:
    params = {str(i): torch.zeros(2) for i in range(5)}

    def load(weights: Any) -> None:
        given = dict(weights)
        for name, loaded in given.items():
            if name in ("1", "3"):
                loaded = loaded.item() if loaded.numel() == 1 else loaded.sum().item()
                params[name].fill_(loaded)
            else:
                params[name].copy_(loaded)

    captured = capture(load, {name: ((2,), "f32") for name in params}, params)
    assert set(captured.fallback) == set(params)
    assert captured.fallback["0"] == "all fall back with '1': the loader needs its values"


@pytest.mark.parametrize("change", [lambda loaded: loaded, lambda loaded: (loaded * 2).contiguous()])
def test_a_parameter_that_the_loader_replaces_has_its_memory_afterwards(change: Any) -> None:
    engine = Abc()

    def load(weights: Any) -> None:
        for name, loaded in weights:
            if name == "a":
                engine.a.data = change(loaded)
            else:
                getattr(engine, name).copy_(loaded)

    address = engine.a.data_ptr()
    captured = capture(load, ABC, engine)
    assert engine.a.data_ptr() == address
    assert list(captured.fallback) == ["a", "b", "c"] and captured.copies == []


@pytest.mark.parametrize("use", [lambda p: p.sum(), lambda p: p.fill_(0), lambda p: p + 1])
def test_a_parameter_that_the_loader_replaces_and_uses_ends_no_process(use: Any) -> None:
    engine = Abc()

    def load(weights: Any) -> None:
        for name, loaded in weights:
            getattr(engine, name).data = loaded.clone()
            use(getattr(engine, name))

    captured = capture(load, ABC, engine)
    assert set(captured.fallback) == set("abc") and "replaces" in captured.fallback["b"]


def test_a_strict_loader_gets_all_tensors_or_none() -> None:
    engine = Abc()

    def load(weights: Any) -> None:
        engine.load_state_dict({name: loaded * 2 if name == "a" else loaded
                                for name, loaded in weights})

    captured = capture(load, ABC, engine)
    assert set(captured.fallback) == set("abc") and "Missing key" in captured.fallback["b"]
    for target in captured.targets:
        for box in target.layout:
            box.view.fill_(1.0)
    captured.finish()
    assert [float(getattr(engine, name)[0]) for name in "abc"] == [2.0, 1.0, 1.0]


def test_a_loader_that_looks_tensors_up_gets_all_or_none() -> None:
    engine = Abc()

    def load(weights: Any) -> None:
        given = dict(weights)
        engine.a.copy_(given["a"] * 2)
        engine.b.copy_(given["b"])
        engine.c.copy_(given["c"])

    captured = capture(load, ABC, engine)
    assert set(captured.fallback) == set("abc") and "KeyError" in captured.fallback["b"]


def test_parameters_as_pairs() -> None:
    engine = Abc()
    captured = capture(lambda weights: _copies(engine, weights), ABC, engine.named_parameters())
    assert [target.name for target in captured.targets] == ["a", "b", "c"]
    assert set(captured.current()) == set("abc")


def test_errors_of_the_loader_are_raised() -> None:
    def load(weights: Any) -> None:
        for name, _ in weights:
            raise KeyError(name)

    with pytest.raises(KeyError, match="w"):
        capture(load, {"w": ((2,), "f32")}, {"p": torch.zeros(2)})


@pytest.mark.parametrize("seed", range(300))
def test_random_views_are_what_pytorch_makes_of_them(seed: int) -> None:
    rng = random.Random(seed)
    shape = tuple(rng.choice([1, 2, 3, 4, 6]) for _ in range(rng.randint(0, 4)))
    values = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    view = random_view(random.Random(seed), values)
    order = list(range(view.ndim))
    rng.shuffle(order)
    memory = torch.full([view.shape[d] + rng.randint(0, 2) for d in order], -1.0)
    inner = memory[tuple(slice(0, view.shape[d]) for d in order)]
    target = inner.permute([order.index(d) for d in range(view.ndim)]) if order else inner

    def load(weights: Any) -> None:
        for _, loaded in weights:
            target.copy_(random_view(random.Random(seed), loaded))

    captured = capture(load, {"w": (shape, torch.float32)}, {"p": memory})
    assert captured.fallback == {}
    apply(captured, {"w": values})
    assert torch.equal(target, view)
    assert (memory == -1).sum() == memory.numel() - view.numel()


class Fused(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = torch.nn.Parameter(torch.empty(6, 4, device="meta"))
        self.norm = torch.nn.Parameter(torch.empty(4, device="meta"))


def test_layers_get_memory_one_after_another() -> None:
    model = torch.nn.ModuleList(Fused() for _ in range(3))
    params = dict(model.named_parameters())

    def load(weights: Any) -> None:
        for name, tensor in weights:
            layer, part = name.split(".")
            if part == "norm":
                params[name].data.copy_(tensor)
            else:
                params[f"{layer}.qkv"].data.narrow(0, 2 * "qkv".index(part), 2).copy_(tensor)

    values = {f"{layer}.{part}": torch.randn((4,) if part == "norm" else (2, 4))
              for layer in range(3) for part in ("q", "k", "v", "norm")}
    captured = sluice.capture(load, values, model)
    assert captured.params_of("1.k") == ["1.qkv"]
    with sluice.Session.local() as session:
        transfer = session.transfer(values, captured, late=True,
                                    window_of=lambda name: int(name.split(".")[0]))
        for _ in range(2):
            held: dict[str, Any] = {}
            done: list[int] = []
            run = transfer.start()
            for event in run.events():
                layer = int(event.tensor.split(".")[0])
                if isinstance(event, sluice.TensorDone):
                    done.append(layer)
                    continue
                assert all(done.count(before) == 4 for before in range(layer))
                for name in captured.params_of(event.tensor):
                    held.setdefault(name, torch.zeros(params[name].shape))
                run.supply(event.tensor, captured.memory_of(event.tensor, held))
            assert sorted(run.whole) == sorted(values)
            for layer in range(3):
                parts = [values[f"{layer}.{part}"] for part in "qkv"]
                assert torch.equal(held[f"{layer}.qkv"], torch.cat(parts))
                assert torch.equal(held[f"{layer}.norm"], values[f"{layer}.norm"])
        run = transfer.start()
        event = next(run.events())
        (name,) = captured.params_of(event.tensor)
        own = {name: torch.zeros(params[name].shape)}
        memory = captured.memory_of(event.tensor, own)
        own[name].data = torch.zeros(params[name].shape)
        with pytest.raises(sluice.InvalidSpec, match="other memory than when memory_of"):
            run.supply(event.tensor, memory)
        run.cancel()
        with pytest.raises(sluice.Cancelled):
            run.wait()
    with pytest.raises(sluice.InvalidSpec, match="'1.qkv': it has no memory"):
        captured.memory_of("1.k")
    with pytest.raises(sluice.InvalidSpec, match="no destination 'nobody'"):
        captured.memory_of("nobody")
