"""A consumer of its own behind slow storage, in turns: one slab at a time, loader threads, our
stream, and the same without latency: waves.json."""
import goals
import verdict
from runs import MIB, Bench, check_window, steady, wait_share, whole, window
from setup import Setup
from shards import Shards
from spread import spread, summarize

SLOTS = 32  # the items of 8 workers of which each is 4 ahead
SLABS = "waves:8"
OTHERS = (SLABS, "serial", "threads:8x4")
LATENCIES_MS = (0, 20, 50, 200)
# The first one asks for more than the budget brings at 200 ms, the second one never.
CONSUME_MS = (2, 8)
LONGEST_MS = LATENCIES_MS[-1]
# The beginning, when nothing has come yet, is one part of so many, where the budget is enough.
STARTS = 30
LEAST_ITEMS = 192  # so that opening the stream is a small part, too
OTHERS_ITEMS = 64  # whole waves; their rate is the same from the first wave on

COMMAND = ("sluice-bench stream --source buffered:DIR --latency-ms 0|20|50|200 "
           f"--consume-us 2000|8000 --slots {SLOTS} --piece-bytes 1M --stop-items N --check all "
           "--baseline warm," + ",".join(OTHERS))


def measure(job):
    rounds = job.rounds(5)
    bench = Bench(job.bin / "sluice-bench", job.root / "scripts/mpirun.sh")
    setup = Setup(bench, Shards(bench, job.folder), job.bin, rounds, job.quick)
    folder = setup.folder(items=256)
    settings = [(latency_ms, consume_ms) for latency_ms in setup.some(LATENCIES_MS)
                for consume_ms in CONSUME_MS]
    runs = []
    for number, (latency_ms, consume_ms) in setup.turns("waves", rounds, settings):
        runs += _round(setup, f"buffered:{folder}", number, latency_ms, consume_ms)
    found = summarize(runs, ("latency_ms", "consume_ms", "mode"),
                      ("items_per_s", "steady_items_per_s", "wait_share", "ours_over"))
    return {"rounds": rounds, "command": COMMAND,
            "parameters": {"slots": SLOTS, "item_bytes": MIB, "others_items": OTHERS_ITEMS},
            "goals": _goals(runs), "runs": runs, "summary": found}


def enough(latency_ms, consume_ms):
    """By Little's law the budget brings an item in less time than the consumer takes."""
    return latency_ms / SLOTS < consume_ms


def items_of(latency_ms, consume_ms):
    """So many that the beginning is a small part; where the budget is the bound, 8 windows."""
    if not enough(latency_ms, consume_ms):
        return 8 * SLOTS
    if latency_ms == 0:
        return 2 * SLOTS
    items = max(LEAST_ITEMS, STARTS * latency_ms / consume_ms)
    return -(-round(items) // SLOTS) * SLOTS


def _round(setup, source, number, latency_ms, consume_ms):
    flags = {"latency_ms": latency_ms, "consume_us": 1000 * consume_ms, "check": "all",
             **window(SLOTS)}
    ours_items = setup.count(items_of(latency_ms, consume_ms), 2 * SLOTS)
    modes = _modes(setup, source, ours_items, baseline="warm", **flags)
    if latency_ms > 0:  # without one, items may come before so many are asked for
        check_window(modes["sluice"], SLOTS)
    modes.update({mode: run for mode, run in _modes(
        setup, source, setup.count(OTHERS_ITEMS, SLOTS), baseline=",".join(OTHERS),
        **flags).items() if mode in OTHERS})
    ours = whole(modes["sluice"])
    return [{"latency_ms": latency_ms, "consume_ms": consume_ms, "mode": mode, "round": number,
             "items": run["items"], "seconds": run["seconds"], "items_per_s": whole(run) / MIB,
             "steady_items_per_s": steady(run) / MIB, "wait_share": wait_share(run),
             "ours_over": ours / whole(run)} for mode, run in modes.items()]


def _modes(setup, source, items, **flags):
    return setup.bench.modes(source, stop_items=items, epochs=-(-items // 256) + 1, **flags)


def _goals(runs):
    lines = []
    for latency_ms, consume_ms in dict.fromkeys((run["latency_ms"], run["consume_ms"])
                                                for run in runs if run["latency_ms"] > 0):
        over = {run["mode"]: [] for run in runs}
        for run in runs:
            if (run["latency_ms"], run["consume_ms"]) == (latency_ms, consume_ms):
                over[run["mode"]].append(run["ours_over"])
        setting = f"{latency_ms} ms"
        step = f", {consume_ms} ms of computing"
        if latency_ms == LONGEST_MS:
            lines.append(verdict.at_least("Sluice over one of 8 slabs at a time" + step, setting,
                                          goals.WAVES, spread(over[SLABS])))
        if enough(latency_ms, consume_ms):
            lines.append(verdict.at_least("Sluice of itself without latency" + step, setting,
                                          goals.WARM, spread(over["warm"])))
    return lines
