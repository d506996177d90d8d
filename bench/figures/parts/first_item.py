"""How soon the first item is there, against one round trip and the item's own transfer."""
import bound
from runs import MIB, full_window, steady, window
from setup import ITEMS
from spread import summarize

LATENCIES_MS = (20, 50, 200)
SLOTS = (16, 64, 256, 512)
RANKS = (1, 4)
SOURCES = ("buffered", "file")


def measure(setup):
    folder = setup.folder()
    runs = []
    settings = [(source, slots) for source in SOURCES for slots in setup.some(SLOTS)]
    for number, (source, slots) in setup.turns("first_item", setup.rounds(3), settings):
        uri = f"{source}:{folder}"
        base = steady(full_window(setup.bench, uri, slots, ITEMS, ITEMS, fills=False))
        for ranks in RANKS:
            for latency_ms in setup.some(LATENCIES_MS):
                run = setup.bench.stream(uri, ranks=0 if ranks == 1 else ranks, stop_items=1,
                                         latency_ms=latency_ms, **window(slots))
                ideal_s = bound.first_item(base, latency_ms * 1e-3, MIB)
                runs.append({"source": source, "round": number, "slots": slots, "ranks": ranks,
                             "latency_ms": latency_ms, "base": base, "ideal_s": ideal_s,
                             "first_item_s": run["first_item_s"],
                             "ratio": run["first_item_s"] / ideal_s})
    return {"parameters": {"item_bytes": MIB, "round_trips": 1}, "runs": runs,
            "summary": summarize(runs, ("source", "ranks", "slots", "latency_ms"),
                                 ("ratio", "first_item_s"))}
