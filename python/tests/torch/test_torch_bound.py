"""Tensors of PyTorch that are freed, resized or replaced between the runs of a transfer."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_ranks import gloo_session, run_job  # noqa: E402


def rank_changes_memory(how: str, runs: int) -> Any:
    from ranks import error_of

    with gloo_session() as session:
        tensor = torch.arange(100, dtype=torch.float32)
        other = torch.zeros(100)
        transfer = session.transfer({"w": tensor} if session.rank == 0 else None,
                                    None if session.rank == 0 else {"w": other})
        for _ in range(runs):
            transfer.run()
        if session.rank == 0:
            if how == "freed":
                tensor.untyped_storage().resize_(0)
            elif how == "resized":
                tensor.resize_(50)
            else:
                tensor.set_(torch.zeros(100))
        return [error_of(transfer.run), bool((other == torch.arange(100)).all()), session.rank]


@pytest.mark.parametrize("how,text", [("freed", "was freed"), ("resized", "(50,)"),
                                      ("replaced", "moved to other memory")])
@pytest.mark.parametrize("runs", [0, 2])
def test_bound_tensors_that_changed(how: str, text: str, runs: int) -> None:
    for error, moved, rank in run_job(2, rank_changes_memory, how, runs):
        assert "InvalidSpec" in error["types"], error
        assert text in error["text"] and error["tensor"] == "w" and error["ranks"] == [0], error
        assert rank == 0 or moved == (runs > 0)
