"""Many processes at once: what each gets of what it has alone, and all of them together. With a
latency each is bound by it. Without one they share the processors: all bytes are cached."""
import os
import subprocess
import time

from runs import ALONE, read_results, steady, window
from spread import spread, summarize

SOURCE = "buffered"
PROCESSES = 64
SLOTS = 4
ITEM = 128 << 10
LATENCIES_MS = (50, 0)
RUN_S = 15
CACHED_ITEMS = 16384  # for each process, without latency
ITEMS = 512


def measure(setup):
    folder = setup.folder(items=ITEMS, item_bytes=ITEM)
    processes = setup.count(PROCESSES, 4)
    runs = []
    for number, latency_ms in setup.turns("crowd", setup.rounds(3), LATENCIES_MS):
        items = _items(setup, latency_ms)
        flags = {"latency_ms": latency_ms, "stop_items": items, "epochs": items // ITEMS + 1,
                 **window(SLOTS, ITEM)}
        alone = _together(setup, f"{SOURCE}:{folder}", 1, flags)
        crowd = _together(setup, f"{SOURCE}:{folder}", processes, flags)
        fair = alone["each"][0]
        shares = [each / fair for each in crowd["each"]]
        runs.append({"source": SOURCE, "latency_ms": latency_ms, "round": number, "items": items,
                     "alone": fair, "share": spread(shares), "share_min": min(shares),
                     "share_median": spread(shares)["median"], "shares": shares,
                     "least_of_median": min(shares) / spread(shares)["median"],
                     "together_of_alone": sum(shares), "all_at_once": crowd["all_at_once"]})
    return {"parameters": {"processes": processes, "slots": SLOTS, "item_bytes": ITEM},
            "runs": runs,
            "summary": summarize(runs, ("source", "latency_ms"),
                                 ("share_median", "share_min", "least_of_median",
                                  "together_of_alone", "alone", "all_at_once"))}


def _items(setup, latency_ms):
    """For each process. With a latency, one that is alone brings SLOTS items in a latency."""
    if latency_ms == 0:
        return setup.count(CACHED_ITEMS, ITEMS)
    return round(setup.seconds(RUN_S) * SLOTS / (latency_ms * 1e-3))


def _together(setup, source, count, flags):
    """Steady bytes per second of each, and for which part of the longest run all were there."""
    commands = [setup.bench.command(source, **flags) for _ in range(count)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env=dict(os.environ, **ALONE)) for command, _ in commands]
    begins = [_wait_for_header(process) for process in started]
    ends = []
    for process, (command, _) in zip(started, commands):
        output = process.communicate()[0]
        ends.append(time.monotonic())
        if process.returncode != 0:
            raise RuntimeError(f"{command}: {output.decode(errors='replace')}")
    runs = [read_results(file)["sluice"] for _, file in commands]
    longest = max(run["seconds"] for run in runs)
    return {"each": [steady(run) for run in runs],
            "all_at_once": (min(ends) - max(begins)) / longest}


def _wait_for_header(process):
    """A process prints its settings just before it opens the stream."""
    process.stdout.readline()
    return time.monotonic()
