"""What files cost the processor: read past the page cache, through it, and mapped. Where they are
not in the page cache, how often the consumer waits for a page: mmap.json."""
import json
import os

import goals
import processes
import verdict
from runs import ALONE, MIB, Bench
from setup import ITEMS, Setup
from shards import Shards, files
from spread import summarize

# Way: source, and whether the kernel is told what is needed next.
WAYS = {"file": ("file", 1), "buffered": ("buffered", 1), "mmap": ("mmap", 1),
        "mmap, no read-ahead": ("mmap", 0)}
SLOTS = 16
EPOCHS = 4

COMMAND = ("sluice-bench stream --source file:DIR|buffered:DIR|mmap:DIR --read-ahead 1|0 "
           f"--slots {SLOTS} --piece-bytes 1M --epochs {EPOCHS}|1 --check none --touch 1|0")


def measure(job):
    rounds = job.rounds(5)
    bench = Bench(job.bin / "sluice-bench", job.root / "scripts/mpirun.sh")
    setup = Setup(bench, Shards(bench, job.folder), job.bin, rounds, job.quick)
    folder = setup.folder(items=setup.count(ITEMS, 64))
    runs = []
    for number, way in setup.turns("mmap", rounds, WAYS):
        runs.append({"way": way, "round": number, **_round(bench, folder, way)})
    _compare(runs)
    found = summarize(runs, ("way",), ("cpu_s_per_gib", "delivery_cpu_s_per_gib", "copied_share",
                                       "buffered_over", "cold_faults_per_gib", "cold_gb_per_s",
                                       "gb_per_s"))
    mapped = next(row for row in found if row["way"] == "mmap")
    return {"rounds": rounds, "command": COMMAND,
            "parameters": {"slots": SLOTS, "item_bytes": MIB, "epochs": EPOCHS},
            "goals": [verdict.at_least("CPU seconds per GiB of `buffered:` over those of `mmap:`",
                                       "in the page cache", goals.MAPPED_CPU,
                                       mapped["buffered_over"])],
            "runs": runs, "summary": found}


def _compare(runs):
    through_cache = {run["round"]: run["cpu_s_per_gib"] for run in runs
                     if run["way"] == "buffered"}
    for run in runs:
        run["buffered_over"] = through_cache[run["round"]] / max(run["cpu_s_per_gib"], 1e-6)


def _round(bench, folder, way):
    """In the page cache, with a consumer that looks at each page and one that does not. Then not in
    the page cache, with the first one."""
    for file in files(folder):
        _read(file)
    looked = _run(bench, folder, way, EPOCHS, 1)
    delivered = _run(bench, folder, way, EPOCHS, 0)
    for file in files(folder):
        _forget(file)
    cold = _run(bench, folder, way, 1, 1)
    gib = cold["bytes"] / (1 << 30)
    return {"cpu_s_per_gib": looked["cpu_s_per_gib"],
            "delivery_cpu_s_per_gib": delivered["cpu_s_per_gib"],
            "copied_share": looked["bytes_copied"] / looked["bytes"],
            "gb_per_s": looked["gb_per_s"], "cold_gb_per_s": cold["gb_per_s"],
            "cold_faults_per_gib": cold["major_faults"] / gib}


def _run(bench, folder, way, epochs, touch):
    source, read_ahead = WAYS[way]
    command, file = bench.command(f"{source}:{folder}", read_ahead=read_ahead, epochs=epochs,
                                  touch=touch, slots=SLOTS, piece_bytes=MIB,
                                  budget_bytes=(SLOTS + 1) * MIB)
    processes.run(command, env=ALONE)
    found = json.loads(file.read_text(encoding="utf-8"))
    file.unlink()
    if found["errors"]:
        raise RuntimeError(f"a run failed: {found['errors']}")
    return found["results"][0]


def _read(file):
    with open(file, "rb", buffering=0) as source:
        block = bytearray(MIB)
        while source.readinto(block) > 0:
            pass


def _forget(file):
    """Takes the file out of the page cache."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
