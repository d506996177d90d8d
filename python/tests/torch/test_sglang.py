"""SGLang's weight updates in place: servers of several ranks, and sharded trainers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.6")

import sluice  # noqa: E402
from host_ranks import RANK, gather, use_stubs  # noqa: E402
from torch_ranks import free_port, run_job, same_bytes  # noqa: E402

TRAINERS, TP, SERVERS = 2, 2, 3  # the second server has one rank alone
WIDTH, HIDDEN = 6, 8
GROUP = "weight_update_group"


def checkpoint(seed: int) -> dict[str, Any]:
    """Tensors as a checkpoint has them, and the trainers."""
    torch.manual_seed(seed)
    made = {}
    for layer in range(3):
        for name in ("q", "k"):
            made[f"{layer}.{name}.weight"] = torch.randn(HIDDEN, WIDTH).bfloat16()
        made[f"{layer}.norm.weight"] = torch.randn(WIDTH)
    made["scale"] = torch.randn(())
    made["unknown.to.servers"] = torch.randn(5)
    return made


class Engine(torch.nn.Module):
    """A model with q and k in one parameter, cut over `size` ranks."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        self.rank, self.size = rank, size
        self.posts = 0
        self.derived: str | None = None
        rows = HIDDEN // size
        self.qk = torch.nn.ParameterList(torch.zeros(2 * rows, WIDTH, dtype=torch.bfloat16)
                                         for _ in range(3))
        self.norm = torch.nn.ParameterList(torch.zeros(WIDTH) for _ in range(3))
        self.scale = torch.nn.Parameter(torch.zeros(()))
        self.twice = torch.nn.Parameter(torch.zeros(()))

    def load_weights(self, pairs: Any) -> None:
        rows = HIDDEN // self.size
        for name, tensor in pairs:
            if name == "scale":
                self.scale.data.copy_(tensor)
                self.twice.data.copy_(tensor * 2)
                continue
            layer, _, rest = name.partition(".")
            if rest.startswith("norm"):
                self.norm[int(layer)].data.copy_(tensor)
            elif rest[:1] in ("q", "k"):
                place = self.qk[int(layer)].data.narrow(0, rows * "qk".index(rest[0]), rows)
                place.copy_(tensor.narrow(0, rows * self.rank, rows))

    def post_load_weights(self) -> None:
        self.posts += 1

    def problems(self, seed: int) -> list[str]:
        """Of this engine, beside one that the loader has filled."""
        expected = Engine(self.rank, self.size)
        expected.load_weights(checkpoint(seed).items())
        return [name for (name, own), (_, other) in
                zip(self.named_parameters(), expected.named_parameters())
                if not same_bytes(own, other)]


class Server:
    """One rank of SGLang's servers."""

    def __init__(self, rank: int) -> None:
        use_stubs()
        from sglang.srt.plugins.hook_registry import HookRegistry
        from sluice.integrations.sglang import register

        register()
        HookRegistry.apply_hooks()
        from sglang.srt.model_executor.model_runner_components.weight_updater import WeightUpdater

        self.server = int(rank >= TP)
        self.tp_rank = rank - TP * self.server
        self.model = Engine(self.tp_rank, 1 if self.server else TP)
        self.arguments = SimpleNamespace(speculative_algorithm=None)
        runner = SimpleNamespace(server_args=self.arguments)
        self.updater = WeightUpdater(tp_rank=self.tp_rank, device="cpu",
                                     get_model=lambda: self.model, get_model_runner=lambda: runner)

    def init(self, request: dict[str, Any]) -> tuple[bool, str]:
        order = ("master_address", "master_port", "rank_offset", "world_size", "group_name",
                 "backend")
        done: tuple[bool, str] = self.updater.init_weights_update_group(
            *(request[name] for name in order))
        return done


def shard(state: dict[str, Any], rank: int) -> dict[str, Any]:
    """This trainer's part: tensors are cut by rows, but for scalars."""
    layout = sluice.Layout(list(range(TRAINERS)), "S(0)")
    return {name: tensor if not tensor.dim() else
            sluice.Tensor(name, tensor.shape, tensor.dtype, layout,
                          tensor.chunk(TRAINERS)[rank].clone())
            for name, tensor in state.items()}


def rank_trains_or_serves(port: int) -> list[Any]:
    return train(port) if RANK < TRAINERS else serve(RANK - TRAINERS)


def train(port: int) -> list[Any]:
    from sluice.integrations.sglang import Trainers

    problems: list[str] = []
    trainers = Trainers("127.0.0.1", port, rank=RANK, size=TRAINERS, servers=SERVERS, timeout=120)
    gather("init", [trainers.init_request(1), trainers.init_request(1 + TP)])
    trainers.connect()
    for update in range(1, 4):
        state = shard(checkpoint(update), RANK)
        gather(f"update {update}", trainers.update_request(state))
        trainers.send(state)
    # Fewer tensors, and other ones.
    state = {name: value for name, value in state.items() if name.startswith("1.")}
    gather("update 4", trainers.update_request(state))
    trainers.send(state)
    # A server's loader fails.
    gather("update 5", {**trainers.update_request(state), "names": ["1.q.weight"] * 3})
    error = ""
    try:
        trainers.send(state)
    except sluice.Error as raised:
        error = str(raised)
    # Once more, with requests of their own.
    gather("init again", [trainers.init_request(1), trainers.init_request(1 + TP)])
    trainers.connect()
    state = shard(checkpoint(6), RANK)
    gather("update 6", trainers.update_request(state))
    trainers.send(state)
    gather("the end", None)
    trainers.close()
    return [problems, error]


def serve(rank: int) -> list[Any]:
    server = Server(rank)
    updater, model = server.updater, server.model
    problems: list[str] = []
    # All else goes SGLang's own way.
    own = updater.init_weights_update_group("h", 1, 1, 2, "other", "nccl")
    if own != (True, "SGLang's own way to other by nccl"):
        problems.append(f"init: {own}")
    received = updater.receive_weights_from_distributed(names=[], dtypes=[], shapes=[],
                                                        group_name="other")
    if received != ["SGLang's own way by other"]:
        problems.append(f"receive: {received}")
    if updater.destroy_weights_update_group("other")[1] != "SGLang's own way from other":
        problems.append("destroy")

    def init(what: str) -> None:
        done = server.init(gather(what, None, range(1))[0][server.server])
        if done != (True, "Joined the trainers by Sluice."):
            problems.append(f"{what}: {done}")

    server.arguments.speculative_algorithm = "EAGLE"
    request = {"master_address": "127.0.0.1", "master_port": 1, "rank_offset": 1, "world_size": 4,
               "group_name": GROUP, "backend": "sluice"}
    refused = [server.init(request)]
    server.arguments.speculative_algorithm = None
    init("init")
    for update in range(1, 5):
        if update == 3:  # as where SGLang has put weights elsewhere meanwhile
            model.qk[0].data = torch.zeros_like(model.qk[0].data)
        asked = gather(f"update {update}", None, range(1))[0]
        if updater.receive_weights_from_distributed(**asked) != []:
            problems.append("tensors are left to load")
        problems += [f"update {update}: {name}" for name in model.problems(min(update, 3))]
    posts = model.posts
    error = ""
    try:
        updater.receive_weights_from_distributed(**gather("update 5", None, range(1))[0])
    except Exception as raised:  # noqa: BLE001 - the test looks at its text
        error = f"{type(raised).__name__}: {raised}"
    init("init again")
    problems += [f"refused: {text}" for text in refusals(server)]
    updater.receive_weights_from_distributed(**gather("update 6", None, range(1))[0])
    problems += [f"update 6: {name}" for name in model.problems(6)]
    if updater.destroy_weights_update_group(GROUP)[0] is not True:
        problems.append("destroy of ours")
    gather("the end", None)
    return [problems, error, posts, refused]


def refusals(server: Server) -> list[str]:
    """What is refused before anything is written; nothing of it may reach the others."""
    from sluice.integrations import sglang

    wrong = []
    for load_format, derived, wanted in (("flattened_bucket", None, "load_format is"),
                                         (None, "there is a cache", "there is a cache")):
        server.model.derived = derived
        try:
            sglang._refuse_update(server.updater, load_format)
            wrong.append("nothing")
        except sluice.Unsupported as error:
            if wanted not in str(error):
                wrong.append(str(error))
    server.model.derived = None
    return wrong


def test_updates_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_TOKEN", "a secret of the test's")
    ends = run_job(TRAINERS + SERVERS, rank_trains_or_serves, free_port())
    for rank, end in enumerate(ends):
        problems, error, *more = end
        assert problems == []
        assert "tensor '1.q.weight' is there twice" in error, error
        if rank < TRAINERS:
            assert "ranks 2-4" in error, error
            continue
        posts, refused = more
        assert posts == 4
        assert [done for done, _ in refused] == [False] and "speculative" in refused[0][1]
