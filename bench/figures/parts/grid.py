"""Throughput against what the window allows, over bytes in flight and latencies."""
import bound
from runs import MIB, after_first, full_window, steady, whole
from setup import ITEMS
from spread import summarize

WINDOWS = (16, 32, 64, 128, 256, 512)  # MiB
LATENCIES_MS = (20, 50, 200)           # 0 is the base
AMPLE_MS = 200                         # with a window of twice what this latency needs
BASE_S = 3
RUN_S = 5
SOURCES = ("file", "buffered")


def measure(setup):
    folder = setup.folder()
    runs = []
    settings = [(source, slots) for source in SOURCES
                for slots in [*setup.some(WINDOWS), "ample"]]
    guess = {source: _probe(setup, f"{source}:{folder}") for source in SOURCES}
    for number, (source, slots) in setup.turns("grid", setup.rounds(3), settings):
        ample = slots == "ample"
        if ample:
            slots = int(2.1 * AMPLE_MS * 1e-3 * guess[source] / MIB)
        latencies = (AMPLE_MS,) if ample else setup.some(LATENCIES_MS)
        row = _row(setup, f"{source}:{folder}", slots, latencies, guess[source])
        guess[source] = row[0]["base"]
        runs += [{"source": source, "round": number, "ample": ample, **run} for run in row]
    return {"parameters": {"item_bytes": MIB, "run_s": setup.seconds(RUN_S),
                           "base_s": setup.seconds(BASE_S)},
            "runs": runs, "summary": _summary(runs)}


def _probe(setup, source):
    return steady(full_window(setup.bench, source, 64, ITEMS, ITEMS, fills=False))


def _row(setup, source, slots, latencies_ms, guess):
    """The base of one window, then its latencies."""
    # Without latency few of the slots are in use: the bytes are there already.
    base_run = _run(setup, source, slots, 0, guess, setup.seconds(BASE_S), fills=False)
    base = steady(base_run)
    row = [_entry(base_run, slots, 0, base)]
    for latency_ms in latencies_ms:
        most = bound.throughput(base, slots * MIB, latency_ms * 1e-3, MIB)
        run = _run(setup, source, slots, latency_ms, most, setup.seconds(RUN_S))
        row.append(_entry(run, slots, latency_ms, base))
    return row


def _run(setup, source, slots, latency_ms, expected, seconds, fills=True):
    return full_window(setup.bench, source, slots, expected * seconds / MIB, ITEMS, fills=fills,
                       latency_ms=latency_ms)


def _entry(run, slots, latency_ms, base):
    """All ratios are to the base in the steady state, which has no beginning to pay for."""
    most = bound.throughput(base, slots * MIB, latency_ms * 1e-3, MIB)
    return {"window_mib": slots, "latency_ms": latency_ms, "base": base, "bound": most,
            "whole": whole(run), "steady": steady(run), "after_first": after_first(run),
            "whole_ratio": whole(run) / most, "steady_ratio": steady(run) / most,
            "after_first_ratio": after_first(run) / most,
            "steady_of_base": steady(run) / base, "whole_of_base": whole(run) / base,
            "items": run["items"], "seconds": run["seconds"],
            "first_item_s": run["first_item_s"], "half_s": run["half_s"],
            "window_of_latency": slots * MIB / (latency_ms * 1e-3 * base) if latency_ms else None}


def _summary(runs):
    values = ("whole", "steady", "whole_ratio", "steady_ratio", "after_first_ratio",
              "steady_of_base", "whole_of_base")
    rows = summarize([run for run in runs if not run["ample"]],
                     ("source", "window_mib", "latency_ms"), values)
    ample = [run for run in runs if run["ample"] and run["latency_ms"] > 0]
    return [{**row, "ample": False} for row in rows] + [
        {**row, "ample": True} for row in summarize(
            ample, ("source", "latency_ms"),
            (*values, "window_mib", "window_of_latency"))]
