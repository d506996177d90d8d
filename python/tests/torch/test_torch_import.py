"""Sluice and PyTorch in one process, whichever comes first; and neither needs the other."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch", minversion="2.4")

MOVES = """
with sluice.Session.from_exchange(0, 1, lambda payload: [payload]) as session:
    source = torch.arange(12, dtype=torch.bfloat16).reshape(3, 4)
    target = torch.zeros(4, 3).t()
    session.sync({"w": source}, {"w": target}, progress=False)
    assert torch.equal(target, source.float()), target
    memory = session.allocate(64).memory
    shared = torch.frombuffer(memory, dtype=torch.float32)
    session.sync({"w": torch.ones(16)}, {"w": shared}, progress=False)
    assert shared.sum() == 16
    with session.stream(generator=lambda item, into: bytes([item] * len(into)),
                        generator_items=3, item_bytes=4) as stream:
        assert [batch.tensor.tolist() for batch in stream] == [[[i] * 4] for i in range(3)]
assert float((torch.ones(300, 300) @ torch.ones(300, 300)).sum()) == 300 ** 3
print("fine")
"""


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          timeout=600, check=False)
    assert done.returncode == 0 and done.stdout.endswith("fine\n"), done.stdout + done.stderr


@pytest.mark.parametrize("first, second", [("torch", "sluice"), ("sluice", "torch")])
def test_either_is_imported_first(first: str, second: str) -> None:
    run(f"import {first}\nimport {second}\n{MOVES}")


def test_torch_comes_while_a_session_is_open() -> None:
    run("import sluice\n"
        "held = sluice.Session.from_exchange(0, 1, lambda payload: [payload])\n"
        "import torch\n"
        f"{MOVES}\nheld.close()")
