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
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "bench/python"
sys.path[:0] = [str(ROOT / "bench/figures"), str(ROOT / "scripts")]

import loads  # noqa: E402  after the folders are known
import rounds  # noqa: E402
import torch_env  # noqa: E402
from rounds import (SPAWN, Failure, call, free_port, positive, results_of,  # noqa: E402
                    size_of, spread, take_turns)

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


def redistributions(options, python):
    cases, faults = [], spread(fault_us() for _ in range(options.rounds))
    for memory, more in MEMORY.items():
        found = results_of([python, "-m", "torch.distributed.run", "--nproc-per-node",
                            options.processes, "--master-port", free_port(),
                            HERE / "redistribute.py", "--size", options.size, "--rounds",
                            options.rounds], timeout=TIMEOUT_S,
                           variables={"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **more})
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


def small(options, python):
    """What Python costs beside C++: the difference of medians, round by round."""
    script = [python, HERE / "small_sync.py", "--way"]
    programs = {"c++": [options.bench, "small-sync"], "bound": [*script, "bound"],
                "sync": [*script, "sync"], "one": [*script, "bound", "--tensors", 1]}

    def turn(way):
        return {way: results_of([*SPAWN, 2, *programs[way]], variables={"OMP_NUM_THREADS": "1"})}

    def medians(key):
        return {way: [spread(one[way][key])["median"] for one in found] for way in programs}

    def more(times, way):
        return spread(own - base for own, base in zip(times[way], times["c++"]))

    [(_, found)] = take_turns(options.rounds, [{}],
                              lambda: [lambda way=way: turn(way) for way in programs])
    syncs, starts = medians("sync_us"), medians("start_us")
    return {**{key: found[0]["c++"][key] for key in ("ranks", "tensors")},
            "sync_us": {way: spread(syncs[way]) for way in ("c++", "bound", "sync")},
            "start_us": {way: spread(starts[way]) for way in ("c++", "bound")},
            "start_of_one_us": spread(starts["one"]), "start_more_us": more(starts, "bound"),
            "more_us": {way: more(syncs, way) for way in ("bound", "sync")}}


def newest_wheel(options):
    if options.wheel:
        return options.wheel
    wheels = (ROOT / "build/wheel").rglob("sluice_mesh-*.whl")
    return max(wheels, key=lambda one: one.stat().st_mtime, default=None)


def start_up(options, python):
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


def checkpoints(options, python):
    with tempfile.TemporaryDirectory(prefix="checkpoint-", dir=options.folder) as folder:
        checkpoint = loads.made(python, pathlib.Path(folder, "model.safetensors"), options.bytes)
        ways = loads.Loads(python, checkpoint)
        chosen, tried = {}, []
        for case in loads.CASES:
            chosen[case], more = ways.best(case, options.tries)
            tried += more
        found = take_turns(options.rounds, [{"case": case} for case in loads.CASES],
                           lambda case: ways.turns(case, chosen[case]))
        return {"bytes": checkpoint.bytes, "tensors": checkpoint.tensors,
                "rows": rounds.rows_of(found, "sluice"), "tried": tried}


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
    for name in options.names:
        begin = time.monotonic()
        found = MEASURE[name](options, environment.python)
        head = {**rounds.head(f"bench/python/compare_torch.py --only {name}", options.rounds),
                "quick": options.quick}
        parts = {**parts, "head": {**head, "command": command}, name: {**head, **found}}
        rounds.write(options.json, parts)
        print(f"compare_torch.py: {name} took {(time.monotonic() - begin) / 60:.1f} minutes",
              file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    rounds.main_of(main)
