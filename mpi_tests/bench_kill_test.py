"""Kills a rank of the benchmark in each of its phases: the others say which one has ended."""
import os
import re
import signal
import subprocess
import sys
import threading
import time

from bench_run import job_limit
from few import few

RANKS = 3
VICTIM = 1
# One case whose filling, moving and checking take some time each. The rank is killed when it has
# run for each of these times since the benchmark's head, wherever it is by then.
DELAYS_S = (0.3, 0.8, 1.5, 2.5)


def main():
    mpirun, program, *more = sys.argv[1:]
    for delay_s in few(DELAYS_S):
        kill_one([mpirun, "--enable-recovery", "--oversubscribe", "-np", str(RANKS), *more, program,
                  "reshard", "--shape", "4096,4096", "--tensors", "2", "--src-mesh", str(RANKS),
                  "--src-ranks", f"0-{RANKS - 1}", "--dst-ranks", f"0-{RANKS - 1}",
                  "--src-placements", "S(0)", "--dst-mesh", str(RANKS), "--dst-placements", "S(1)",
                  "-n", "1000", "--timeout-s", "1000"], delay_s)


def kill_one(command, delay_s):
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           errors="replace")
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(job.stdout), daemon=True)
    reader.start()
    try:
        with job_limit.limited("a job of which a rank is killed", 600):
            victim = find_rank(job)
            while not any(line.startswith("#") for line in list(lines)):  # the report's head
                check(job.poll() is None, "no report:\n" + "".join(lines))
                time.sleep(0.02)
            end_s = cpu_s(victim) + delay_s
            while cpu_s(victim) < end_s:
                time.sleep(0.02)
            os.kill(victim, signal.SIGKILL)
            job.wait()
        reader.join()
        named = who_named(lines, victim)
        check(named >= {rank for rank in range(RANKS) if rank != VICTIM},
              f"after {delay_s} s, only {named} say who has ended:\n" + "".join(lines))
        print(f"killed after {delay_s} s: named by all")
    finally:
        job_limit.end(job.pid)
        job.wait()


def cpu_s(pid):
    """How long a process has run on a processor."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        words = file.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def who_named(lines, victim):
    """The ranks that have said who has ended."""
    pattern = rf"rank (\d+): (?:.*)rank {VICTIM}, process {victim}, has ended"
    return {int(found.group(1)) for line in list(lines) if (found := re.search(pattern, line))}


def find_rank(mpirun):
    """The process of the rank to kill, once all ranks have begun."""
    while mpirun.poll() is None:
        ranks = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    environ = file.read().split(b"\0")
                with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                    parent = re.search(r"PPid:\s+(\d+)", file.read()).group(1)
            except (OSError, AttributeError):
                continue
            rank = [word for word in environ if word.startswith(b"OMPI_COMM_WORLD_RANK=")]
            if rank and int(parent) == mpirun.pid:
                ranks[int(rank[0].split(b"=")[1])] = int(pid)
        if len(ranks) == RANKS:
            return ranks[VICTIM]
        time.sleep(0.02)
    raise SystemExit("failed: the ranks do not begin")


def check(condition, text):
    if not condition:
        raise SystemExit(f"failed: {text}")


if __name__ == "__main__":
    main()
