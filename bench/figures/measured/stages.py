"""Three stages, storage, device and trainer, and how much of them overlaps: stages.json. The device
is emulated: a thread that copies, at most so fast."""
import json

import goals
import processes
import verdict
from runs import ALONE, MIB, Bench, seconds
from setup import Setup
from shards import Shards
from spread import summarize

# As the note has them: 1.5 GB/s of storage, 18 GB/s to the device, and training that takes longest.
ITEM_BYTES = 8 * MIB
LATENCY_MS, SLOTS = 43, 8
DEVICE_GB_PER_S = 18
STEPS_MS = (4, 8, 15)  # with the first one the trainer asks for more than storage brings
EPOCHS = 3

COMMAND = (f"sluice-bench stream --source file:DIR --latency-ms {LATENCY_MS} --slots {SLOTS} "
           f"--piece-bytes 8M --device emulated:{DEVICE_GB_PER_S} --device-buffers 4 --consume-us "
           f"{'|'.join(f'{step}000' for step in STEPS_MS)} --epochs {EPOCHS} "
           "--progress-thread 0|1 --check none")


def measure(job):
    rounds = job.rounds(5)
    bench = Bench(job.bin / "sluice-bench", job.root / "scripts/mpirun.sh")
    setup = Setup(bench, Shards(bench, job.folder), job.bin, rounds, job.quick)
    folder = setup.folder(items=32, item_bytes=ITEM_BYTES, items_per_object=8)
    settings = [(step_ms, thread) for step_ms in STEPS_MS for thread in (0, 1)]
    runs = [{"step_ms": step_ms, "progress_thread": thread, "round": number,
             **_run(setup, folder, step_ms, thread)}
            for number, (step_ms, thread) in setup.turns("stages", rounds, settings)]
    found = summarize(runs, ("step_ms", "progress_thread"), (
        "overlap", "gb_per_s", "reads_at_once", "copies_at_once", "wait_share"))
    return {"rounds": rounds, "command": COMMAND,
            "parameters": {"latency_ms": LATENCY_MS, "slots": SLOTS, "item_bytes": ITEM_BYTES,
                           "device_gb_per_s": DEVICE_GB_PER_S, "epochs": EPOCHS},
            "goals": [verdict.at_least(
                "overlap", f"a step of {row['step_ms']} ms, "
                f"{'with' if row['progress_thread'] else 'without'} a progress thread",
                goals.OVERLAP, row["overlap"]) for row in found if row["step_ms"] > STEPS_MS[0]],
            "runs": runs, "summary": found}


def _run(setup, folder, step_ms, thread):
    command, file = setup.bench.command(
        f"file:{folder}", latency_ms=LATENCY_MS, device=f"emulated:{DEVICE_GB_PER_S}",
        device_buffers=4, consume_us=1000 * step_ms, epochs=setup.count(EPOCHS, 1),
        progress_thread=thread, slots=SLOTS, piece_bytes=ITEM_BYTES,
        budget_bytes=SLOTS * ITEM_BYTES)
    processes.run(command, env=ALONE)
    found = json.loads(file.read_text(encoding="utf-8"))
    file.unlink()
    if found["errors"]:
        raise RuntimeError(f"a run failed: {found['errors']}")
    result = found["results"][0]
    if result["peak"]["slots"] != SLOTS:
        raise RuntimeError(f"{result['peak']['slots']} of {SLOTS} slots were used")
    wall_s, stage_s = seconds(result), result["stage_s"]
    # Sums over items: of reads, which overlap each other, it is how many there were at once.
    return {"overlap": result["overlap"], "gb_per_s": result["gb_per_s"],
            "reads_at_once": stage_s["read"] / wall_s, "copies_at_once": stage_s["copy"] / wall_s,
            "wait_share": stage_s["wait"] / wall_s}
