"""A consumer with a step of its own: how long it waits, and how much of both overlaps."""
from runs import MIB, check_window, steady, window
from setup import epochs
from spread import summarize

SLOTS = 64
LATENCY_MS = 50
RUN_S = 4
STEPS = (1.2, 1.0)  # times the production time of an item
GENERATE_MS = 7
CONSUME_US = 2500
GENERATED_S = 3


def measure(setup):
    folder = setup.folder()
    runs = []
    for number, source in setup.turns("pacing", setup.rounds(3), ("buffered", "file")):
        runs += [{"source": source, "round": number, **run}
                 for run in _paced(setup, f"{source}:{folder}")]
    generated = []
    settings = [(after, thread) for after in (0, 1) for thread in (1, 0)]
    for number, (after, thread) in setup.turns("generator", setup.rounds(3), settings):
        generated.append({"round": number, **_generated(setup, after, thread)})
    return {"parameters": {"slots": SLOTS, "latency_ms": LATENCY_MS, "item_bytes": MIB,
                           "generate_ms": GENERATE_MS, "consume_us": CONSUME_US},
            "runs": runs,
            "summary": summarize(runs, ("source", "step", "progress_thread"),
                                 ("stall_share", "overlap", "production_us")),
            "generator_runs": generated,
            "generator_summary": summarize(generated, ("after_update", "progress_thread"),
                                           ("speed_up", "seconds"))}


def _paced(setup, source):
    """Paced by the production time that an unpaced run has just had."""
    flags = {"latency_ms": LATENCY_MS, **window(SLOTS)}
    # 64 MiB in flight at 50 ms are about 1.3 GB/s.
    count = epochs(1.3e9, setup.seconds(RUN_S))
    unpaced = setup.bench.stream(source, epochs=count, **flags)
    check_window(unpaced, SLOTS)
    production_s = MIB / steady(unpaced)
    count = epochs(steady(unpaced), setup.seconds(RUN_S))
    for step in STEPS:
        for thread in (1, 0):
            step_s = step * production_s
            run = setup.bench.stream(source, epochs=count, consume_us=1e6 * step_s,
                                     progress_thread=thread, **flags)
            ideal_s = run["first_item_s"] + run["items"] * step_s
            yield {"step": step, "progress_thread": thread, "production_us": 1e6 * production_s,
                   "step_us": 1e6 * step_s, "stall_share": run["stall_share"],
                   "overlap": ideal_s / run["seconds"], "items": run["items"],
                   "seconds": run["seconds"], "first_item_s": run["first_item_s"]}


def _generated(setup, after_update, thread):
    """`after_update` 1: the generator begins an item after the update with the one before."""
    items = max(1, round(setup.seconds(GENERATED_S) / (GENERATE_MS * 1e-3)))
    run = setup.bench.stream("generator", items=items, item_bytes=MIB, generate_ms=GENERATE_MS,
                             consume_us=CONSUME_US, after_update=after_update,
                             progress_thread=thread)
    step_s = CONSUME_US * 1e-6
    make_s = GENERATE_MS * 1e-3
    in_turn_s = items * (make_s + step_s)
    return {"after_update": after_update, "progress_thread": thread, "items": items,
            "seconds": run["seconds"], "speed_up": in_turn_s / run["seconds"]}
