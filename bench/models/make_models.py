#!/usr/bin/env python3
"""Writes the model files that programs find by name, from the published dimensions of models.

Each file maps a tensor's name to its shape and safetensors dtype, as the header of a checkpoint
does, except that the experts of a layer are stacked into one [experts, ...] tensor per projection
and that weights are BF16 throughout (a checkpoint may hold them quantised). Python 3 standard
library only.

  make_models.py FOLDER      as CMake does: build/share/sluice/models
"""
import json
import math
import pathlib
import sys

# Sources: config.json of the named Hugging Face repositories; the totals that the assertions below
# compare with are those of the model cards, in billions.
LLAMA_3_8B = dict(  # meta-llama/Meta-Llama-3-8B
    hidden=4096, layers=32, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256)
LLAMA_3_70B = dict(  # meta-llama/Meta-Llama-3-70B
    hidden=8192, layers=80, heads=64, kv_heads=8, head_dim=128, ffn=28672, vocab=128256)
QWEN3_235B = dict(  # Qwen/Qwen3-235B-A22B
    hidden=4096, layers=94, heads=64, kv_heads=4, head_dim=128, expert_ffn=1536, experts=128,
    vocab=151936)
DEEPSEEK_V3 = dict(  # deepseek-ai/DeepSeek-V3, without the multi-token prediction module
    hidden=7168, layers=61, dense_layers=3, heads=128, q_lora=1536, kv_lora=512, rope_dim=64,
    nope_dim=128, v_dim=128, ffn=18432, expert_ffn=2048, experts=256, vocab=129280)


class Model:
    def __init__(self):
        self.tensors = {}

    def add(self, name, *shape, dtype="BF16"):
        assert name not in self.tensors, name
        self.tensors[name] = {"shape": list(shape), "dtype": dtype}

    def parameters(self):
        return sum(math.prod(tensor["shape"]) for tensor in self.tensors.values())


def add_mlp(model, prefix, hidden, ffn):
    model.add(f"{prefix}.gate_proj.weight", ffn, hidden)
    model.add(f"{prefix}.up_proj.weight", ffn, hidden)
    model.add(f"{prefix}.down_proj.weight", hidden, ffn)


def add_experts(model, prefix, experts, hidden, ffn):
    model.add(f"{prefix}.experts.gate_proj.weight", experts, ffn, hidden)
    model.add(f"{prefix}.experts.up_proj.weight", experts, ffn, hidden)
    model.add(f"{prefix}.experts.down_proj.weight", experts, hidden, ffn)


def add_grouped_attention(model, prefix, d):
    model.add(f"{prefix}.q_proj.weight", d["heads"] * d["head_dim"], d["hidden"])
    model.add(f"{prefix}.k_proj.weight", d["kv_heads"] * d["head_dim"], d["hidden"])
    model.add(f"{prefix}.v_proj.weight", d["kv_heads"] * d["head_dim"], d["hidden"])
    model.add(f"{prefix}.o_proj.weight", d["hidden"], d["heads"] * d["head_dim"])


def add_latent_attention(model, prefix, d):
    model.add(f"{prefix}.q_a_proj.weight", d["q_lora"], d["hidden"])
    model.add(f"{prefix}.q_a_layernorm.weight", d["q_lora"])
    query_dim = d["nope_dim"] + d["rope_dim"]
    model.add(f"{prefix}.q_b_proj.weight", d["heads"] * query_dim, d["q_lora"])
    model.add(f"{prefix}.kv_a_proj_with_mqa.weight", d["kv_lora"] + d["rope_dim"], d["hidden"])
    model.add(f"{prefix}.kv_a_layernorm.weight", d["kv_lora"])
    model.add(f"{prefix}.kv_b_proj.weight", d["heads"] * (d["nope_dim"] + d["v_dim"]), d["kv_lora"])
    model.add(f"{prefix}.o_proj.weight", d["hidden"], d["heads"] * d["v_dim"])


def build(d, add_layer):
    model = Model()
    model.add("model.embed_tokens.weight", d["vocab"], d["hidden"])
    for layer in range(d["layers"]):
        prefix = f"model.layers.{layer}"
        model.add(f"{prefix}.input_layernorm.weight", d["hidden"])
        add_layer(model, prefix, layer)
        model.add(f"{prefix}.post_attention_layernorm.weight", d["hidden"])
    model.add("model.norm.weight", d["hidden"])
    model.add("lm_head.weight", d["vocab"], d["hidden"])
    return model


def llama(d):
    def add_layer(model, prefix, _):
        add_grouped_attention(model, f"{prefix}.self_attn", d)
        add_mlp(model, f"{prefix}.mlp", d["hidden"], d["ffn"])
    return build(d, add_layer)


def qwen3_moe(d):
    def add_layer(model, prefix, _):
        add_grouped_attention(model, f"{prefix}.self_attn", d)
        model.add(f"{prefix}.self_attn.q_norm.weight", d["head_dim"])
        model.add(f"{prefix}.self_attn.k_norm.weight", d["head_dim"])
        model.add(f"{prefix}.mlp.gate.weight", d["experts"], d["hidden"])
        add_experts(model, f"{prefix}.mlp", d["experts"], d["hidden"], d["expert_ffn"])
    return build(d, add_layer)


def deepseek_v3(d):
    def add_layer(model, prefix, layer):
        add_latent_attention(model, f"{prefix}.self_attn", d)
        if layer < d["dense_layers"]:
            add_mlp(model, f"{prefix}.mlp", d["hidden"], d["ffn"])
            return
        model.add(f"{prefix}.mlp.gate.weight", d["experts"], d["hidden"])
        model.add(f"{prefix}.mlp.gate.e_score_correction_bias", d["experts"], dtype="F32")
        add_experts(model, f"{prefix}.mlp", d["experts"], d["hidden"], d["expert_ffn"])
        add_mlp(model, f"{prefix}.mlp.shared_experts", d["hidden"], d["expert_ffn"])
    return build(d, add_layer)


MODELS = {"llama-3-8b": (llama, LLAMA_3_8B, 8.03), "llama-3-70b": (llama, LLAMA_3_70B, 70.6),
          "qwen3-235b-a22b": (qwen3_moe, QWEN3_235B, 235.0),
          "deepseek-v3": (deepseek_v3, DEEPSEEK_V3, 671.0)}


def write(folder, name, model, billions):
    assert abs(model.parameters() / 1e9 - billions) < 0.005 * billions, (name, model.parameters())
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in model.tensors.items()]
    (folder / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{name}: {len(lines)} tensors, {model.parameters() / 1e9:.2f} billion parameters")


def main():
    folder, = map(pathlib.Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (make, dimensions, billions) in MODELS.items():
        write(folder, name, make(dimensions), billions)


if __name__ == "__main__":
    main()
