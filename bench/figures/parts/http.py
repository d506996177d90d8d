"""Against curl: the same ranges over as many connections, from nginx on this machine, in pairs."""
import pathlib
import tempfile

import processes
from nginx import Nginx
from runs import MIB, steady, whole, window
from shards import objects
from spread import summarize

CONNECTIONS = (4, 16)
ITEMS = 512
EPOCHS = 6


def measure(setup):
    folder = setup.folder(items=ITEMS)
    epochs = setup.count(EPOCHS, 1)
    runs = []
    with Nginx(folder) as nginx, tempfile.TemporaryDirectory(prefix="figures-curl-") as scratch:
        curl = _Curl(pathlib.Path(scratch), nginx.url, objects(folder), epochs)
        for number, connections in setup.turns("http", setup.rounds(9), CONNECTIONS):
            if number % 2:
                fetched = curl.run(connections)
                run = _ours(setup, nginx.url, connections, epochs)
            else:
                run = _ours(setup, nginx.url, connections, epochs)
                fetched = curl.run(connections)
            runs.append({"connections": connections, "round": number, **fetched, **run})
    for run in runs:
        run["whole_ratio"] = run["whole"] / run["curl_bytes_per_s"]
        run["steady_ratio"] = run["steady"] / run["curl_bytes_per_s"]
    return {"parameters": {"range_bytes": MIB, "ranges": ITEMS * epochs, "window": "2 C"},
            "runs": runs,
            "summary": summarize(runs, ("connections",),
                                 ("whole_ratio", "steady_ratio", "reuse", "whole",
                                  "curl_bytes_per_s"))}


def _ours(setup, url, connections, epochs):
    run = setup.bench.stream(url, connections=connections, epochs=epochs,
                             **window(2 * connections))
    return {"whole": whole(run), "steady": steady(run), "seconds": run["seconds"],
            "first_item_s": run["first_item_s"], "requests": run["requests"],
            "opened": run["connections"], "reuse": 1 - run["connections"] / run["requests"]}


class _Curl:
    """Fetches all ranges with one curl; the time of one that fetches a single range is its start,
    which is not counted."""

    def __init__(self, scratch, url, named, epochs):
        ranges = [(name, item) for name, items in named for item in range(items)] * epochs
        self._bytes = len(ranges) * MIB
        self._all = scratch / "all"
        self._one = scratch / "one"
        for file, some in ((self._all, ranges), (self._one, ranges[:1])):
            parts = [f'url = "{url}{name}"\nrange = {item * MIB}-{(item + 1) * MIB - 1}\n'
                     'output = "/dev/null"\n' for name, item in some]
            file.write_text("next\n".join(parts), encoding="utf-8")

    def run(self, connections):
        start_s = self._wall_s(self._one, connections)
        wall_s = self._wall_s(self._all, connections)
        return {"curl_bytes_per_s": (self._bytes - MIB) / (wall_s - start_s),
                "curl_wall_s": wall_s, "curl_start_s": start_s}

    @staticmethod
    def _wall_s(config, connections):
        return processes.run(["curl", "--no-progress-meter", "--http1.1", "--fail",
                              "--parallel", "--parallel-immediate", "--parallel-max", connections,
                              "--config", config]).wall_s
