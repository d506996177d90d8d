"""How the experiments' commands run, and which numbers count."""
import json
import re
import subprocess
import time

import members as sync
from rounds import Failure, call, out_of_page_cache, results_of, spread

MIB, GIB = 1 << 20, 1 << 30
# Otherwise Open MPI starts a daemon beside each process that runs without mpirun.
ALONE = {"OMPI_MCA_ess_singleton_isolated": "1", "no_proxy": "127.0.0.1"}


def figures(result):
    """Of one result of `sluice-bench stream`. The steady rate is of the second half: a whole window
    has been read when the first item comes, so the time after it would promise too much."""
    seconds, items = result["time_us"]["median"] / 1e6, result["items"]
    found = {"time_us": seconds * 1e6, "item_us": seconds * 1e6 / items, "items": items,
             "gb_per_s": result["bytes"] / seconds / 1e9, "requests": result["requests"],
             "wait_share": result["stage_s"]["wait"] / seconds}
    if 1 < items and result["half_s"] < seconds:
        found["steady_gb_per_s"] = (result["bytes"] * (items - items // 2) / items /
                                    (seconds - result["half_s"]) / 1e9)
    for key in ("first_item_s", "half_s", "stall_share", "overlap", "cpu_s_per_gib", "speed_up",
                "speed_up_ideal"):
        if result.get(key) is not None:
            found[key] = float(result[key])
    for key in ("connections", "hedges", "major_faults", "bytes_copied", "staleness_max",
                "item_hash"):
        if result.get(key) is not None:
            found[key] = result[key]
    # Sums over items: of reads, which overlap each other, it is how many there were at once.
    for stage, key in (("read", "reads_at_once"), ("copy", "copies_at_once")):
        found[key] = result["stage_s"][stage] / seconds
    for name in ("memory", "peak", "limit"):
        found.update({f"{name}_{key}": value for key, value in (result.get(name) or {}).items()
                      if isinstance(value, int)})
    if "speed_up" in found:
        found["of_ideal"] = found["speed_up"] / found["speed_up_ideal"]
    return found


def run_stream(job, command, label=""):
    """{way: numbers}. The run must have had all its slots in use, where a latency keeps them so."""
    found = results_of(job.words(command), variables=ALONE)
    config, ways = found["config"], {}
    for result in found["results"]:
        own = result["case"] == "sluice"
        if (own and config["latency_ms"] > 0 and not config["hedge"] and config["slots"] > 0 and
                result["peak"]["slots"] < min(config["slots"], result["requests"])):
            raise Failure(f"{result['peak']['slots']} of {config['slots']} slots were used")
        ways[label if own and label else result["case"]] = figures(result)
    return ways


def stream(job, experiment, **case):
    def turn(label, columns):
        folder = job.shards(*experiment.shards)
        if case.get("pages") == "cold":
            out_of_page_cache(job.files(folder))
        return run_stream(job, job.command(experiment, folder, **case, **columns), label)

    return [lambda label=label, columns=columns: turn(label, columns)
            for label, columns in experiment.labels.items()]


def same_items(found, **_):
    if len({own.pop("item_hash") for own in found.values()}) != 1:
        raise Failure("other items come with overlap than without")


def of_allowed(found, budget_mib, **_):
    """Growth of memory over budget, device buffers and what may come on top."""
    for own in found.values():
        if own.get("memory_growth_bytes") is not None:
            own["of_allowed"] = own["memory_growth_bytes"] / (
                budget_mib * MIB + 16 * MIB + 4096 * own["peak_slots"])


def pacing(job, experiment, **case):
    """Steps of the consumer's are so many times the production time that an unpaced run has had."""
    def turn():
        def run(consume_us, thread, label):
            return run_stream(job, job.command(experiment, job.shards(*experiment.shards), **case,
                                               consume_us=consume_us, thread=thread), label)

        found = run(0, 1, "unpaced")
        production_us = MIB / found["unpaced"]["steady_gb_per_s"] / 1e3
        for step in (1.2, 1.0):
            for thread in (1, 0):
                label = f"step {step}, {'with' if thread else 'without'} a progress thread"
                step_us = step * production_us
                own = found.setdefault(label, run(round(step_us, 1), thread, label)[label])
                ideal_us = own["first_item_s"] * 1e6 + own["items"] * step_us
                own["of_ideal"] = ideal_us / own["time_us"]
        return found

    return [turn]


def disk(job, experiment, size):
    total = 512 * MIB
    folder = job.shards(total // size, size, 64 * MIB // size)
    command = job.command(experiment, folder, size=size)

    def fio():
        names = ":".join(str(file) for file in job.files(folder))
        output = call(["fio", "--name=read", "--rw=read", "--direct=1", "--ioengine=io_uring",
                       f"--bs={size}", "--iodepth=32", f"--filename={names}", "--loops=5",
                       "--file_service_type=sequential", "--output-format=json"])
        one = json.loads(output[output.index("{"):])["jobs"][0]
        read, seconds = one["read"], one["read"]["runtime"] * 1e-3
        if read["io_bytes"] != 5 * total:
            raise Failure(f"fio read {read['io_bytes']} bytes, not {5 * total}")
        cpu_s = (one["usr_cpu"] + one["sys_cpu"]) / 100 * seconds
        return {"fio": {"gb_per_s": read["io_bytes"] / seconds / 1e9,
                        "cpu_s_per_gib": cpu_s / (read["io_bytes"] / GIB)}}

    job.needs("fio")
    return [lambda: run_stream(job, command), fio]


def http(job, experiment, connections):
    """curl fetches the same ranges; the time of one that fetches a single range is its start, which
    is not counted."""
    folder = job.shards(*experiment.shards)
    command = job.command(experiment, folder, connections=connections)
    epochs = int(re.search(r"--epochs (\d+)", command)[1])
    ranges = [(name, item) for name, items in job.objects(folder) for item in range(items)] * epochs

    def seconds(some):
        parts = [f'url = "{job.url(folder)}{name}"\nrange = {item * MIB}-{(item + 1) * MIB - 1}\n'
                 'output = "/dev/null"\n' for name, item in some]
        config = job.folder / "curl"
        config.write_text("next\n".join(parts), encoding="utf-8")
        begin = time.monotonic()
        call(["curl", "--no-progress-meter", "--http1.1", "--fail", "--parallel",
              "--parallel-immediate", "--parallel-max", connections, "--config", config],
             variables=ALONE)
        return time.monotonic() - begin

    def curl():
        start = seconds(ranges[:1])
        return {"curl": {"gb_per_s": (len(ranges) - 1) * MIB / (seconds(ranges) - start) / 1e9}}

    job.needs("curl", "nginx")
    return [lambda: run_stream(job, command), curl]


def reshard(job, experiment, **case):
    """Rounds are the program's own."""
    def turn():
        found = {}
        for result in results_of(job.words(job.command(experiment, **case)))["results"]:
            found[result["case"]] = {
                "tensor_bytes": result["tensor_bytes"], "payload_bytes": result["payload_bytes"],
                "time_us": spread(result["iterations_us"])}
            for name, way in result["baselines"].items():
                found[f"{result['case']}: {name}"] = {
                    "tensor_bytes": result["tensor_bytes"],
                    "reason": result.get("baseline_reasons", {}).get(name)} if way is None else {
                    "tensor_bytes": result["tensor_bytes"], "time_us": float(way["time_us"]),
                    "ratio": {"median": way["ratio"], "q1": way["ratio_p25"],
                              "q3": way["ratio_p75"]}}
        return found

    return [turn]


def two_nodes(job, experiment, **case):
    def turn():
        words = job.words(job.command(experiment, **case))
        at = next(i for i, word in enumerate(words) if str(word).endswith("sluice-bench"))
        ran = results_of(words[:at], words[at:])
        return {facts["plan"]: {
            "time_us": spread(result["iterations_us"]), "over_relay": facts.get("time_over_first"),
            "crossing_bytes": facts["planned_a_to_b_bytes"],
            "link_of_plan": ran["a_to_b_bytes"] / ran["planned_a_to_b_bytes"]}
            for facts, result in zip(ran["compared"], ran["results"]["results"])}

    return [turn]


def copies(job, experiment):
    def turn():
        output = call(job.words(job.command(experiment)))
        return {run["name"]: {"ratio": {"median": run["ratio"], "q1": run["ratio_q1"],
                                        "q3": run["ratio_q3"]},
                              "memcpy_gb_per_s": float(run["memcpy_GBps"])}
                for run in json.loads(output)["benchmarks"] if "ratio" in run}

    return [turn]


def planning(job, experiment):
    def turn():
        text = call(job.words(job.command(experiment)))
        tensors, ranks = re.search(r"# (\d+) tensors, (\d+) ranks", text).groups()
        slowest, memory = re.search(
            r"# slowest rank ([\d.]+) ms, memory of planning at most (\d+) MB", text).groups()
        return {"slowest rank": {"ranks": int(ranks), "tensors": int(tensors),
                                 "time_us": float(slowest) * 1e3, "memory_mb": float(memory)}}

    return [turn]


def connect(job, experiment, **case):
    def turn():
        found = results_of(job.words(job.command(experiment, **case)))
        return {way: {"time_ms": spread(found[f"{way}_ms"])} for way in ("connect", "compile")}

    return [turn]


def hand_over(job, experiment, processes):
    """The medians over all processes of each one's own median. In the ways with "filling" the other
    thread fills up meanwhile."""
    def turn():
        count = min(processes, 4) if job.quick else processes
        files = [job.folder / f"hand-over-{copy}.json" for copy in range(count)]
        words = job.words(job.command(experiment, processes=processes))
        started = [subprocess.Popen(
            list(map(str, ["nice", "-n", 10 * (processes > 1), *words, "--json", file])),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for file in files]
        for process in started:
            _, errors = process.communicate(timeout=600)
            if process.returncode != 0:
                raise Failure(f"micro-bench ended with {process.returncode}: {errors.strip()}")
        found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
        return {way: {key: spread(one[way][key]["median"] for one in found)["median"]
                      for key in ("wall_ns", "cpu_ns")}
                for way in ("stream", "queue", "stream, filling", "queue, filling")}

    return [turn]


def worlds(job, experiment, rate):
    """All presets in one job, under mpirun and without it."""
    def turn(fabric):
        words = job.words(job.command(experiment, rate=rate, presets=job.presets()))
        if rate != "one node":
            found = results_of([*job.words("two_nodes --ranks 8"), "--rate", rate, "--fabric",
                                fabric], words)["results"]
        else:
            found = results_of([*job.words("mpirun -np 16" if fabric == "mpi" else "spawn -n 16"),
                                *words])
        if found["errors"] or any(result["wrong"] for result in found["results"]):
            raise Failure(f"{fabric}: {found['errors']}")
        return {f"{fabric}, {result['case']}": {"time_us": float(result["time_us"]["median"])}
                for result in found["results"]}

    return [lambda: turn("mpi"), lambda: turn("world")]


def members(job, experiment, event, processes, tensors):
    if job.quick:
        processes, tensors = 4, "5,48,40"
    return [lambda: {event: getattr(sync, event)(job, processes, tensors)}]
