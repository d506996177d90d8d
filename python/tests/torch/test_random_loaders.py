"""Odd loaders at random, captured, against what PyTorch makes of the same loader.

Every element has to be equal, or the capture or the run has to be refused. SLUICE_TEST_SEED repeats
the loaders of a day, and SLUICE_TEST_LOADERS says how many there are.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

import sluice  # noqa: E402

ELEMENTS = 24
SHAPES = [(24,), (4, 6), (6, 4), (2, 3, 4), (1, 2, 3, 4), (3, 1, 8)]
FLOATS = [torch.float32, torch.float32, torch.bfloat16, torch.float16, torch.float64]


class Engine(torch.nn.Module):
    """Parameters of several dtypes; one that is not dense, and one that has two names."""

    def __init__(self, dtypes: list[Any]) -> None:
        super().__init__()

        def param(value: Any) -> Any:
            return torch.nn.Parameter(value, requires_grad=False)

        self.p0 = param(torch.full((4 * ELEMENTS,), -1.0, dtype=dtypes[0]))
        self.p1 = param(torch.full((4 * ELEMENTS,), -2.0, dtype=dtypes[1]))
        self.turned = param(torch.full((ELEMENTS, 2), -3.0, dtype=dtypes[2]).t())
        self.tied = self.p1
        self.register_buffer("part", self.p0.detach()[ELEMENTS:3 * ELEMENTS])
        self.register_buffer("count", torch.zeros(3))

    def bits(self) -> dict[str, Any]:
        return {name: value.detach().contiguous().clone().view(torch.uint8)
                for name, value in self.state_dict().items()}


class Plan:
    """A loader. Called with an engine and pairs, it does the same each time."""

    VIEWS = ["whole", "whole", "t", "narrow", "steps", "flip", "permute", "index"]
    COPIES = ["none"] * 6 + ["clone", "contiguous", "cast", "cast back", "channels_last",
                             "strided", "empty_like"]
    VALUES = ["none"] * 12 + ["times 2", "times number", "times how many", "plus seen", "table",
                              "with the one before", "item", "branch", "int", "noise"]
    OWN = ["none"] * 14 + ["fill row", "clear behind", "double it", "double p1", "count", "tie",
                           "clear another", "look"]
    WAYS = ["copy"] * 12 + ["add_", "set", "scratch", "twice", "index_put", "foreach", "data",
                            "caught", "if seen", "kept"]

    def __init__(self, draw: random.Random) -> None:
        self.names = [f"t{i}" for i in range(draw.randint(1, 5))]
        self.dtypes = [draw.choice(FLOATS) for _ in range(3)]
        self.specs = {name: (draw.choice(SHAPES),
                             draw.choice([*FLOATS, torch.float8_e4m3fn, torch.int32]))
                      for name in self.names}
        self.order = draw.choice(["as they come"] * 4 + ["listed", "reversed", "in two passes"])
        self.place = draw.choice(["by name"] * 3 + ["packed", "by number", "from behind"])
        self.begin = draw.choice(["none"] * 6 + ["zero p0", "zero all", "zero count", "add to p0"])
        self.end = draw.choice(["none"] * 8 + ["clear the rest", "double p0", "store how many"])
        odd = draw.choice([0.0, 0.2, 0.6])

        def pick(values: list[str]) -> str:
            return draw.choice(values) if draw.random() < odd else values[0]

        self.acts = {name: [
            (draw.choice(["p0", "p0", "p1", "p1", "part", "turned", "tied"]),
             draw.choice([0, 1, 2, 3, i % 4]), pick(self.VIEWS), pick(self.COPIES),
             pick(self.VALUES), pick(self.OWN), pick(self.WAYS))
            for _ in range(draw.choice([1, 1, 1, 2]))] for i, name in enumerate(self.names)}

    def writes_by_itself(self) -> bool:
        return self.begin != "none" or self.end != "none" or any(
            own != "none" for acts in self.acts.values() for *_, own, _ in acts)

    def __call__(self, engine: Any, pairs: Any) -> None:
        seen: list[Any] = []
        if self.begin == "zero p0":
            engine.p0.zero_()
        elif self.begin == "zero all":
            for param in engine.parameters():
                param.fill_(0)
        elif self.begin == "zero count":
            engine.count.zero_()
        elif self.begin == "add to p0":
            engine.p0.add_(1)
        many = 0
        if self.order != "as they come":
            pairs = list(pairs)
            many = len(pairs)
            if self.order == "reversed":
                pairs.reverse()
        if self.order == "in two passes":
            pairs = [*pairs[::2], *pairs[1::2]]
        for number, (name, tensor) in enumerate(pairs):
            for act in self.acts[name]:
                self._act(engine, number, many, seen, tensor, *act)
            seen.append(tensor)
        if self.end == "clear the rest":
            engine.p0[len(seen) * ELEMENTS:].zero_()
        elif self.end == "double p0":
            engine.p0.mul_(2)
        elif self.end == "store how many":
            engine.count[0] = len(seen)

    def _act(self, engine: Any, number: int, many: int, seen: list[Any], tensor: Any, param: str,
             at: int, view: str, copy: str, value: str, own: str, way: str) -> None:
        at = {"by name": at, "packed": number, "by number": 2 * number,
              "from behind": max(many, 1) - number - 1}[self.place]
        rows = getattr(engine, param).data
        rows = rows if param == "turned" else rows.view(-1, ELEMENTS)
        target = rows[at % rows.shape[0]]

        if view == "t":
            tensor = tensor.transpose(0, -1)
        elif view == "narrow":
            tensor = tensor.narrow(0, 0, max(1, tensor.shape[0] // 2))
        elif view == "steps":
            tensor = tensor[..., ::2]
        elif view == "flip":
            tensor = tensor.flip(0)
        elif view == "permute":
            tensor = tensor.permute(*range(1, tensor.ndim), 0)
        elif view == "index":
            tensor = tensor[torch.arange(tensor.shape[0] - 1, -1, -1)]

        if copy == "clone":
            tensor = tensor.clone()
        elif copy == "contiguous":
            tensor = tensor.contiguous()
        elif copy == "cast":
            tensor = tensor.to(target.dtype)
        elif copy == "cast back":
            tensor = tensor.to(torch.bfloat16).to(torch.float32)
        elif copy == "channels_last" and tensor.ndim == 4:
            tensor = tensor.contiguous(memory_format=torch.channels_last)
            tensor = tensor.as_strided((tensor.numel(),), (1,))
        elif copy == "strided":
            tensor = tensor.clone()
            tensor = tensor.as_strided((tensor.numel(),), (1,))
        elif copy == "empty_like":
            tensor = torch.empty_like(tensor).copy_(tensor)

        if value == "times 2":
            tensor = tensor * 2
        elif value == "times number":
            tensor = tensor.float() * (number + 1)
        elif value == "times how many":
            tensor = tensor.float() / max(many, 1)
        elif value == "plus seen":
            tensor = tensor.float() + 100 * len(seen)
        elif value == "table":
            tensor = tensor.float() * torch.full((), 1.0 + len(seen))
        elif value == "with the one before" and seen:
            tensor = torch.cat([tensor.reshape(-1)[:2].float(), seen[-1].reshape(-1)[2:].float()])
        elif value == "item":
            tensor = tensor.float() * tensor.reshape(-1)[0].item()
        elif value == "branch":
            tensor = tensor if tensor.float().sum() > 0 else -tensor.float()
        elif value == "int":
            tensor = tensor.to(torch.int32)
        elif value == "noise":
            tensor = tensor.float() + engine.count.sum()

        flat = tensor.reshape(-1)
        target = target[:flat.numel()]
        if way == "copy":
            target.copy_(flat)
        elif way == "add_":
            target.add_(flat)
        elif way == "set":
            target[...] = flat
        elif way == "scratch":
            scratch = torch.zeros(flat.shape)
            scratch.copy_(flat)
            target.copy_(scratch)
        elif way == "twice":
            target.copy_(flat)
            target[:2].copy_(flat[2:4])
        elif way == "index_put":
            target[torch.arange(flat.numel())] = flat.to(target.dtype)
        elif way == "foreach":
            torch._foreach_copy_([target], [flat])
        elif way == "data":
            engine.count.data = flat.float()[:3].clone()
        elif way == "caught":
            try:
                target.fill_(flat[0].item())
            except Exception:
                target.copy_(flat)
        elif way == "if seen" and seen:
            target.copy_(flat)
        elif way == "kept":
            engine.__dict__.setdefault("raw", {})[number] = flat
            target.copy_(flat)

        if own == "fill row":
            target[:3].fill_(7)
        elif own == "clear behind":
            rows[at % rows.shape[0]][flat.numel():].zero_()
        elif own == "double it":
            target.mul_(2)
        elif own == "double p1":
            engine.p1.mul_(2)
        elif own == "count":
            engine.count.add_(1)
        elif own == "tie":
            engine.p1[:4].copy_(engine.p0[4:8])
        elif own == "clear another":
            engine.p1[number * 5:number * 5 + 7].zero_()
        elif own == "look":
            target.copy_(target * 1)

    def values(self, seed: int) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(seed)
        return {name: (torch.randn(shape, generator=generator) * 9).to(dtype)
                for name, (shape, dtype) in self.specs.items()}


def outcome(session: Any, seed: int) -> tuple[str, str]:
    """What has become of one loader; and what is wrong, or nothing."""
    draw = random.Random(seed)
    plan = Plan(draw)
    by_meta = draw.random() < 0.3 and not plan.writes_by_itself()
    text = f"SLUICE_TEST_SEED={seed} SLUICE_TEST_LOADERS=1: {vars(plan)}"
    steps = [plan.values(seed), plan.values(seed + 1)][:1 if plan.writes_by_itself() else 2]
    wanted, engine = Engine(plan.dtypes), Engine(plan.dtypes)
    expected = []
    try:
        for values in steps:
            plan(wanted, iter(values.items()))
            expected.append(wanted.bits())
    except Exception:
        return "no loader", ""
    try:
        if by_meta:
            on_meta = Engine(plan.dtypes).to("meta")
            on_meta.tied = on_meta.p1
            captured = sluice.capture(lambda pairs: plan(on_meta, pairs), plan.specs, on_meta)
            captured = captured.bind(engine, lambda pairs: plan(engine, pairs))
        else:
            captured = sluice.capture(lambda pairs: plan(engine, pairs), plan.specs, engine)
        given = {name: value.clone() for name, value in steps[0].items()}
        with session.transfer(given, captured, ignore_unused=True) as transfer:
            for values, right in zip(steps, expected):
                for name, value in values.items():
                    given[name].copy_(value)
                transfer.run()
                got = engine.bits()
                wrong = [name for name in right if not torch.equal(right[name], got[name])]
                if wrong:
                    return "wrong", f"{text}: {wrong} differ; {captured.fallback}"
    except sluice.Error:
        return "refused", ""
    except Exception as error:
        return "wrong", f"{text}: {error!r}"
    known = len(plan.specs) - len(captured.ignored)
    return ("captured" if not captured.fallback else "fall back" if not captured.copies
            else "partly captured" if known else "ignored"), ""


def test_odd_loaders_load_what_they_load_by_themselves(session: sluice.Session) -> None:
    first = int(os.environ.get("SLUICE_TEST_SEED") or time.time() // 86400 * 1000)
    count = int(os.environ.get("SLUICE_TEST_LOADERS") or 400)
    print(f"Loaders from SLUICE_TEST_SEED={first} on.")
    found: Counter[str] = Counter()
    problems = []
    for seed in range(first, first + count):
        what, problem = outcome(session, seed)
        found[what] += 1
        problems += [problem] if problem else []
    print(dict(found))
    assert problems[:5] == [] and found["wrong"] == 0, found
    # A test that captures nothing, or has everything refused, would show little.
    if count >= 100:
        assert all(found[what] * 50 > count for what in ("captured", "partly captured",
                                                         "fall back")), found
        assert found["refused"] * 10 < count and found["no loader"] * 3 < count, found
