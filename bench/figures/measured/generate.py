"""Generation beside training, in each order, in turns with a loop that does one after the other:
generate.json. The times are constant, and those of the note: 7 : 2.5."""
import json

import goals
import processes
import verdict
from runs import ALONE, Bench, seconds
from setup import Setup
from spread import summarize

ORDERS = ("free", "after-update", "one-ahead")
GENERATE_MS, CONSUME_US = 7, 2500
ITEMS, ITEM_BYTES = 150, 64 << 10

COMMAND = (f"sluice-bench stream --source generator --items {ITEMS} --item-bytes 64K --generate-ms "
           f"{GENERATE_MS} --consume-us {CONSUME_US} --generate-order {'|'.join(ORDERS)} "
           "--progress-thread 0|1 --baseline loop")


def measure(job):
    rounds = job.rounds(5)
    bench = Bench(job.bin / "sluice-bench", job.root / "scripts/mpirun.sh")
    setup = Setup(bench, None, job.bin, rounds, job.quick)
    settings = [(order, thread) for thread in (0, 1) for order in ORDERS]
    runs = [{"order": order, "progress_thread": thread, "round": number,
             **_run(setup, order, thread)}
            for number, (order, thread) in setup.turns("generate", rounds, settings)]
    hashes = {run[key] for run in runs for key in ("item_hash", "loop_item_hash")}
    if len(hashes) != 1:
        raise RuntimeError(f"other items come with overlap than without: {hashes}")
    found = summarize(runs, ("order", "progress_thread"), (
        "speed_up", "of_ideal", "of_loop", "staleness_max", "seconds", "loop_seconds"))
    return {"rounds": rounds, "command": COMMAND,
            "parameters": {"generate_ms": GENERATE_MS, "consume_us": CONSUME_US, "items": ITEMS,
                           "item_bytes": ITEM_BYTES, "item_hash": hashes.pop()},
            "goals": [*_goals(found, "one-ahead", "of_ideal", goals.ONE_AHEAD,
                              "of the most that overlap allows"),
                      *_goals(found, "after-update", "of_loop", goals.AFTER_UPDATE,
                              "of a plain loop")],
            "runs": runs, "summary": found}


def _run(setup, order, thread):
    command, file = setup.bench.command(
        "generator", items=setup.count(ITEMS, 20), item_bytes=ITEM_BYTES, generate_ms=GENERATE_MS,
        consume_us=CONSUME_US, generate_order=order, progress_thread=thread, baseline="loop",
        check="all")
    processes.run(command, env=ALONE)
    found = json.loads(file.read_text(encoding="utf-8"))
    file.unlink()
    ours, loop = found["results"]
    if found["errors"] or ours["wrong"] or loop["wrong"]:
        raise RuntimeError(f"a run failed: {found['errors']}")
    return {"seconds": seconds(ours), "loop_seconds": seconds(loop),
            "speed_up": ours["speed_up"], "of_ideal": ours["speed_up"] / ours["speed_up_ideal"],
            "of_loop": seconds(loop) / seconds(ours), "staleness_max": ours["staleness_max"],
            "item_hash": ours["item_hash"], "loop_item_hash": loop["item_hash"]}


def _goals(summary, order, key, least, words):
    return [verdict.at_least(
        f"`{order}`: {words}",
        f"{'with' if row['progress_thread'] else 'without'} a progress thread", least, row[key])
        for row in summary if row["order"] == order]
