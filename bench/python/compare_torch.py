#!/usr/bin/env python3
"""Compares Sluice's Python package with PyTorch's own ways, and with the same in C++; in turns.

usage: compare_torch.py [OPTION...]
  --only LIST      redistributions, small, start-up, checkpoints [all]
  --rounds N       in which every way has its turn [11]
  --processes N    of the redistributions [8]
  --size N         of their square tensor [4096]
  --bytes N        of the checkpoint: 256M, 1G [1536M]
  --folder DIR     the checkpoint is made there, and removed afterwards [build]
  --venv DIR       PyTorch and other packages go there, and stay [build/venv-torch]
  --bench FILE     the program that does in C++ what the part small does
                   [build/bin/micro-bench]
  --wheel FILE     whose size is told [the newest of build/wheel]
  --quick          small sizes and 3 rounds: shows that it works, and no more
  --json FILE      parts that were measured replace those that are there
                   [build/results/python.json]
The package sluice is that of PYTHONPATH, or the one in the environment. All memory is what PyTorch
and the libraries allocate. Others have their turns in the best of the settings that are listed
here and in loads.py. Every element of every way is compared in every turn; ends with 1 if one is
wrong. tools/report/report.py shows the results.
"""
import argparse
import json
import mmap
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "bench/python"
sys.path[:0] = [str(ROOT / "bench/figures"), str(ROOT / "scripts")]

import loads  # noqa: E402  after the folders are known
import rounds  # noqa: E402
import torch_env  # noqa: E402
from rounds import SPAWN, Failure, call, free_port, positive, size_of, spread  # noqa: E402

PARTS = ("redistributions", "small", "start-up", "checkpoints")
# runai-model-streamer wants humanize, and the wheel of Sluice wants nanobind-backend.
PACKAGES = ("numpy", "safetensors", "runai-model-streamer", "humanize", "nanobind-backend")
TIMEOUT_S = 3600
HAND_WRITTEN = ("packed", "packed-each")
OWN = ("sluice", "sluice-sync")
# How memory comes to PyTorch. A result that is new in each call is faulted in unless malloc keeps
# what was freed. All ways run in each of these.
MEMORY = {"default": {},
          "kept": {"THP_MEM_ALLOC_ENABLE": "1", "MALLOC_MMAP_MAX_": "0",
                   "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(1 << 28)}}


def ratios(times, way, others):
    """Of each round: the time of the fastest of `others` over that of `way`."""
    return spread(min(times[other][i] for other in others) / own
                  for i, own in enumerate(times[way]))


def as_torchrun(python, processes, more, script, *arguments):
    """Runs ranks as torchrun does, with `more` in the environment. One that fails ends all."""
    environment = {key: value for key, value in os.environ.items()
                   if not re.match(r"SLUICE_(?!UCX_)|OMPI_|PMI|SLURM_", key)}
    environment.update(more, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()),
                       WORLD_SIZE=str(processes), LOCAL_WORLD_SIZE=str(processes),
                       OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
    with tempfile.TemporaryFile("w+") as said:
        ranks = [subprocess.Popen([python, str(script), *map(str, arguments)], stdout=said,
                                  stderr=said, env={**environment, "RANK": str(rank),
                                                    "LOCAL_RANK": str(rank)})
                 for rank in range(processes)]
        end = time.monotonic() + TIMEOUT_S
        try:
            while any(rank.poll() is None for rank in ranks):
                if any(rank.poll() for rank in ranks) or time.monotonic() > end:
                    break
                time.sleep(0.1)
        finally:
            wrong = any(rank.poll() != 0 for rank in ranks)
            for rank in ranks:
                if rank.poll() is None:
                    rank.kill()
                rank.wait()
        if wrong:
            said.seek(0)
            raise Failure(f"{script} failed:\n{said.read()[-3000:]}")


def fault_us():
    """Microseconds of the first touch of a page, more than of the second."""
    def touch(memory):
        begin = time.perf_counter()
        for page in range(0, len(memory), mmap.PAGESIZE):
            memory[page] = 1
        return time.perf_counter() - begin

    pages = 1 << 16
    with mmap.mmap(-1, pages * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        return (touch(memory) - touch(memory)) / pages * 1e6


def redistributions(options, python, folder):
    file = folder / "redistributions.json"
    cases, faults = [], spread(fault_us() for _ in range(options.rounds))
    for memory, more in MEMORY.items():
        as_torchrun(python, options.processes, more, HERE / "redistribute.py", "--json", file,
                    "--size", options.size, "--rounds", options.rounds)
        found = json.loads(file.read_text(encoding="utf-8"))
        cases += [redistribution(case, memory) for case in found["cases"]]
    return {"processes": options.processes, "size": options.size, "torch": found["torch"],
            "sluice": found["sluice"], "report": found["report"], "fault_us": faults,
            "cases": cases}


def redistribution(case, memory):
    times = case["times"]
    best = min(HAND_WRITTEN, key=lambda way: spread(times[way])["median"])
    return {"dtype": case["dtype"], "to": case["to"], "memory": memory, "packed": best,
            "plan_us": case["plan_us"], "time_us": {way: spread(one) for way, one in times.items()},
            "ratio": {own: {"redistribute": ratios(times, own, ["redistribute"]),
                            "packed": ratios(times, own, [best]),
                            "collective": ratios(times, own, ["collective"])} for own in OWN}}


def small(options, python, folder):
    """What Python costs beside C++: the difference of medians, round by round."""
    programs = {"c++": [options.bench, "small-sync"],
                **{way: [python, HERE / "small_sync.py", "--way", way]
                   for way in ("bound", "sync")}}
    syncs, starts = {name: [] for name in programs}, {name: [] for name in programs}
    shape = {}
    for number in range(options.rounds):
        for name in list(programs) if number % 2 == 0 else reversed(list(programs)):
            file = folder / "small.json"
            call([*SPAWN, 2, *programs[name], "--json", file],
                 variables={"OMP_NUM_THREADS": "1"})
            found = json.loads(file.read_text(encoding="utf-8"))
            syncs[name].append(spread(found["sync_us"])["median"])
            starts[name].append(spread(found["start_us"])["median"])
            shape = {"ranks": found["ranks"], "tensors": found["tensors"]}
    extra = {way: spread(own - base for own, base in zip(syncs[way], syncs["c++"]))
             for way in ("bound", "sync")}
    more = spread(own - base for own, base in zip(starts["bound"], starts["c++"]))
    return {**shape, "sync_us": {way: spread(one) for way, one in syncs.items()},
            "start_us": {way: spread(starts[way]) for way in ("c++", "bound")},
            "start_of_one_us": start_of_one(options, python, folder), "start_more_us": more,
            "more_us": extra}


def start_of_one(options, python, folder):
    times = []
    for _ in range(options.rounds):
        file = folder / "one.json"
        call([*SPAWN, 2, python, HERE / "small_sync.py", "--way", "bound", "--tensors", 1, "--json",
              file], variables={"OMP_NUM_THREADS": "1"})
        times.append(spread(json.loads(file.read_text(encoding="utf-8"))["start_us"])["median"])
    return spread(times)


def newest_wheel(options):
    if options.wheel:
        return options.wheel
    wheels = (ROOT / "build/wheel").rglob("sluice_mesh-*.whl")
    return max(wheels, key=lambda one: one.stat().st_mtime, default=None)


def start_up(options, python, _):
    """A new interpreter that imports, less one that does not."""
    def seconds(code):
        begin = time.monotonic()
        call([python, "-c", code])
        return time.monotonic() - begin

    seconds("import sluice")
    imports = spread((seconds("import sluice") - seconds("pass")) * 1e3
                     for _ in range(max(11, options.rounds)))
    wheel = newest_wheel(options)
    return {"import_ms": imports, "wheel_bytes": wheel and wheel.stat().st_size}


def checkpoints(options, python, _):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="checkpoint-", dir=options.folder))
    try:
        checkpoint = loads.Checkpoint(folder, options.bytes)
        ways = loads.Loads(python, checkpoint, call)
        chosen, tried = {}, []
        for case in loads.CASES:
            chosen[case], more = ways.best(case, options.tries)
            tried += more
        times = {case: {way: [] for way in chosen[case]} for case in loads.CASES}
        for number in range(options.rounds):
            for case in loads.CASES:
                for way, time_us in ways.turns(case, chosen[case], number % 2 == 1).items():
                    times[case][way].append(time_us)
        rows = []
        for case, all_times in times.items():
            for way, of in all_times.items():
                ratio = ratios(all_times, "sluice", [way])
                rows.append({"case": case, "way": way, "version": ways.versions[way],
                             "setting": chosen[case][way], "time_us": spread(of), "ratio": ratio})
        return {"bytes": checkpoint.bytes, "tensors": checkpoint.tensors, "rows": rows,
                "tried": tried}
    finally:
        shutil.rmtree(folder)


MEASURE = {"redistributions": redistributions, "small": small, "start-up": start_up,
           "checkpoints": checkpoints}


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--rounds", type=positive, default=11)
    parser.add_argument("--processes", type=positive, default=8)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--bytes", type=size_of, default=1536 << 20)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--venv", type=pathlib.Path, default=ROOT / "build/venv-torch")
    parser.add_argument("--bench", type=pathlib.Path, default=ROOT / "build/bin/micro-bench")
    parser.add_argument("--wheel", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "build/results/python.json")
    options = parser.parse_args()
    options.tries = loads.TRIES
    options.names = options.only.split(",")
    unknown = set(options.names) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if options.quick:
        options.rounds, options.size, options.bytes, options.tries = 3, 1024, 128 << 20, 1
    if options.processes < 2:
        parser.error("--processes takes 2 or more")
    return options


def main():
    options = parse()
    options.folder.mkdir(parents=True, exist_ok=True)
    try:
        environment = torch_env.make(options.venv, PACKAGES)
    except torch_env.Failure as error:
        raise Failure(error) from error
    command = "bench/python/compare_torch.py"
    if set(options.names) != set(PARTS):
        command += f" --only {','.join(options.names)}"
    parts = {"head": {}}  # comes first
    if options.json.exists():
        parts = json.loads(options.json.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="compare-torch-") as folder:
        for name in options.names:
            begin = time.monotonic()
            found = MEASURE[name](options, environment.python, pathlib.Path(folder))
            head = {**rounds.head(f"bench/python/compare_torch.py --only {name}", options.rounds),
                    "quick": options.quick}
            parts = {**parts, "head": {**head, "command": command}, name: {**head, **found}}
            rounds.write(options.json, parts)
            print(f"compare_torch.py: {name} took {(time.monotonic() - begin) / 60:.1f} minutes",
                  file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    rounds.main_of(main)
