"""Runs a job of which one rank dies or stops, and judges what the others say of it."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

TIMEOUT_S = 2.0  # of fault_rank's sessions
SLACK_S = 20.0  # a machine with fewer cores than ranks


def main():
    mpirun, program, world, victim, fault, part = sys.argv[1:]
    world, victim = int(world), int(victim)
    survivors = [rank for rank in range(world) if rank != victim]
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        job = subprocess.Popen(
            [mpirun, "--enable-recovery", "--oversubscribe", "-np", str(world), program, folder,
             str(victim), fault, part],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        try:
            results = wait_for(folder, survivors)
            if fault == "stop":
                resume_and_judge(folder, victim)
            output, _ = job.communicate(timeout=TIMEOUT_S + SLACK_S)
        except BaseException:
            job.kill()
            print(job.communicate()[0])
            raise
    for result in results:
        judge(result, victim)
    shared = {path for result in results for path in result["shared"]}
    left = [path for path in shared if os.path.exists(path.split(" ")[0])]
    check(not left, f"left in shared memory: {left}")
    print(f"mpirun ended with {job.returncode}\n{output}")


def path_of(folder, rank):
    return pathlib.Path(folder) / f"rank-{rank}.json"


def wait_for(folder, ranks):
    """The results of `ranks`, once all are there."""
    deadline = time.monotonic() + 3 * (TIMEOUT_S + SLACK_S)
    while not all(path_of(folder, rank).exists() for rank in ranks):
        missing = [rank for rank in ranks if not path_of(folder, rank).exists()]
        check(time.monotonic() < deadline, f"ranks {missing} have not ended")
        time.sleep(0.02)
    return [json.loads(path_of(folder, rank).read_text(encoding="utf-8")) for rank in ranks]


def resume_and_judge(folder, victim):
    """A rank that goes on after the others have ended ends with an error as well."""
    [before] = wait_for(folder, [victim])
    check("stopping" in before, "the victim did not stop")
    os.kill(before["pid"], signal.SIGCONT)
    deadline = time.monotonic() + 2 * (TIMEOUT_S + SLACK_S)
    while "code" not in (after := wait_for(folder, [victim])[0]):
        check(time.monotonic() < deadline, "the rank that was stopped does not end")
        time.sleep(0.02)
    print(after)
    check(after["code"] != "OK", "the rank that was stopped saw no error")


def judge(result, victim):
    print(result)
    check(result["code"] == "DEADLINE_EXCEEDED", "not a deadline")
    check(result["seconds"] < TIMEOUT_S + SLACK_S, "too late")
    check(result["close_seconds"] < TIMEOUT_S + SLACK_S, "Close waits too long")
    check(result["close"] == "OK" or result["close"].startswith("DEADLINE_EXCEEDED"), "Close")
    check(f"rank {victim} has not answered" in result["message"]
          or f"rank {victim}, which does not answer" in result["message"],
          f"rank {victim} is not named")


def check(condition, text):
    if not condition:
        raise SystemExit(f"failed: {text}")


if __name__ == "__main__":
    main()
