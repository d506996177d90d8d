#!/usr/bin/env python3
"""Random jobs under random misfortune: every element right, in time, within the budget, or an
error that names the cause.

    scripts/chaos/chaos.py --runs 40 --seed 1    # 40 jobs; a failure prints what repeats it
    scripts/chaos/chaos.py --only 1234567        # one of them again; --keep leaves its folder

A job has 2 to 6 ranks with transfers, streams and checkpoints, several at once. Two thirds of the
jobs run under mpirun, over TCP, shared memory or `direct`. The others are worlds, over `direct`,
TCP or UCX. Ranks are stopped for a while, or one is killed. Storage is slow, fails, hangs or is cut
short. Streams are closed early and opened again with other contents. Runs are cancelled. In worlds
members come late, the store ends or is restarted, and strangers talk to ports.
"""
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "nodes"))
sys.dont_write_bytecode = True
import chaos_jobs  # noqa: E402  (beside this file)
from chaos_judge import LIMIT_S, Judge, Outcome, judge_second  # noqa: E402
from chaos_launch import launch, tail  # noqa: E402
from chaos_run import make_parser, run_all  # noqa: E402


def main():
    arguments = parse()

    def run_one(seed):
        outcome = run(seed, arguments)
        counts = collections.Counter(outcome.counts)
        counts["runs of jobs"] += 1
        for problem in outcome.problems:
            counts[f"failed, {problem.split(':')[0]}"] += 1
        again = f"scripts/chaos/chaos.py --only {outcome.seed} --wire {outcome.job['wire']}"
        return outcome.problems, counts, again
    return run_all(arguments, "job", run_one)


def parse():
    parser = make_parser(__doc__, "job", 40)
    parser.add_argument("--wire", choices=chaos_jobs.WIRES, help="all jobs over this one")
    parser.add_argument("--worlds", action="store_true", help="all jobs are worlds")
    arguments = parser.parse_args()
    programs = pathlib.Path(arguments.build, "bin")
    arguments.has_mpi = (programs / "chaos_rank").exists() and not arguments.worlds
    return arguments


def run(seed, arguments):
    """Makes, runs and judges one job."""
    job = chaos_jobs.make(seed, arguments.wire, arguments.has_mpi)
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


def attempt(job, folder, outcome, arguments):
    """Runs the job with its faults, and judges what the ranks say."""
    before = shared_names()
    processes = launch(job, folder, arguments.build)
    killed = {}
    try:
        if not wait_for_pids(job, folder, processes):
            return outcome.bad("not started", f"{processes.stacks()}{tail(folder)}")
        pids = processes.pids()
        killed = misfortune(job, folder, pids, processes)
        results = wait_for_results(job, folder, processes, killed)
    finally:
        processes.end()
    store_ended = processes.store_ended if "world" in job else None
    Judge(job, killed, store_ended, outcome, folder).judge(results)
    if "world" in job:
        for rank, told, is_taken in processes.second_words:
            judge_second(rank, told, is_taken, pids[rank], outcome)
    look_for_leftovers(job, folder, killed, pids, before, outcome)


def look_for_leftovers(job, folder, killed, pids, before, outcome):
    ours = {name for name in shared_names() - before
            if any(re.search(rf"(?<!\d){pid}(?!\d)", name) for pid in pids.values())
            or "sluice" in name}
    if ours and not killed:
        outcome.bad("left behind", f"in /dev/shm: {sorted(ours)}")
    expected = {"job.json", "log", "mpi", "over", "token"}
    expected |= {part["dir"] for part in job["datasets"] + job["checkpoints"]}
    expected |= {f"{kind}{rank}{end}" for rank in range(job["ranks"]) for kind, end in (
        ("pid-", ""), ("met-", ""), ("rank-", ".json"), ("second-", ".json"))}
    # A rank that is killed while it writes its word leaves part of it.
    left = {name for name in set(os.listdir(folder)) - expected if not name.endswith(".part")}
    if left:
        outcome.bad("left behind", f"on disk: {sorted(left)}")
    if not killed:
        temporaries = [str(path) for part in job["checkpoints"]
                       for path in pathlib.Path(folder, part["dir"]).glob("*")
                       if not re.fullmatch(r"model.*\.safetensors|model\.safetensors\.index\.json",
                                           path.name)]
        if temporaries:
            outcome.bad("left behind", f"in a checkpoint: {temporaries}")


def wait_for_pids(job, folder, processes):
    """Waits until all ranks may be stopped or killed, or have said why they have not come."""
    deadline = time.monotonic() + LIMIT_S
    waiting = set(range(job["ranks"]))
    while waiting:
        waiting = {rank for rank in waiting if not pathlib.Path(folder, f"pid-{rank}").exists()
                   and not pathlib.Path(folder, f"rank-{rank}.json").exists()}
        if waiting and (processes.poll() is not None or time.monotonic() > deadline):
            return False
        processes.tick()
        time.sleep(0.01)
    return True


def misfortune(job, folder, pids, processes):
    """Stops, wakes and kills ranks, when the job says so. Returns the ranks killed, and whether
    each had met the others."""
    started = time.monotonic()
    killed = {}
    for fault in sorted(job["faults"], key=lambda each: each["at_s"]):
        while time.monotonic() - started < fault["at_s"]:
            if processes.poll() is not None:
                return killed
            processes.tick()
            time.sleep(0.005)
        met = pathlib.Path(folder, f"met-{fault['rank']}").exists()
        try:
            os.kill(pids[fault["rank"]], getattr(signal, fault["signal"]))
        except ProcessLookupError:
            continue
        if fault["signal"] == "SIGKILL":
            killed[fault["rank"]] = met
    return killed


def wait_for_results(job, folder, processes, killed):
    """What the ranks wrote, by rank. A rank that wrote nothing is not in it."""
    deadline = time.monotonic() + LIMIT_S
    alive = [rank for rank in range(job["ranks"]) if rank not in killed]
    names = {rank: pathlib.Path(folder, f"rank-{rank}.json") for rank in alive}
    while not all(name.exists() for name in names.values()):
        if processes.poll() is not None or time.monotonic() > deadline:
            break
        processes.tick()
        time.sleep(0.01)
    pathlib.Path(folder, "over").touch()  # ranks that stay for the others' sake may go
    # A job that has gone well ends by itself.
    ended = None
    while time.monotonic() < deadline and (ended := processes.poll()) is None and not killed:
        if any(json.loads(name.read_text())["errors"] for name in names.values() if name.exists()):
            break
        time.sleep(0.01)
    results = {rank: json.loads(name.read_text()) for rank, name in names.items() if name.exists()}
    results["exit"] = ended
    results["late"] = time.monotonic() > deadline
    results["stacks"] = processes.stacks() if results["late"] else ""
    return results


def verify(job, folder, outcome, arguments):
    """One rank by itself loads what a killed save has left: the old checkpoint or the new one."""
    for name in os.listdir(folder):
        if name == "over" or name.startswith(("pid-", "met-", "rank-", "second-")):
            os.remove(os.path.join(folder, name))
    alone = chaos_jobs.verification_of(job)
    processes = launch(alone, folder, arguments.build)
    try:
        results = wait_for_results(alone, folder, processes, {})
    finally:
        processes.end()
    outcome.counts["checkpoints loaded after a kill"] += 1
    result = results.get(0)
    if result is None or result["errors"] or result["wrong"]:
        outcome.bad("checkpoint lost", f"after a kill: {result}; {tail(folder)}")


def shared_names():
    try:
        return set(os.listdir("/dev/shm"))
    except FileNotFoundError:
        return set()


if __name__ == "__main__":
    sys.exit(main())
