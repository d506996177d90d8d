"""In a child of fork() every call raises, and the parent goes on."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import sluice
from ranks import error_of, run_ranks


def rank_forks(session: sluice.Session) -> Any:
    source, target = np.ones(8, np.float32), np.zeros(8, np.float32)
    transfer = session.transfer({"w": source} if session.rank == 0 else None,
                                {"w": target} if session.rank == 1 else None)
    run = transfer.start()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        errors = {
            "wait": error_of(run.wait), "done": error_of(lambda: run.done),
            "start": error_of(transfer.start), "drop": error_of(transfer.drop),
            "transfer": error_of(session.transfer), "poll": error_of(session.poll),
            "allocate": error_of(session.allocate, 8), "report": error_of(session.report),
            "sync": error_of(session.sync, {"w": source}, {"w": target}),
            "stream": error_of(session.stream, "file:/"), "metrics": error_of(session.metrics),
            "close": error_of(session.close),
            "from_env": error_of(sluice.Session.from_env),
            "exchange": error_of(sluice.Session.from_exchange, 0, 1, lambda payload: [payload]),
        }
        del run, transfer
        with os.fdopen(writer, "w") as out:
            json.dump(errors, out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        errors = json.load(answers)
    _, status = os.waitpid(child, 0)
    run.wait(120)
    transfer.run()
    return [errors, status, target.tolist()]


def test_fork() -> None:
    results = run_ranks(2, rank_forks)
    for errors, status, _ in results:
        assert status == 0
        for call, error in errors.items():
            assert "Error" in error["types"], (call, error)
            assert "fork" in error["text"], (call, error)
    assert results[1][2] == [1.0] * 8
