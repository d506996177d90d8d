"""Reads of which one in a hundred takes ten times as long, with hedges and without."""
from runs import MIB, check_window, whole, window
from setup import epochs
from spread import summarize

SLOTS = 64
LATENCY_MS = 50
CONSUME_US = 3125  # per item: a quarter of what the window allows at this latency
RUN_S = 6
TAIL = {"tail_percent": 1, "tail_factor": 10}
SETTINGS = {"untailed": {"hedge": 0}, "hedged": {"hedge": 1, **TAIL},
            "not hedged": {"hedge": 0, **TAIL}}


def measure(setup):
    folder = setup.folder(items=256)
    rate = MIB / (CONSUME_US * 1e-6)
    rounds = epochs(rate, setup.seconds(RUN_S), items=256)
    runs = []
    settings = [(source, name) for source in ("buffered", "file") for name in SETTINGS]
    for number, (source, name) in setup.turns("tails", setup.rounds(5), settings):
        run = setup.bench.stream(f"{source}:{folder}", latency_ms=LATENCY_MS,
                                 consume_us=CONSUME_US, epochs=rounds, seed=number,
                                 **window(SLOTS), **SETTINGS[name])
        if name != "hedged":
            check_window(run, SLOTS)
        if name == "untailed":
            untailed = whole(run)
        runs.append({"source": source, "round": number, "setting": name, "whole": whole(run),
                     "ratio": whole(run) / untailed, "of_pace": whole(run) / rate,
                     "extra_requests": run["requests"] / run["items"] - 1,
                     "items": run["items"], "seconds": run["seconds"],
                     "requests": run["requests"], "hedges": run["hedges"],
                     "hedges_won": run["hedges_won"], "stall_share": run["stall_share"]})
    return {"parameters": {"slots": SLOTS, "latency_ms": LATENCY_MS, "consume_us": CONSUME_US,
                           "item_bytes": MIB, "order": "in", **TAIL},
            "runs": runs,
            "summary": summarize(runs, ("source", "setting"),
                                 ("whole", "ratio", "of_pace", "extra_requests"))}
