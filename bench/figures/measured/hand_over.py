"""Nanoseconds to take an item that is there and to give it back, of a stream and of a queue with a
lock, in one process and in many at once: hand-over.json."""
import json
import os
import subprocess

import goals
import verdict
from spread import spread, summarize

# As the program calls them: nothing else goes on, or the other thread fills up meanwhile.
WAYS = ("stream", "queue", "stream, filling", "queue, filling")
PROCESSES = (1, 64)
NICE = 10  # so that this machine can still be used
SECONDS = {1: 3, 64: 10}

COMMAND = "hand_over_bench --seconds 3|10, 1 process and 64 at once"


def measure(job):
    rounds = job.rounds(5)
    runs = []
    for number in range(rounds):
        for processes in PROCESSES:
            copies = min(processes, 4) if job.quick else processes
            runs += _round(job, number, copies, 0.5 if job.quick else SECONDS[processes])
    found = summarize(runs, ("processes", "way"), ("wall_ns", "cpu_ns", "queue_over"))
    return {"rounds": rounds, "command": COMMAND, "parameters": _parameters(job),
            "goals": [verdict.at_least(
                "the queue's time over the stream's" + row["way"].removeprefix("stream"),
                f"{row['processes']} process{'es' * (row['processes'] > 1)}", goals.HAND_OVER,
                row["queue_over"])
                for row in found if "queue_over" in row], "runs": runs, "summary": found}


def _round(job, number, processes, seconds):
    """A line for each way: the medians over all processes of each one's own median."""
    files = [job.folder / f"hand-over-{copy}.json" for copy in range(processes)]
    started = [subprocess.Popen(
        ["nice", "-n", str(NICE if processes > 1 else 0), job.bin / "hand_over_bench",
         "--seconds", str(seconds), "--json", file], stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True) for file in files]
    failures = []
    for process in started:
        _, errors = process.communicate(timeout=600)
        if process.returncode != 0:
            failures.append(f"hand_over_bench ended with {process.returncode}: {errors.strip()}")
    if failures:
        raise RuntimeError(failures[0])
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    for way in WAYS:
        each = [one[way] for one in found]
        row = {"processes": processes, "way": way, "round": number,
               **{key: spread(one[key]["median"] for one in each)["median"]
                  for key in ("wall_ns", "cpu_ns")},
               "turns": sum(one["turns"] for one in each),
               "left_out": sum(one["left_out"] for one in each)}
        if way.startswith("stream"):
            queue = way.replace("stream", "queue")
            row["queue_over"] = spread(one[queue]["wall_ns"]["median"] /
                                       one[way]["wall_ns"]["median"] for one in found)["median"]
        yield row


def _parameters(job):
    file = job.folder / "hand-over-0.json"
    one = json.loads(file.read_text(encoding="utf-8"))
    return {**{key: one[key] for key in ("depth", "turn_items", "item_bytes")}, "nice": NICE,
            "cpus": len(os.sched_getaffinity(0))}
