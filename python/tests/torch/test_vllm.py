"""Both ends of vLLM's weight transfer, over stubs of vLLM: in one process, with toy models."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
sluice = pytest.importorskip("sluice")

STUBS = str(Path(__file__).parent.parent / "integrations/stubs")


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The adapter, with stubs of vLLM in place of a vLLM that may be installed."""
    def forget() -> None:
        for name in [name for name in sys.modules if name.split(".")[0] == "vllm"
                     or name.startswith("sluice.integrations")]:
            del sys.modules[name]

    forget()
    monkeypatch.syspath_prepend(STUBS)
    monkeypatch.delattr(sluice, "integrations", raising=False)
    from sluice.integrations import vllm as adapter
    yield adapter
    forget()


def model_of(repacked: bool) -> Any:
    """Two layers, one of them fused of q and k, and attention that squares its weights."""
    from vllm.model_executor.layers.linear import UnquantizedLinearMethod
    from vllm.model_executor.layers.quantization.base_config import QuantizeMethodBase
    from vllm.model_executor.model_loader.reload import layerwise

    class Repacks(QuantizeMethodBase):
        def process_weights_after_loading(self, layer: Any) -> None:
            layer.weight = torch.nn.Parameter(layer.weight.t().contiguous() * 2, False)
            layer.held = layer.weight.data_ptr()  # as by a kernel on CPUs

    class Attention(torch.nn.Module):
        def process_weights_after_loading(self, dtype: Any) -> None:
            self.squares = model.qk.weight.to(dtype) ** 2

    model = torch.nn.Module()
    model.qk, model.attention = torch.nn.Linear(3, 4, bias=False), Attention()
    model.qk.requires_grad_(False)
    model.qk.quant_method = UnquantizedLinearMethod()
    model.layers = torch.nn.ModuleList([torch.nn.Linear(3, 6, bias=False) for _ in range(2)])
    model.layers.requires_grad_(False)
    for layer in model.layers:
        layer.quant_method = Repacks() if repacked else UnquantizedLinearMethod()
    layerwise.record_metadata_for_reloading(model)
    for layer in model.layers:
        layer.quant_method.process_weights_after_loading(layer)
    model.attention.process_weights_after_loading(torch.float32)

    def load_weights(weights: Any) -> None:
        for name, tensor in weights:
            if name in ("q", "k"):
                begin = 0 if name == "q" else 2
                model.qk.weight.data.narrow(0, begin, 2).copy_(tensor)
            elif name.startswith("layers."):
                model.get_submodule(name).weight.data.copy_(tensor)

    model.load_weights = load_weights
    return model


class Engine:
    """A server of one worker, as a client sees it. All calls come on one thread."""

    def __init__(self, repacked: bool = False, **config: Any) -> None:
        from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
        self.model = model_of(repacked)
        self.parameters = list(self.model.parameters())
        self.addresses = [one.data_ptr() for one in self.parameters]
        vllm_config = SimpleNamespace(
            parallel_config=SimpleNamespace(enable_eplb=config.get("eplb", False)),
            model_config=SimpleNamespace(enable_sleep_mode=config.get("sleep", False),
                                         dtype=torch.float32))
        self.engine = WeightTransferEngineFactory.create_engine(
            SimpleNamespace(backend="sluice"), vllm_config, torch.device("cpu"), self.model)
        self.repacked = repacked
        self.version: str | None = None

    def init_weight_transfer_engine(self, init_info: Any) -> None:
        self.engine.init_transfer_engine(self.engine.parse_init_info(init_info))

    def start_weight_update(self) -> None:
        self.engine.start_weight_update()

    def update_weights(self, update_info: Any) -> None:
        self.engine.update_weights(update_info)

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self.engine.finish_weight_update()
        self.version = weight_version

    def has(self, state: dict[str, Any], version: int) -> bool:
        layers = [state[f"layers.{i}"] for i in range(2)]
        wanted = [torch.cat([state["q"], state["k"]]),
                  *(one.t() * 2 if self.repacked else one for one in layers)]
        found = list(self.model.parameters())
        return (self.version == str(version) and self.engine.version == version
                and all(one is other for one, other in zip(found, self.parameters))
                and self._lies_well([one.data_ptr() for one in found])
                and all(torch.equal(a, b) for a, b in zip(wanted, found))
                and torch.equal(self.model.attention.squares, found[0] ** 2))

    def _lies_well(self, addresses: list[int]) -> bool:
        if not self.repacked:
            return addresses == self.addresses
        from sluice.integrations import _vllm_layers
        if _vllm_layers._BY_ADDRESS:
            return addresses == [self.addresses[0], *(one.held for one in self.model.layers)]
        return addresses == self.addresses


def state() -> dict[str, Any]:
    return {"q": torch.rand(2, 3), "k": torch.rand(2, 3), "layers.0": torch.rand(6, 3),
            "layers.1": torch.rand(6, 3)}


def renew(tensors: dict[str, Any]) -> None:
    for one in tensors.values():
        one.copy_(torch.rand(one.shape))


def trainer(vllm: Any, client: Any, source: Any, **more: Any) -> Any:
    from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory
    return WeightTransferTrainerFactory.trainer_init(
        vllm.SluiceTrainerInitInfo(rank=0, **{"timeout": 30, **more}), client=client, source=source)


@pytest.mark.parametrize("repacked, is_gpu", [(False, False), (True, False), (True, True)])
def test_versions_come_in_place_and_staged(vllm: Any, monkeypatch: pytest.MonkeyPatch,
                                           repacked: bool, is_gpu: bool) -> None:
    if is_gpu:
        monkeypatch.setattr("sluice.integrations._vllm_layers._BY_ADDRESS", ())
    engine, source = Engine(repacked), state()
    sender = trainer(vllm, engine, source)
    for version in (1, 2, 3):
        renew(source)
        sender.send_weights()
        assert engine.has(source, version)
    source["q"] = torch.rand(2, 3)  # other memory
    sender.send_weights()
    assert engine.has(source, 4)
    sender.shutdown()
    engine.engine.shutdown()
    with pytest.raises(sluice.InvalidSpec, match="was shut down"):
        sender.send_weights()


def test_modules_and_sources_are_read(vllm: Any) -> None:
    from vllm.distributed.weight_transfer.base import ModuleSource, ParamMeta, WeightSource
    tensors = state()

    class Stream(WeightSource):  # type: ignore[misc]
        def metadata(self) -> Any:
            return [ParamMeta(name, one.dtype, one.shape) for name, one in tensors.items()]

        def __iter__(self) -> Any:
            return iter(tensors.items())

    module = torch.nn.Module()
    module.layers = torch.nn.ParameterList([tensors["layers.0"], tensors["layers.1"]])
    module.q, module.k = (torch.nn.Parameter(tensors[name]) for name in "qk")
    for source in (module, ModuleSource(module), vllm.SluiceModuleSource(module), Stream(),
                   sluice.into(tensors), dict(tensors)):
        engine = Engine()
        sender = trainer(vllm, engine, source)
        renew(tensors)
        if not isinstance(source, (Stream, dict)) and hasattr(source, "named_parameters"):
            tensors.update({"q": module.q.data, "k": module.k.data})
        sender.send_weights()
        assert engine.has({name: one.detach() for name, one in tensors.items()}, 1), source
        sender.shutdown()


def test_an_engine_that_fails_is_left_out_and_comes_back(vllm: Any) -> None:
    first, second, source = Engine(), Engine(True), state()
    clients = vllm.Engines(first, second)
    sender = trainer(vllm, clients, source)
    sender.send_weights()
    assert first.has(source, 1) and second.has(source, 1)

    def fail(version: int) -> None:
        raise MemoryError("planted")

    second.engine._placement.receive = fail
    renew(source)
    sender.send_weights()
    assert first.has(source, 2) and clients.clients == [first] and second.version == "1"
    clients.add(second)
    renew(source)
    sender.send_weights()
    assert first.has(source, 3) and second.has(source, 3)
    third = Engine()
    clients.add(third)
    sender.send_weights()
    assert all(one.has(source, 4) for one in (first, second, third))


@pytest.mark.parametrize("call", ["start_weight_update", "update_weights",
                                  "finish_weight_update"])
def test_an_engine_whose_client_fails_holds_up_nobody(vllm: Any, call: str) -> None:
    first, second, source = Engine(), Engine(), state()
    clients = vllm.Engines(first, second)
    sender = trainer(vllm, clients, source)
    own = getattr(second, call)

    def fail(*given: Any) -> None:
        setattr(second, call, own)
        if call == "update_weights":
            own(*given)
        raise BaseException("503")

    setattr(second, call, fail)
    for version in (1, 2):
        renew(source)
        sender.send_weights()
        assert first.has(source, version) and clients.clients == [first]
    clients.add(second)
    sender.send_weights()
    assert first.has(source, 3) and second.has(source, 3)


def test_an_engine_that_does_not_answer_is_named(vllm: Any) -> None:
    engine, source, over = Engine(), state(), threading.Event()
    sender = trainer(vllm, engine, source, timeout=2)
    engine.start_weight_update = lambda: over.wait(30)  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(sluice.Timeout, match="start_weight_update of engine .* not returned"):
            sender.send_weights()
    over.set()
    sender.send_weights()
    assert engine.has(source, 1)


def test_a_layer_whose_repacking_fails_has_its_memory_back(vllm: Any) -> None:
    engine, source = Engine(True), state()
    sender = trainer(vllm, engine, source, timeout=15)
    method = engine.model.layers[0].quant_method
    own = type(method).process_weights_after_loading

    def fail(self: Any, layer: Any) -> None:
        type(method).process_weights_after_loading = own
        raise MemoryError("planted")

    type(method).process_weights_after_loading = fail
    with pytest.raises(sluice.Error, match="planted"):
        sender.send_weights()
    assert engine.addresses == [one.data_ptr() for one in engine.model.parameters()]
    sender.send_weights()
    assert engine.has(source, 2)


def test_sources_that_lose_tensors_or_bring_others(vllm: Any) -> None:
    from vllm.distributed.weight_transfer.base import ModuleSource
    source = {**state(), "layers.2": torch.rand(0, 3)}  # nobody takes what has no elements
    engine = Engine()
    sender = trainer(vllm, engine, source)
    sender.send_weights()
    assert engine.has(source, 1)
    source["q"] = source["q"].clone()
    del source["k"]
    with pytest.raises(sluice.InvalidSpec, match="had 'k' at the start"):
        sender.send_weights()

    class Doubled(ModuleSource):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return ((name, one * 2) for name, one in self._module.named_parameters())

    tensors = state()
    module = torch.nn.Module()
    module.layers = torch.nn.ParameterList([tensors["layers.0"], tensors["layers.1"]])
    module.q, module.k = (torch.nn.Parameter(tensors[name]) for name in "qk")
    engine = Engine()
    trainer(vllm, engine, Doubled(module)).send_weights()
    assert engine.has({name: one * 2 for name, one in tensors.items()}, 1)


def test_boxes_are_counted_once(vllm: Any) -> None:
    from sluice.integrations._vllm_worker import _covered
    rng = random.Random(4)
    for _ in range(200):
        shape = [rng.randint(1, 5) for _ in range(rng.randint(1, 3))]
        boxes, cells = set(), set()
        for _ in range(rng.randint(0, 5)):
            begin = tuple(rng.randrange(n) for n in shape)
            size = tuple(rng.randint(1, n - b) for n, b in zip(shape, begin))
            boxes.add((begin, size))
            cells.update(itertools.product(*(range(b, b + n) for b, n in zip(begin, size))))
        assert _covered(boxes) == len(cells)


def test_the_only_engine_that_fails_takes_the_next_version(vllm: Any) -> None:
    engine, source = Engine(True), state()
    sender = trainer(vllm, engine, source, timeout=15)
    closing = engine.engine._placement._layers.close

    def fail(layer: Any) -> None:
        engine.engine._placement._layers.close = closing
        raise MemoryError("planted")

    engine.engine._placement._layers.close = fail
    with pytest.raises(sluice.Error, match="planted"):
        sender.send_weights()
    assert engine.engine.version is None and engine.version is None
    renew(source)
    sender.send_weights()
    assert engine.has(source, 2)


@pytest.mark.parametrize("change, says", [
    ({"nobody": (2, 2)}, "ignores 'nobody'"),
    ({"layers.0": (7, 3)}, "layers.0"),
    ({"q": (3, 3)}, "'q'"),
])
def test_what_does_not_fit_is_refused_at_the_start(vllm: Any, change: Any, says: str) -> None:
    source = state()
    source.update({name: torch.rand(shape) for name, shape in change.items()})
    with pytest.raises(Exception, match=says):
        trainer(vllm, Engine(), source)


@pytest.mark.parametrize("all_fall_back", [False, True])
def test_what_the_loader_computes_goes_through_it_into_open_layers(vllm: Any,
                                                                   all_fall_back: bool) -> None:
    class Computes(Engine):
        def __init__(self) -> None:
            super().__init__(True)
            load = self.model.load_weights

            def load_weights(weights: Any) -> None:
                for name, tensor in weights:
                    if all_fall_back and name == "q":
                        tensor.sum().item()
                    load([(name, tensor * 3 if name == "layers.1" else tensor)])

            self.model.load_weights = load_weights

    engine, source = Computes(), state()
    sender = trainer(vllm, engine, source)
    placement = engine.engine._placement
    assert set(placement.captured.fallback) == (set(source) if all_fall_back else {"layers.1"})
    for version in (1, 2):
        renew(source)
        sender.send_weights()
        assert engine.has({**source, "layers.1": source["layers.1"] * 3}, version)


def test_a_layer_that_is_repacked_is_sent_whole_or_not_at_all(vllm: Any) -> None:
    class Halves(Engine):
        """The loader takes each layer as two tensors."""

        def __init__(self) -> None:
            super().__init__(True)
            load = self.model.load_weights

            def load_weights(weights: Any) -> None:
                for name, tensor in weights:
                    if name.startswith("half."):
                        _, i, which = name.split(".")
                        weight = self.model.layers[int(i)].weight
                        weight.data.narrow(0, 3 * int(which), 3).copy_(tensor)
                    else:
                        load([(name, tensor)])

            self.model.load_weights = load_weights

    source = state()
    del source["layers.1"]  # it keeps what it has
    parts = {f"half.0.{i}": source["layers.0"][3 * i:3 * i + 3] for i in range(2)}
    del source["layers.0"]
    engine = Halves()
    with pytest.raises(Exception, match=r"9 of the 18 elements of 'layers.0.weight'"):
        trainer(vllm, engine, {**source, "half.0.0": parts["half.0.0"]})
    before = list(engine.model.parameters())[2].clone()
    sender = trainer(vllm, engine, {**source, **parts})
    sender.send_weights()
    whole = torch.cat(list(parts.values()))
    assert engine.has({**source, "layers.0": whole, "layers.1": before.t() / 2}, 1)


def test_what_vllm_cannot_keep_still_is_refused(vllm: Any) -> None:
    for config, says in ({"eplb": True}, "enable_eplb"), ({"sleep": True}, "enable_sleep_mode"):
        with pytest.raises(sluice.Unsupported, match=says):
            trainer(vllm, Engine(**config), state())
    with pytest.raises(sluice.InvalidSpec, match="source is None"):
        trainer(vllm, Engine(), None)
    with pytest.raises(sluice.InvalidSpec, match="no tensors"):
        trainer(vllm, Engine(), {})
    with pytest.raises(sluice.InvalidSpec, match="can be read once"):
        trainer(vllm, Engine(), iter(state().items()))


def test_other_versions_and_no_cards_are_refused(vllm: Any,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    from sluice.integrations._fleet import Card
    engine = Engine()
    given = {"trainers": 1, "names": ["q"], "shapes": [[2, 3]], "dtypes": ["f32"]}
    secret = "5ecret"
    for card, says in (({}, "no urls"), ({"urls": ["tcp://x:1"], "token": secret}, "has Sluice"),
                       ({"urls": [], "token": secret}, "no urls")):
        with pytest.raises(sluice.Error, match=says) as raised:
            engine.init_weight_transfer_engine({**given, "card": card})
        assert secret not in str(raised.value)
    info = engine.engine.parse_init_info({**given, "card": {"token": secret}})
    assert secret not in repr(info) and secret not in repr(Card(["tcp://x:1"], secret))
    with pytest.raises(sluice.InvalidSpec, match="has not called init_weight_transfer_engine"):
        engine.update_weights({"version": 1})


def test_the_entry_point_is_light(tmp_path: Path) -> None:
    """`register` imports neither PyTorch nor an end of the transfer."""
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import sluice.integrations.vllm as one; "
            "one.register(); heavy = [name for name in sys.modules if name == 'torch' or "
            "'_vllm_' in name]; assert not heavy, heavy; "
            "from vllm.distributed.weight_transfer.factory import *; "
            "assert 'sluice' in WeightTransferEngineFactory._registry; "
            "assert 'sluice' in WeightTransferTrainerFactory._registry; "
            "one.register(); import vllm.model_executor.model_loader as loaders; "
            "assert list(loaders._LOAD_FORMAT_TO_MODEL_LOADER) == ['sluice']")
    subprocess.run([sys.executable, "-c", code, STUBS], check=True, timeout=60, cwd=tmp_path)
