"""What trainer.py and server.py have to agree on: where they meet, and the tensors' values."""

from __future__ import annotations

from collections.abc import Iterator

import torch

WORLD = "tcp://127.0.0.1:29611"  # where both jobs are on one host; or SLUICE_WORLD
TRAINERS, SERVERS = 4, 2
# The role that lives longest comes first: its rank 0 serves the store, where all meet.
ROLES = {"server": SERVERS, "trainer": TRAINERS}
STEPS = 5

# Few of these divide by the trainer's mesh, and the vocabulary not by the server's.
VOCABULARY, HIDDEN, FEED_FORWARD = 1003, 51, 102
LAYERS, HEADS, KV_HEADS, HEAD_SIZE = 2, 6, 2, 10


def shapes() -> dict[str, tuple[int, ...]]:
    """The tensors of the model, by the names that checkpoints have."""
    found: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (VOCABULARY, HIDDEN)}
    for layer in range(LAYERS):
        for name, shape in {
                "input_layernorm": (HIDDEN,), "self_attn.q_proj": (HEADS * HEAD_SIZE, HIDDEN),
                "self_attn.k_proj": (KV_HEADS * HEAD_SIZE, HIDDEN),
                "self_attn.v_proj": (KV_HEADS * HEAD_SIZE, HIDDEN),
                "self_attn.o_proj": (HIDDEN, HEADS * HEAD_SIZE),
                "mlp.gate_proj": (FEED_FORWARD, HIDDEN), "mlp.up_proj": (FEED_FORWARD, HIDDEN),
                "mlp.down_proj": (HIDDEN, FEED_FORWARD)}.items():
            found[f"layers.{layer}.{name}.weight"] = shape
    found["norm.weight"] = (HIDDEN,)
    found["lm_head.weight"] = (VOCABULARY, HIDDEN)
    return found


def first_values() -> Iterator[tuple[str, torch.Tensor]]:
    """The whole tensors before the first step. Whole numbers, so that sums of them are exact."""
    for number, (name, shape) in enumerate(shapes().items()):
        count = torch.Size(shape).numel()
        yield name, ((torch.arange(count) * 7 + number) % 1009).reshape(shape).float()


def gradient(step: int) -> float:
    """Of each element of all tensors, in the step with this number, from 1 on."""
    return -float(step)


def values(steps: int) -> Iterator[tuple[str, torch.Tensor]]:
    """The whole tensors after as many steps of plain SGD with a rate of 1."""
    moved = -sum(gradient(step) for step in range(1, steps + 1))
    return ((name, value + moved) for name, value in first_values())
