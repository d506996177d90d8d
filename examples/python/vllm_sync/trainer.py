"""The second shell: a trainer whose weights are sharded by FSDP2, and which sends each version.

usage: torchrun --nproc-per-node 2 trainer.py FOLDER [STEPS]

Prints what the server says to one prompt after each version: the tokens change with the weights.
"""
import json
import os
import sys
import urllib.request

import torch
import torch.distributed as dist
from sluice.integrations.vllm import SluiceModuleSource, SluiceTrainerInitInfo
from torch.distributed.fsdp import fully_shard
from transformers import AutoConfig, AutoModelForCausalLM
from vllm.distributed.weight_transfer import HTTPVLLMWeightSyncClient, WeightTransferTrainerFactory

SERVER = f"http://127.0.0.1:{os.environ.get('PORT', '8000')}"


def tokens(prompt):
    request = urllib.request.Request(
        f"{SERVER}/v1/completions", headers={"Content-Type": "application/json"},
        data=json.dumps({"model": "tiny", "prompt": prompt, "temperature": 0, "max_tokens": 8,
                         "return_token_ids": True}).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["choices"][0]["token_ids"]


def main():
    folder, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder),
                                             dtype=torch.bfloat16)
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)

    engine = WeightTransferTrainerFactory.trainer_init(
        SluiceTrainerInitInfo(rank=dist.get_rank()), client=HTTPVLLMWeightSyncClient(SERVER),
        source=SluiceModuleSource(model))
    batch = torch.randint(3, 1024, (4, 32))
    for step in range(steps):
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        engine.send_weights()
        if dist.get_rank() == 0:
            print(f"version {engine.version}, loss {loss.item():.2f}: the server answers "
                  f"{tokens([1, 2, 3, 4])}", flush=True)
        dist.barrier()
    engine.shutdown()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
