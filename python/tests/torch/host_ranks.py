"""What tests of hosts' adapters do in each rank: the hosts' part, with stubs of the hosts."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

_FOLDER = "SLUICE_TEST_FOLDER"  # of ranks.py

RANK = int(os.environ.get("RANK", "0"))
SIZE = int(os.environ.get("WORLD_SIZE", "1"))


def use_stubs() -> None:
    """Hosts are the stubs from now on, also where one is installed."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "integrations/stubs"))


def gather(what: str, value: Any, ranks: range | None = None) -> list[Any]:
    """The values of these ranks, by rank; None: all. Each has to fit into JSON."""
    folder = Path(os.environ[_FOLDER])
    hidden = folder / f"{what}.{RANK}.part"
    hidden.write_text(json.dumps(value))
    hidden.rename(folder / f"{what}.{RANK}.json")
    values = []
    end = time.monotonic() + 120
    for rank in ranks or range(SIZE):
        place = folder / f"{what}.{rank}.json"
        while not place.exists():
            assert time.monotonic() < end, f"rank {rank} has nothing to say of '{what}'"
            time.sleep(0.005)
        values.append(json.loads(place.read_text()))
    return values
