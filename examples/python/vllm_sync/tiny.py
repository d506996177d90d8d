"""Writes the config of a tiny Llama, which the server and the trainer read.

usage: python tiny.py FOLDER
"""
import json
import pathlib
import sys

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16",
    "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 1024,
    "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "tie_word_embeddings": False,
    "bos_token_id": 1, "eos_token_id": 2,
}

folder = pathlib.Path(sys.argv[1])
folder.mkdir(exist_ok=True)
(folder / "config.json").write_text(json.dumps(CONFIG, indent=1), encoding="utf-8")
