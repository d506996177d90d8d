"""Starts `sluice-bench` and reads what its results file says."""
import json
import pathlib
import tempfile

import processes

MIB = 1 << 20
GIB = 1 << 30
KEPT = ("items", "bytes", "first_item_s", "half_s", "stall_share", "requests", "bytes_read",
        "opens", "connections", "hedges", "hedges_won", "retries", "peak", "limit", "device_bytes")
# Otherwise Open MPI starts a daemon beside each process that runs without mpirun.
ALONE = {"OMPI_MCA_ess_singleton_isolated": "1"}


class Bench:
    """`program`: sluice-bench; `mpirun`: the wrapper script."""

    def __init__(self, program, mpirun):
        self.program = str(program)
        self._mpirun = str(mpirun)
        self._folder = tempfile.TemporaryDirectory(prefix="figures-")
        self._count = 0

    def results_file(self):
        self._count += 1
        return pathlib.Path(self._folder.name) / f"results-{self._count}.json"

    def command(self, source, ranks=0, **flags):
        """The command and its results file. `ranks` 0: without mpirun."""
        results = self.results_file()
        flags.setdefault("check", "none")
        command = [] if ranks == 0 else [self._mpirun, "--oversubscribe", "-np", ranks]
        command += [self.program, "stream", "--source", source, "--json", results]
        for name, value in flags.items():
            command += ["--" + name.replace("_", "-"), value]
        return [str(part) for part in command], results

    def stream(self, source, ranks=0, watch_memory=False, **flags):
        """One run: the results of sluice itself, with the process's own figures."""
        by_mode, finished = self._modes(source, ranks, watch_memory, flags)
        kept = by_mode["sluice"]
        kept.update(wall_s=finished.wall_s, cpu_s=finished.cpu_s)
        if watch_memory:
            kept["peak_process_bytes"] = finished.peak_bytes
        return kept

    def modes(self, source, **flags):
        """The results of all modes of one run, by name."""
        return self._modes(source, 0, False, flags)[0]

    def _modes(self, source, ranks, watch_memory, flags):
        command, results = self.command(source, ranks, **flags)
        env = ALONE if ranks == 0 else None
        finished = processes.run(command, watch_memory=watch_memory, env=env)
        return read_results(results), finished

    def shards(self, folder, items, item_bytes, items_per_object):
        processes.run([self.program, "shards", "--make", "raw", "--dir", folder, "--items", items,
                       "--item-bytes", item_bytes, "--items-per-object", items_per_object])


def read_results(file):
    """The results by mode, of a run without errors. Nothing in them tells where it ran."""
    results = json.loads(file.read_text(encoding="utf-8"))
    file.unlink()
    if results["errors"] or any(result["wrong"] for result in results["results"]):
        raise RuntimeError(f"a run failed: {results['errors']}")
    return {result["case"]: {**{key: result[key] for key in KEPT},
                             "seconds": seconds(result),
                             "wait_s": result["stage_s"]["wait"]} for result in results["results"]}


def seconds(result):
    """Of the whole run; the median round's, where there are several."""
    return result["time_us"]["median"] / 1e6


def wait_share(run):
    """Of the whole run, the part in which the consumer of its only rank waited."""
    return run["wait_s"] / run["seconds"]


def whole(run):
    """Bytes per second of the whole run, from the opening of the stream."""
    return run["bytes"] / run["seconds"]


def steady(run):
    """Bytes per second of the second half. A whole window has been read when the first item comes,
    so that the time after it would promise too much."""
    items = run["items"] - run["items"] // 2
    return run["bytes"] * items / run["items"] / (run["seconds"] - run["half_s"])


def after_first(run):
    """Bytes per second after the first item: too high by the window that had been read by then."""
    share = (run["items"] - 1) / run["items"]
    return run["bytes"] * share / (run["seconds"] - run["first_item_s"])


def window(slots, item_bytes=MIB):
    """Flags for so many requests at once, of an item each. The budget has room for the blocks of
    hedged reads too."""
    return {"slots": slots, "piece_bytes": item_bytes,
            "budget_bytes": slots * item_bytes * 9 // 8 + item_bytes}


def full_window(bench, source, slots, items, shard_items, fills=True, **flags):
    """A run that stops while its window is still full: at its end a stream would be reading less.
    At least four windows, so that the second half does not begin with the first one, and an even
    number of them: where the latency is the bound, a window comes at once. `fills`: a run that did
    not use the whole window is an error."""
    items = max(2, round(items / (2 * slots))) * 2 * slots
    run = bench.stream(source, stop_items=items, epochs=(items + slots) // shard_items + 1,
                       **window(slots), **flags)
    if fills:
        check_window(run, slots)
    return run


def check_window(run, slots):
    """The run must have had all its slots in use; a smaller window is another measurement."""
    if run["peak"]["slots"] != min(slots, run["requests"]):
        raise RuntimeError(f"{run['peak']['slots']} of {slots} slots were used")
