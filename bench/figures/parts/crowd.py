"""Many processes at once, each bound by latency: what each gets of what it has alone."""
import os
import subprocess
import time

from runs import ALONE, read_results, steady, window
from spread import spread, summarize

PROCESSES = 64
SLOTS = 4
ITEM = 128 << 10
LATENCY_MS = 50
RUN_S = 15
ITEMS = 512


def measure(setup):
    folder = setup.folder(items=ITEMS, item_bytes=ITEM)
    processes = setup.count(PROCESSES, 4)
    # A process alone brings SLOTS items in a latency.
    items = round(setup.seconds(RUN_S) * SLOTS / (LATENCY_MS * 1e-3))
    flags = {"latency_ms": LATENCY_MS, "stop_items": items, "epochs": items // ITEMS + 1,
             **window(SLOTS, ITEM)}
    runs = []
    for number, source in setup.turns("crowd", setup.rounds(2), ("buffered",)):
        alone = _together(setup, f"{source}:{folder}", 1, flags)
        crowd = _together(setup, f"{source}:{folder}", processes, flags)
        fair = alone["each"][0]
        shares = [each / fair for each in crowd["each"]]
        runs.append({"source": source, "round": number, "alone": fair,
                     "share": spread(shares), "share_min": min(shares),
                     "share_median": spread(shares)["median"], "shares": shares,
                     "all_at_once": crowd["all_at_once"]})
    return {"parameters": {"processes": processes, "slots": SLOTS, "item_bytes": ITEM,
                           "latency_ms": LATENCY_MS, "items": items},
            "runs": runs,
            "summary": summarize(runs, ("source",),
                                 ("share_median", "share_min", "alone", "all_at_once"))}


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
