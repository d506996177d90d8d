#!/usr/bin/env python3
"""Random jobs under random misfortune: every element right, in time, within the budget, or an
error that names the cause.

    scripts/chaos.py --runs 40 --seed 1      # 40 jobs; a failure prints the command that repeats it
    scripts/chaos.py --only 1234567          # one of them again; --keep leaves its folder

A job has 2 to 6 ranks with transfers, streams and checkpoints, several at once, over TCP, shared
memory or `direct`. Ranks are stopped for a while, or one is killed; storage is slow, fails, hangs
or is cut short; streams are closed early and opened again with other contents; runs are cancelled.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import chaos_jobs  # noqa: E402  (beside this file)

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT_S = 180  # of a job; sessions and streams give up long before
KILL_SLACK_S = 20  # a machine with fewer cores than ranks


class Outcome:
    """What became of one job."""

    def __init__(self, seed, job):
        self.seed = seed
        self.job = job
        self.problems = []
        self.counts = collections.Counter()

    def bad(self, kind, text):
        self.problems.append(f"{kind}: {text}")


def main():
    arguments = parse()
    seeds = [arguments.only] if arguments.only is not None else [
        random.Random(f"{arguments.seed}/{i}").getrandbits(48) for i in range(arguments.runs)]
    totals = collections.Counter()
    failed = []
    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(max_workers=arguments.jobs) as pool:
        for outcome in pool.map(lambda seed: run(seed, arguments), seeds):
            totals.update(outcome.counts)
            totals["runs of jobs"] += 1
            for problem in outcome.problems:
                totals[f"failed, {problem.split(':')[0]}"] += 1
                print(f"seed {outcome.seed}: {problem}", flush=True)
            if outcome.problems:
                failed.append(outcome.seed)
                print(f"  again: scripts/chaos.py --only {outcome.seed}"
                      + (f" --wire {arguments.wire}" if arguments.wire else ""), flush=True)
    for name, count in sorted(totals.items()):
        print(f"{count:10d}  {name}")
    print(f"{len(seeds)} jobs in {time.monotonic() - started:.0f} s: "
          f"{len(failed)} failed" + (f", seeds {failed}" if failed else ": all right"))
    return 1 if failed else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=40, help="jobs (40)")
    parser.add_argument("--seed", type=int, default=1, help="which jobs (1)")
    parser.add_argument("--only", type=int, help="the seed of one job, to run it again")
    parser.add_argument("--wire", choices=chaos_jobs.WIRES, help="all jobs over this one")
    parser.add_argument("--jobs", type=int, default=2, help="so many at a time (2)")
    parser.add_argument("--build", default=str(ROOT / "build"), help="build folder (build)")
    parser.add_argument("--keep", action="store_true", help="keep the folders of jobs")
    return parser.parse_args()


def run(seed, arguments):
    """Makes, runs and judges one job."""
    job = chaos_jobs.make(seed, arguments.wire)
    outcome = Outcome(seed, job)
    folder = tempfile.mkdtemp(prefix="sluice-chaos-")
    try:
        attempt(job, folder, outcome, arguments)
        if job["verify"] and not outcome.problems:
            verify(job, folder, outcome, arguments)
    finally:
        if arguments.keep or (outcome.problems and arguments.only is not None):
            print(f"seed {seed}: see {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return outcome


def launch(job, folder, arguments):
    """Starts the job's mpirun, in a process group of its own."""
    pathlib.Path(folder, "job.json").write_text(json.dumps(job), encoding="utf-8")
    shared = pathlib.Path(folder, "mpi")
    shared.mkdir(exist_ok=True)
    environment = dict(os.environ, OMPI_MCA_orte_tmpdir_base=str(shared),
                       PRTE_MCA_prte_tmpdir_base=str(shared), MALLOC_TRIM_THRESHOLD_="131072",
                       MALLOC_MMAP_THRESHOLD_="131072")
    # Ranks that end with an error end early: the others are to have their say.
    command = [str(ROOT / "scripts" / "mpirun.sh"), "--enable-recovery", "--oversubscribe", "-np",
               str(job["ranks"])]
    command += chaos_jobs.MPIRUN_OF_WIRE[job["wire"]]
    command += [str(pathlib.Path(arguments.build, "bin", "chaos_rank")), folder]
    log = open(pathlib.Path(folder, "log"), "ab")
    return subprocess.Popen(command, stdout=log, stderr=log, env=environment,
                            start_new_session=True)


def attempt(job, folder, outcome, arguments):
    """Runs the job with its faults, and judges what the ranks say."""
    before = shared_names()
    process = launch(job, folder, arguments)
    killed = {}
    try:
        pids = wait_for_pids(job, folder, process)
        if pids is None:
            return outcome.bad("not started", tail(folder))
        killed = misfortune(job, folder, pids, process)
        results = wait_for_results(job, folder, process, killed)
    finally:
        end(process)
    judge(job, results, killed, outcome, folder)
    ours = {name for name in shared_names() - before
            if any(str(pid) in name for pid in pids.values()) or "sluice" in name}
    if ours and not killed:
        outcome.bad("left behind", f"in /dev/shm: {sorted(ours)}")
    expected = {"job.json", "log", "mpi", "over"} | {part["dir"] for part in job["datasets"]}
    expected |= {part["dir"] for part in job["checkpoints"]}
    expected |= {f"{kind}{rank}{end}" for rank in range(job["ranks"])
                 for kind, end in (("pid-", ""), ("met-", ""), ("rank-", ".json"))}
    # A rank that is killed while it writes its word leaves part of it.
    left = {name for name in set(os.listdir(folder)) - expected if not name.endswith(".json.part")}
    if left:
        outcome.bad("left behind", f"on disk: {sorted(left)}")
    if not killed:
        temporaries = [str(path) for part in job["checkpoints"]
                       for path in pathlib.Path(folder, part["dir"]).glob("*")
                       if not re.fullmatch(r"model.*\.safetensors|model\.safetensors\.index\.json",
                                           path.name)]
        if temporaries:
            outcome.bad("left behind", f"in a checkpoint: {temporaries}")


def wait_for_pids(job, folder, process):
    deadline = time.monotonic() + LIMIT_S
    names = [pathlib.Path(folder, f"pid-{rank}") for rank in range(job["ranks"])]
    while not all(name.exists() for name in names):
        if process.poll() is not None or time.monotonic() > deadline:
            return None
        time.sleep(0.01)
    return {rank: int(name.read_text()) for rank, name in enumerate(names)}


def misfortune(job, folder, pids, process):
    """Stops, wakes and kills ranks, when the job says so. Returns the ranks killed, and whether
    each had met the others."""
    started = time.monotonic()
    killed = {}
    for fault in sorted(job["faults"], key=lambda each: each["at_s"]):
        while time.monotonic() - started < fault["at_s"]:
            if process.poll() is not None:
                return killed
            time.sleep(0.005)
        met = pathlib.Path(folder, f"met-{fault['rank']}").exists()
        try:
            os.kill(pids[fault["rank"]], getattr(signal, fault["signal"]))
        except ProcessLookupError:
            continue
        if fault["signal"] == "SIGKILL":
            killed[fault["rank"]] = met
    return killed


def wait_for_results(job, folder, process, killed):
    """What the ranks wrote, by rank. A rank that wrote nothing is not in it."""
    deadline = time.monotonic() + LIMIT_S
    alive = [rank for rank in range(job["ranks"]) if rank not in killed]
    names = {rank: pathlib.Path(folder, f"rank-{rank}.json") for rank in alive}
    while not all(name.exists() for name in names.values()):
        if process.poll() is not None or time.monotonic() > deadline:
            break
        time.sleep(0.01)
    pathlib.Path(folder, "over").touch()  # ranks that stay for the others' sake may go
    # A job that has gone well ends by itself.
    ended = None
    while time.monotonic() < deadline and (ended := process.poll()) is None and not killed:
        if any(json.loads(name.read_text())["errors"] for name in names.values() if name.exists()):
            break
        time.sleep(0.01)
    results = {rank: json.loads(name.read_text()) for rank, name in names.items() if name.exists()}
    results["exit"] = ended
    results["late"] = time.monotonic() > deadline
    return results


def end(process):
    """Ends mpirun and its ranks, whatever they do."""
    if process.poll() is None:
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def judge(job, results, killed, outcome, folder):
    counts = outcome.counts
    counts[f"over {job['wire']}"] += 1
    for kind in job["kinds"]:
        counts[f"with {kind}"] += 1
    if killed:
        counts["a rank killed in time"] += 1
    for rank in range(job["ranks"]):
        if rank in killed:
            continue
        result = results.get(rank)
        if result is None:
            kind = "hung" if results["late"] else "crashed"
            outcome.bad(kind, f"rank {rank} left no word; {tail(folder)}")
            continue
        for name, count in result["counts"].items():
            counts[f"checked: {name}"] += count
        for wrong in result["wrong"]:
            outcome.bad("wrong", f"rank {rank}: {wrong}")
        if result["growth_bytes"] > result["allowed_bytes"]:
            outcome.bad("over budget", f"rank {rank} grew by {result['growth_bytes']} of "
                                       f"{result['allowed_bytes']} bytes allowed, "
                                       f"{result['shared_growth_bytes']} of them shared")
        for error in result["errors"]:
            judge_error(job, rank, error, killed, outcome)
        if killed and result["close_seconds"] > job["session"]["timeout_s"] + KILL_SLACK_S:
            outcome.bad("hung", f"Close of rank {rank} took {result['close_seconds']:.0f} s")
    if not killed and results["exit"] not in (0, None) and not outcome.problems:
        errors = any(result["errors"] for rank, result in results.items() if isinstance(rank, int))
        if not errors:
            outcome.bad("crashed", f"mpirun ended with {results['exit']}; {tail(folder)}")
    if results["late"] and not outcome.problems:
        outcome.bad("hung", f"after {LIMIT_S} s; {tail(folder)}")


def judge_error(job, rank, error, killed, outcome):
    """An error is right if the job has a cause for it, and it names the cause."""
    text = f"rank {rank}, {error['where']}: {error['code']}: {error['message']}"
    # By the script. Where a session has failed, its ranks close streams without a word.
    if "early closes" in job["kinds"] and "closed the stream before its end" in error["message"]:
        outcome.counts["told that others closed early"] += 1
        return
    of_storage = job["storage_fails"] and re.match(r"(OpenStream|Next)", error["where"])
    if of_storage and re.search(r"part-\d+\.bin|item \d+|read|bytes", error["message"]):
        outcome.counts["errors of storage"] += 1
        return
    if killed:
        # Before ranks have met, nobody knows whose process is whose: MPI only tells that not all
        # have come.
        if (not any(killed.values()) and error["where"] == "MakeMpiFabric"
                and error["code"] == "DEADLINE_EXCEEDED"
                and "not all of its ranks have called, or one has ended" in error["message"]):
            outcome.counts["errors after a kill before the ranks had met"] += 1
            return
        outcome.counts["errors after a kill"] += 1
        if not any(re.search(rf"rank {one}\b|ranks? [-\d, ]*\b{one}\b", error["message"])
                   for one in killed):
            outcome.bad("not named", f"rank {sorted(killed)} was killed: {text}")
        return
    outcome.bad("not named" if of_storage else "error", text)


def verify(job, folder, outcome, arguments):
    """One rank by itself loads what a killed save has left: the old checkpoint or the new one."""
    for name in os.listdir(folder):
        if name == "over" or name.startswith(("pid-", "met-", "rank-")):
            os.remove(os.path.join(folder, name))
    alone = chaos_jobs.verification_of(job)
    process = launch(alone, folder, arguments)
    try:
        results = wait_for_results(alone, folder, process, {})
    finally:
        end(process)
    outcome.counts["checkpoints loaded after a kill"] += 1
    result = results.get(0)
    if result is None or result["errors"] or result["wrong"]:
        outcome.bad("checkpoint lost", f"after a kill: {result}; {tail(folder)}")


def shared_names():
    try:
        return set(os.listdir("/dev/shm"))
    except FileNotFoundError:
        return set()


def tail(folder):
    text = pathlib.Path(folder, "log").read_text(errors="replace").strip()
    return "log: " + (text[-1500:] if text else "(empty)")


if __name__ == "__main__":
    sys.exit(main())
