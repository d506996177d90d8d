"""Against fio: throughput and processor time of reads around the page cache, in pairs."""
import json

import processes
from runs import GIB, MIB, check_window, steady, whole, window
from shards import files
from spread import spread, summarize

SIZES = (128 << 10, MIB, 4 * MIB)
DEPTH = 32
TOTAL = 512 * MIB  # of the files, which are read several times over
RUN_S = 2
GUESS = 1.2e9


def measure(setup):
    runs = []
    start = _start_cost(setup)
    rate = dict.fromkeys(SIZES, GUESS)
    for number, size in setup.turns("disk", setup.rounds(9), setup.some(SIZES)):
        folder = _folder(setup, size)
        loops = max(1, round(rate[size] * setup.seconds(RUN_S) / TOTAL))
        # Who is first changes: the second one may find what the first one has left behind.
        order = (_fio, _ours) if number % 2 else (_ours, _fio)
        pair = {}
        for way in order:
            pair.update(way(setup, folder, size, loops))
        rate[size] = pair["fio_bytes_per_s"]
        gib = loops * TOTAL / GIB
        runs.append({"size": size, "round": number, "loops": loops, **pair,
                     **_ratios(pair, gib, start)})
    values = ("whole_ratio", "steady_ratio", "cpu_ratio", "cpu_ratio_without_start", "whole",
              "fio_bytes_per_s", "cpu_s_per_gib", "fio_cpu_s_per_gib",
              "cpu_s_per_gib_without_start", "fio_cpu_s_per_gib_without_start")
    return {"parameters": {"depth": DEPTH, "file_bytes": TOTAL, "files": 8, **start}, "runs": runs,
            "summary": summarize(runs, ("size",), values)}


def _folder(setup, size):
    return setup.folder(items=TOTAL // size, item_bytes=size, items_per_object=64 * MIB // size)


def _ratios(pair, gib, start):
    cost = {"cpu_s_per_gib": pair["cpu_s"] / gib, "fio_cpu_s_per_gib": pair["fio_cpu_s"] / gib,
            "cpu_s_per_gib_without_start": (pair["cpu_s"] - start["start_cpu_s"]) / gib,
            "fio_cpu_s_per_gib_without_start": (pair["fio_cpu_s"] - start["fio_start_cpu_s"]) / gib}
    return {**cost,
            "whole_ratio": pair["whole"] / pair["fio_bytes_per_s"],
            "steady_ratio": pair["steady"] / pair["fio_bytes_per_s"],
            "cpu_ratio": cost["cpu_s_per_gib"] / cost["fio_cpu_s_per_gib"],
            "cpu_ratio_without_start": (cost["cpu_s_per_gib_without_start"] /
                                        cost["fio_cpu_s_per_gib_without_start"])}


def _start_cost(setup):
    """The processor time of both for next to nothing."""
    folder = _folder(setup, MIB)
    ours = [setup.bench.stream(f"file:{folder}", stop_items=1, items=1, **window(1))["cpu_s"]
            for _ in range(setup.count(5, 1))]
    fio = [_run_fio(folder, MIB, ["--number_ios=1"])[1].cpu_s for _ in range(setup.count(5, 1))]
    return {"start_cpu_s": spread(ours)["median"], "fio_start_cpu_s": spread(fio)["median"]}


def _ours(setup, folder, size, loops):
    run = setup.bench.stream(f"file:{folder}", epochs=loops, **window(DEPTH, size))
    check_window(run, DEPTH)
    return {"whole": whole(run), "steady": steady(run), "seconds": run["seconds"],
            "first_item_s": run["first_item_s"], "cpu_s": run["cpu_s"]}


def _fio(_, folder, size, loops):
    read, finished = _run_fio(folder, size, [f"--loops={loops}"])
    if read["io_bytes"] != loops * TOTAL:
        raise RuntimeError(f"fio read {read['io_bytes']} bytes, not {loops * TOTAL}")
    return {"fio_bytes_per_s": read["io_bytes"] / (read["runtime"] * 1e-3),
            "fio_seconds": read["runtime"] * 1e-3, "fio_cpu_s": finished.cpu_s}


def _run_fio(folder, size, more):
    names = ":".join(str(file) for file in files(folder))
    finished = processes.run(
        ["fio", "--name=read", "--rw=read", "--direct=1", "--ioengine=io_uring",
         f"--bs={size}", f"--iodepth={DEPTH}", f"--filename={names}",
         "--file_service_type=sequential", "--output-format=json", *more])
    report = finished.output[finished.output.index("{"):]
    return json.loads(report)["jobs"][0]["read"], finished
