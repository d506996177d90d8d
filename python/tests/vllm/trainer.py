"""A trainer in processes of its own: trainer.py CASE.json RANKS.

Each rank holds a shard of each tensor, as DTensors of FSDP2 and of tensor parallelism, or whole
ones. Sends a version whenever a line comes on rank 0's stdin, and says on stdout how that went.
"""
import json
import os
import sys

import families
import torch
import torch.distributed as dist
from engine import Remote


def shards(shapes, values, mesh, layout):
    """The tensors as this rank has them."""
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
    if layout == "whole":
        return values
    kept = {}
    for i, (name, value) in enumerate(values.items()):
        placement = {"fsdp": Shard(0), "tp": Shard(i % value.dim()) if value.dim() else
                     Replicate()}[layout]
        kept[name] = distribute_tensor(value, mesh, [placement])
        assert isinstance(kept[name], DTensor)
    return kept


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        case = json.load(file)
    from sluice.integrations.vllm import Engines, SluiceTrainerInitInfo
    from vllm.distributed.weight_transfer import WeightTransferTrainerFactory
    size = int(sys.argv[2])
    rank, mesh = 0, None
    if size > 1:
        store = f"{sys.argv[1]}.store"
        # Imports are most of a trainer's start.
        rank = next((rank for rank in range(1, size) if os.fork() == 0), 0)
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
        mesh = dist.device_mesh.init_device_mesh("cpu", (size,))
    shapes = {name: (shape, getattr(torch, dtype))
              for name, (shape, dtype) in case["shapes"].items()}
    held = shards(shapes, families.version(shapes, 0), mesh, case["layout"])
    clients = [Remote(socket) for socket in case["sockets"]]
    client = Engines(*clients) if case.get("engines") or len(clients) > 1 else clients[0]
    engine = None

    def say(**what):
        if rank == 0:
            print(json.dumps(what), flush=True)

    def command():
        line = [sys.stdin.readline().strip()] if rank == 0 else [""]
        if mesh is not None:
            dist.broadcast_object_list(line)
        return line[0]

    def source():
        if case.get("source") == "stream":
            return stream(held)
        return held

    while True:
        what, _, given = command().partition(" ")
        try:
            if what == "init":
                engine = WeightTransferTrainerFactory.trainer_init(
                    SluiceTrainerInitInfo(rank=rank, **case.get("info", {})), client=client,
                    source=source())
            elif what == "send":
                new = shards(shapes, families.version(shapes, int(given)), mesh, case["layout"])
                for name, value in new.items():
                    mine = held[name]
                    if hasattr(mine, "to_local"):
                        mine, value = mine.to_local(), value.to_local()
                    mine.copy_(value)
                engine.send_weights()
            elif what == "move":  # as `load_state_dict(assign=True)`
                for name in list(held):
                    held[name] = held[name].clone()
            elif what == "add":
                if rank == 0:
                    client.add(Remote(given))
            elif what == "rename":
                old, _, new_name = given.partition(" ")
                held[new_name], shapes[new_name] = held.pop(old), shapes.pop(old)
            elif what == "shutdown":
                engine.shutdown()
            else:
                return
            say(ok=True, version=engine.version if engine else 0)
        except Exception as error:  # every rank has one
            say(ok=False, error=f"{type(error).__name__}: {error}")


def stream(held):
    """A WeightSource that brings whole tensors one by one."""
    from vllm.distributed.weight_transfer import ParamMeta, WeightSource

    class Stream(WeightSource):
        def metadata(self):
            return [ParamMeta(name, one.dtype, tuple(one.shape)) for name, one in held.items()]

        def __iter__(self):
            for name, one in held.items():
                yield name, one.full_tensor() if hasattr(one, "full_tensor") else one

    return Stream()


if __name__ == "__main__":
    main()
