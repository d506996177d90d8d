"""A serving job that gets each version of trainer.py's weights into its own, other layout.

    torchrun --standalone --nproc-per-node 2 examples/python/server.py

See trainer.py. The engine has its own ideas: q, k and v in one tensor, gate and up in another, a
padded vocabulary, and a load_weights that knows all that. `sluice.capture` runs it once and learns
where each element goes. From then on elements arrive there directly.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import sluice
import torch
import weights
from torch import nn

_PARTS = {"q_proj": ("qkv_proj", 0), "k_proj": ("qkv_proj", 1), "v_proj": ("qkv_proj", 2),
          "gate_proj": ("gate_up_proj", 0), "up_proj": ("gate_up_proj", 1)}


class Engine(nn.Module):
    """A rank's parameters, as serving engines have them, and how they load a checkpoint."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        self.rank, self.size = rank, size
        q, kv = (heads * weights.HEAD_SIZE // size for heads in (weights.HEADS, weights.KV_HEADS))
        rows = weights.FEED_FORWARD // size
        # Rows of each part of a fused tensor on this rank.
        self.rows = {"qkv_proj": (q, kv, kv), "gate_up_proj": (rows, rows)}
        padded = -(-weights.VOCABULARY // (64 * size)) * 64  # of this rank
        hidden = weights.HIDDEN
        shapes: dict[str, tuple[int, ...]] = {"embed_tokens": (padded, hidden), "norm": (hidden,),
                                              "lm_head": (padded, hidden)}
        for layer in range(weights.LAYERS):
            for name, shape in {"input_layernorm": (hidden,),
                                "qkv_proj": (sum(self.rows["qkv_proj"]), hidden),
                                "o_proj": (hidden, q),
                                "gate_up_proj": (sum(self.rows["gate_up_proj"]), hidden),
                                "down_proj": (hidden, rows)}.items():
                shapes[f"{layer}_{name}"] = shape
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape), requires_grad=False))

    def load_weights(self, tensors: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Copies this rank's part of each whole tensor of a checkpoint to its place."""
        parameters = dict(self.named_parameters())
        for name, tensor in tensors:
            path = name.removeprefix("layers.").split(".")
            layer = f"{path[0]}_" if name.startswith("layers.") else ""
            module = path[-2]
            if module in _PARTS:
                fused, part = _PARTS[module]
                rows = self.rows[fused]
                own = parameters[layer + fused].narrow(0, sum(rows[:part]), rows[part])
                own.copy_(tensor.narrow(0, self.rank * rows[part], rows[part]))
                continue
            parameter = parameters[layer + module]
            if module in ("o_proj", "down_proj"):
                parameter.copy_(tensor.chunk(self.size, dim=1)[self.rank])
            elif module in ("embed_tokens", "lm_head"):
                begin = self.rank * parameter.shape[0]
                rows_here = min(parameter.shape[0], tensor.shape[0] - begin)
                parameter[:rows_here].copy_(tensor[begin:begin + rows_here])
                parameter[rows_here:].zero_()
            else:
                # Arithmetic: such a tensor is received whole, and given to load_weights.
                parameter.copy_(tensor + 1.0)


def main() -> int:
    url = os.environ.get("SLUICE_WORLD", weights.WORLD)
    wrong = 0
    with sluice.World.join(url, role="server", roles=weights.ROLES, timeout=300) as world:
        engine = Engine(world.rank, world.size)
        coming = {name: (shape, torch.float32) for name, shape in weights.shapes().items()}
        # Before there are weights to lose: load_weights runs, though with tensors of no values.
        captured = sluice.capture(engine.load_weights, coming, engine)
        if world.rank == 0:
            print(f"server: {captured}")

        version = 0
        for version in world.versions(dst=captured, join_timeout=300):
            wrong += wrong_elements(engine, version - 1)
    print(f"server {world.rank}: {version} versions, {wrong} wrong elements")
    return 1 if wrong or version <= weights.STEPS else 0


def wrong_elements(engine: Engine, steps: int) -> int:
    """Beside an engine that has loaded by itself the whole tensors after as many steps."""
    expected = Engine(engine.rank, engine.size)
    expected.load_weights(weights.values(steps))
    return sum(int((parameter != other).sum()) for parameter, other in
               zip(engine.parameters(), expected.parameters(), strict=True))


if __name__ == "__main__":
    sys.exit(main())
