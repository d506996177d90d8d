"""Against plain loaders that our program has of its own, in turns, over latencies."""
from runs import MIB, whole, window
from spread import summarize

LATENCIES_MS = (0, 20, 50, 200)
SLOTS = 64
ITEMS = 256
OTHERS = ("serial", "threads:8x4")


def measure(setup):
    folder = setup.folder(items=ITEMS)
    runs = []
    settings = [(source, latency_ms) for source in ("buffered", "file")
                for latency_ms in setup.some(LATENCIES_MS)]
    for number, (source, latency_ms) in setup.turns("loaders", setup.rounds(3), settings):
        modes = setup.bench.modes(f"{source}:{folder}", latency_ms=latency_ms,
                                  compare=",".join(OTHERS), **window(SLOTS))
        ours = whole(modes["sluice"])
        for other in OTHERS:
            runs.append({"source": source, "latency_ms": latency_ms, "other": other,
                         "round": number, "whole": ours, "other_whole": whole(modes[other]),
                         "ratio": ours / whole(modes[other])})
    return {"parameters": {"slots": SLOTS, "items": ITEMS, "item_bytes": MIB}, "runs": runs,
            "summary": summarize(runs, ("source", "latency_ms", "other"),
                                 ("ratio", "whole", "other_whole"))}
