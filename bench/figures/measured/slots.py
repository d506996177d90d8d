"""Throughput of a stream against its slots, at three latencies: slots.json."""
import bound
import goals
import verdict
from runs import MIB, Bench, full_window, steady, window
from setup import ITEMS, Setup
from shards import Shards
from spread import spread, summarize

SLOTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
LATENCIES_MS = (20, 50, 200)
BASE_SLOTS = 64  # without latency: as fast as this machine reads
WINDOWS = {20: 30, 50: 16, 200: 6}  # so many times its slots
MOST_ITEMS = 4096

COMMAND = ("sluice-bench stream --source buffered:DIR --latency-ms 0|20|50|200 --slots 1..256 "
           "--piece-bytes 1M --stop-items N --check none")


def measure(job):
    rounds = job.rounds(5)
    bench = Bench(job.bin / "sluice-bench", job.root / "scripts/mpirun.sh")
    setup = Setup(bench, Shards(bench, job.folder), job.bin, rounds, job.quick)
    source = f"buffered:{setup.folder()}"
    runs = []
    for number, latency_ms in setup.turns("slots", rounds, LATENCIES_MS):
        base = _base(setup, source)
        for slots in setup.some(SLOTS):
            run = _run(setup, source, slots, latency_ms, slots * WINDOWS[latency_ms])
            most = bound.throughput(base, slots * MIB, latency_ms * 1e-3, MIB)
            runs.append({"latency_ms": latency_ms, "slots": slots, "round": number, "base": base,
                         "steady": steady(run), "of_bound": steady(run) / most})
    found = summarize(runs, ("latency_ms", "slots"), ("steady", "base", "of_bound"))
    return {"rounds": rounds, "command": COMMAND,
            "parameters": {"item_bytes": MIB, "base_slots": BASE_SLOTS},
            "base": spread(run["base"] for run in runs),
            "goals": [verdict.at_least(
                "of what the slots allow", f"{row['latency_ms']} ms, {row['slots']} slots",
                goals.BOUND, row["of_bound"]) for row in found], "runs": runs, "summary": found}


def _base(setup, source):
    """What is in the page cache may come before so many are under way."""
    items = setup.count(MOST_ITEMS, 4 * BASE_SLOTS)
    return steady(setup.bench.stream(source, stop_items=items, epochs=items // ITEMS + 1,
                                     **window(BASE_SLOTS)))


def _run(setup, source, slots, latency_ms, items):
    items = setup.count(min(items, MOST_ITEMS), 4 * slots)
    return full_window(setup.bench, source, slots, items, ITEMS, latency_ms=latency_ms)
