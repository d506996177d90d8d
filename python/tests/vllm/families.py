"""Small models of the families that vLLM serves on CPUs, with sizes drawn by a seed."""
import json
import os
import random

COMMON = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "rms_norm_eps": 1e-6,
          "max_position_embeddings": 128, "dtype": "bfloat16"}


def _dense(rng, **more):
    heads = rng.choice([4, 8])
    return {"hidden_size": heads * 32, "intermediate_size": 64 * rng.randint(2, 6),
            "num_hidden_layers": rng.randint(2, 4), "num_attention_heads": heads,
            "num_key_value_heads": rng.choice([2, 4]), "head_dim": 32,
            "vocab_size": rng.choice([384, 500, 515]), **COMMON, **more}


def llama(rng):
    return "LlamaForCausalLM", "llama", _dense(rng, tie_word_embeddings=rng.random() < 0.5)


def qwen3(rng):
    return "Qwen3ForCausalLM", "qwen3", _dense(rng, tie_word_embeddings=rng.random() < 0.5)


def qwen3_moe(rng):
    return "Qwen3MoeForCausalLM", "qwen3_moe", _dense(
        rng, num_experts=rng.choice([4, 6]), num_experts_per_tok=2, moe_intermediate_size=64,
        decoder_sparse_step=1, norm_topk_prob=True, mlp_only_layers=[], tie_word_embeddings=False)


def deepseek_v3(rng):
    heads = 4
    return "DeepseekV3ForCausalLM", "deepseek_v3", {
        **_dense(rng, num_attention_heads=heads, num_key_value_heads=heads, hidden_size=128),
        "q_lora_rank": 64, "kv_lora_rank": 512, "qk_nope_head_dim": 32, "qk_rope_head_dim": 64,
        "v_head_dim": 32, "head_dim": 64, "n_routed_experts": 4, "n_shared_experts": 1,
        "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "moe_intermediate_size": 64,
        "first_k_dense_replace": 1, "moe_layer_freq": 1, "scoring_func": "sigmoid",
        "topk_method": "noaux_tc", "norm_topk_prob": True, "routed_scaling_factor": 1.0,
        "num_nextn_predict_layers": 0, "tie_word_embeddings": False}


def gemma3(rng):
    return "Gemma3ForCausalLM", "gemma3_text", _dense(
        rng, query_pre_attn_scalar=32, sliding_window=32, hidden_activation="gelu_pytorch_tanh",
        tie_word_embeddings=True)


def phi3(rng):
    return "Phi3ForCausalLM", "phi3", _dense(rng, original_max_position_embeddings=128,
                                             tie_word_embeddings=False)


def glm4(rng):
    return "Glm4ForCausalLM", "glm4", _dense(rng, attention_bias=True, partial_rotary_factor=0.5,
                                             tie_word_embeddings=False)


def gpt_oss(rng):
    return "GptOssForCausalLM", "gpt_oss", _dense(
        rng, num_local_experts=4, num_experts_per_tok=2, sliding_window=32,
        intermediate_size=128, tie_word_embeddings=False, attention_bias=True,
        rope_scaling={"rope_type": "yarn", "factor": 2.0, "beta_fast": 32.0, "beta_slow": 1.0,
                      "original_max_position_embeddings": 64, "truncate": False})


def llama_int8(rng):
    """8-bit weights with a scale a row, of which vLLM packs its kernel's form after loading."""
    eight_bits = {"num_bits": 8, "type": "int", "symmetric": True}
    return "LlamaForCausalLM", "llama", _dense(
        rng, tie_word_embeddings=False, quantization_config={
            "quant_method": "compressed-tensors", "format": "int-quantized", "ignore": ["lm_head"],
            "quantization_status": "compressed", "config_groups": {"group_0": {
                "targets": ["Linear"], "weights": {**eight_bits, "strategy": "channel"},
                "input_activations": {**eight_bits, "strategy": "token", "dynamic": True}}}})


FAMILIES = {each.__name__: each for each in (llama, qwen3, qwen3_moe, deepseek_v3, gemma3, phi3,
                                             glm4, gpt_oss, llama_int8)}


def make(folder, family, seed):
    """Writes the folder's config.json. Returns {name: shape} of a checkpoint, as the trainer's
    library writes it."""
    import torch
    from safetensors import safe_open
    from transformers import AutoConfig, AutoModelForCausalLM
    architecture, kind, config = FAMILIES[family](random.Random(f"{family} {seed}"))
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        json.dump({"architectures": [architecture], "model_type": kind, **config}, file)
    whole = AutoConfig.from_pretrained(folder)
    quantized = whole.__dict__.pop("quantization_config", None)
    model = AutoModelForCausalLM.from_config(whole, dtype=torch.bfloat16)
    model.save_pretrained(f"{folder}/saved")
    with safe_open(f"{folder}/saved/model.safetensors", "pt") as file:
        shapes = {name: (file.get_slice(name).get_shape(), file.get_tensor(name).dtype)
                  for name in file.keys()}
    if quantized:
        for name in [name for name in shapes if name.endswith("_proj.weight")]:
            shapes[name] = shapes[name][0], torch.int8
            shapes[f"{name}_scale"] = [shapes[name][0][0], 1], torch.float32
    return shapes


def version(shapes, seed):
    """Values of one version: {name: tensor}."""
    import torch
    generator = torch.Generator().manual_seed(seed)

    def one(shape, dtype):
        drawn = torch.randn(shape, generator=generator, dtype=torch.float32)
        if dtype == torch.int8:
            return (drawn * 40).clamp(-127, 127).to(dtype)
        if dtype == torch.float32:  # scales
            return 0.005 + drawn.abs() * 0.001
        return (drawn * 0.2 if len(shape) > 1 else 1 + drawn * 0.1).to(dtype)

    return {name: one(tuple(shape), dtype) for name, (shape, dtype) in shapes.items()}
