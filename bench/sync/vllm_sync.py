"""Updates of a model, from two trainers to a vLLM engine of two workers, in turns.

They go by Sluice, and by packed broadcasts over gloo with vLLM's own loader.

usage: vllm_sync.py ROUNDS GIB CHUNK_MIB,...    in the environment of scripts/test_vllm.sh

Prints a line of JSON for each turn. Every element that a worker holds is compared after each turn.
"""
import json
import os
import pathlib
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python/tests/vllm"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))

import engine as engines  # noqa: E402  after the folder is known

TRAINERS, WORKERS = 2, 2
RESULT = "result: "


def config(gib):
    """Of a Llama with about so many GiB of bf16."""
    layers = max(1, round((gib * 2**30 / 2 - 2 * 32000 * 2048) / 45.1e6))
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048,
            "intermediate_size": 5632, "num_hidden_layers": layers, "num_attention_heads": 32,
            "num_key_value_heads": 8, "vocab_size": 32000, "rms_norm_eps": 1e-6,
            "max_position_embeddings": 128, "tie_word_embeddings": False, "dtype": "bfloat16",
            "bos_token_id": 1, "eos_token_id": 2}


def shapes_of(model):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    with torch.device("meta"):
        made = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(model),
                                                dtype=torch.bfloat16)
    return {name: list(one.shape) for name, one in made.named_parameters()}


class Group:
    """gloo over rank 0 of the trainers and all workers, beside the groups that these have."""

    def __init__(self, path, rank):
        import datetime

        import torch.distributed as dist
        store = dist.PrefixStore("weights", dist.FileStore(path, 1 + WORKERS))
        self._group = dist.ProcessGroupGloo(store, rank, 1 + WORKERS,
                                            datetime.timedelta(seconds=600))

    def broadcast(self, tensor):
        self._group.broadcast(tensor, 0).wait()


class Worker:
    """What vLLM's workers do beside their own calls: an extension of theirs."""

    def join_gloo(self, path):
        self.gloo = Group(path, 1 + self.rank)

    def receive_gloo(self, chunks):
        """Each chunk: [(name, shape), ...], packed one behind the other."""
        import torch
        model = self.model_runner.get_model()

        def arriving():
            for chunk in chunks:
                sizes = [elements(shape) for _, shape in chunk]
                packed = torch.empty(sum(sizes), dtype=torch.bfloat16)
                self.gloo.broadcast(packed)
                for (name, shape), part in zip(chunk, packed.split(sizes)):
                    yield name, part.view(shape)

        model.load_weights(arriving())

    def watch(self):
        """Peak memory is counted from now on."""
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
        self.before = resident("VmRSS")

    def peak(self):
        return resident("VmHWM") - self.before

    def sums(self):
        """Of each parameter, whatever its values: all bits count."""
        import torch
        return {name: int(one.view(torch.int16).to(torch.int64).sum())
                for name, one in self.model_runner.get_model().named_parameters()}

    def times(self):
        """Of the last update by Sluice: in all, and from the start of its run to the end."""
        return self.weight_transfer_engine.timed

    def time_updates(self):
        """Of the updates from now on."""
        made = self.weight_transfer_engine
        whole, inner = made.receive_weights, type(made._placement).receive
        timed = made.timed = {}

        def receive(placement, version):
            begin = time.perf_counter()
            inner(placement, version)
            timed["run"] = time.perf_counter() - begin

        def receive_weights(info):
            begin = time.perf_counter()
            whole(info)
            timed["update"] = time.perf_counter() - begin

        type(made._placement).receive = receive
        made.receive_weights = receive_weights


def elements(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def resident(what):
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith(what))
    return int(line.split()[1]) << 10


class Trainer:
    """One of the trainers' ranks, which holds a shard of each tensor along its first dimension."""

    def __init__(self, rank, folder, shapes, socket):
        import torch
        import torch.distributed as dist
        from torch.distributed.tensor import Shard, distribute_tensor
        self.rank = rank
        dist.init_process_group("gloo", init_method=f"file://{folder}/trainers", rank=rank,
                                world_size=TRAINERS)
        mesh = dist.device_mesh.init_device_mesh("cpu", (TRAINERS,))
        generator = torch.Generator().manual_seed(1)
        self.tensors = {name: distribute_tensor(torch.rand(
            shape, generator=generator).to(torch.bfloat16), mesh, [Shard(0)])
            for name, shape in shapes.items()}
        self.shapes = shapes
        self.engine = engines.Remote(socket)
        path = f"{folder}/gloo"
        if rank == 0:
            joining = threading.Thread(target=self.on_workers, args=("join_gloo", path))
            joining.start()
            self.gloo = Group(path, 0)
            joining.join()
        self.sluice = None

    def on_workers(self, name, *given):
        return self.engine.call("collective_rpc", name, None, given)

    def renew(self, number):
        import torch
        generator = torch.Generator().manual_seed(1000 * number + self.rank)
        for one in self.tensors.values():
            mine = one.to_local()
            mine.copy_(torch.rand(mine.shape, generator=generator))

    def send_by_sluice(self):
        from sluice.integrations.vllm import SluiceTrainerInitInfo
        from vllm.distributed.weight_transfer import WeightTransferTrainerFactory
        if self.sluice is None:
            self.sluice = WeightTransferTrainerFactory.trainer_init(
                SluiceTrainerInitInfo(rank=self.rank), client=self.engine, source=self.tensors)
        self.sluice.send_weights()

    def send_by_gloo(self, chunk_bytes):
        import torch
        chunks, size = [[]], 0
        for name, shape in self.shapes.items():
            if chunks[-1] and size + 2 * elements(shape) > chunk_bytes:
                chunks.append([])
                size = 0
            chunks[-1].append((name, shape))
            size += 2 * elements(shape)
        receiving = None
        if self.rank == 0:
            receiving = threading.Thread(target=self.on_workers, args=("receive_gloo", chunks))
            receiving.start()
        for chunk in chunks:
            whole = [self.tensors[name].full_tensor().view(-1) for name, _ in chunk]
            if self.rank == 0:
                self.gloo.broadcast(torch.cat(whole))
        if receiving is not None:
            receiving.join()


def train(rank, folder, shapes, socket, rounds, chunks):
    import torch.distributed as dist
    trainer = Trainer(rank, folder, shapes, socket)
    ways = {"sluice": trainer.send_by_sluice,
            **{f"gloo, {chunk} MiB": lambda chunk=chunk: trainer.send_by_gloo(chunk << 20)
               for chunk in chunks}}
    number = 0
    for i in range(rounds + 1):  # the first one plans, and connects
        for way, send in list(ways.items())[::1 if i % 2 == 0 else -1]:
            number += 1
            trainer.renew(number)
            dist.barrier()
            if rank == 0:
                trainer.on_workers("watch")
            dist.barrier()
            begin = time.perf_counter()
            send()
            dist.barrier()
            seconds = time.perf_counter() - begin
            if rank == 0:
                found = {"round": i, "way": way, "seconds": seconds,
                         "peak_bytes": max(trainer.on_workers("peak"))}
                if way == "sluice":
                    if i == 0:
                        trainer.on_workers("time_updates")
                    else:
                        found["times"] = trainer.on_workers("times")
                found["sums"] = trainer.on_workers("sums")
            # The other way then has to give the same values to the same parameters.
            if way == "sluice":
                trainer.send_by_gloo(64 << 20)
            else:
                trainer.send_by_sluice()
            if rank == 0:
                if trainer.on_workers("sums") != found.pop("sums"):
                    raise SystemExit(f"{way}: wrong elements")
                print(RESULT + json.dumps(found), flush=True)


def main():
    rounds, gib = int(sys.argv[1]), float(sys.argv[2])
    chunks = [int(one) for one in sys.argv[3].split(",")]
    os.environ.update(engines.ENVIRONMENT)
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/model"
        os.mkdir(model)
        pathlib.Path(model, "config.json").write_text(json.dumps(config(gib)), encoding="utf-8")
        shapes = shapes_of(model)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (
            str(pathlib.Path(__file__).parent), os.environ.get("PYTHONPATH"))))
        with engines.Engine(folder, model, load_format="dummy", tensor_parallel_size=WORKERS,
                            worker_extension_cls="vllm_sync.Worker",
                            weight_transfer_config={"backend": "sluice"}) as engine:
            engine.wait()
            print(RESULT + json.dumps({"tensors": len(shapes), "bytes": 2 * sum(
                map(elements, shapes.values()))}), flush=True)
            children = []
            for rank in range(1, TRAINERS):
                if (child := os.fork()) == 0:
                    train(rank, folder, shapes, engine.socket, rounds, chunks)
                    os._exit(0)
                children.append(child)
            train(0, folder, shapes, engine.socket, rounds, chunks)
            for child in children:
                os.waitpid(child, 0)


if __name__ == "__main__":
    main()
