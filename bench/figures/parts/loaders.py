"""Against plain loaders that our program has of its own, in turns, over latencies."""
from runs import MIB, steady, whole, window
from spread import summarize

LATENCIES_MS = (0, 20, 50, 200)
SLOTS = 64
ITEMS = 256
# One of 8 slabs at a time; the whole budget at a time; workers of the usual number; as many workers
# as slots.
OTHERS = ("waves:8", "serial", "threads:8x4", f"threads:{SLOTS}x1")


def measure(setup, sources=("buffered", "file"), consume_us=0):
    """With a latency the consumer computes `consume_us` with each item; without one nothing, as the
    loaders' own rate is what is looked for."""
    folder = setup.folder(items=ITEMS)
    runs = []
    settings = [(source, latency_ms) for source in sources
                for latency_ms in setup.some(LATENCIES_MS)]
    for number, (source, latency_ms) in setup.turns("loaders", setup.rounds(3), settings):
        modes = setup.bench.modes(f"{source}:{folder}", latency_ms=latency_ms,
                                  consume_us=consume_us if latency_ms > 0 else 0,
                                  baseline=",".join(OTHERS), **window(SLOTS))
        ours = whole(modes["sluice"])
        for other in OTHERS:
            runs.append({"source": source, "latency_ms": latency_ms, "other": other,
                         "round": number, "whole": ours, "steady": steady(modes["sluice"]),
                         "other_whole": whole(modes[other]), "ratio": ours / whole(modes[other])})
    return {"parameters": {"slots": SLOTS, "items": ITEMS, "item_bytes": MIB,
                           "consume_us": consume_us}, "runs": runs,
            "summary": summarize(runs, ("source", "latency_ms", "other"),
                                 ("ratio", "whole", "steady", "other_whole"))}
