"""Kills a rank of the benchmark in each of its phases: the others say which one has ended."""
import os
import re
import signal
import subprocess
import sys
import threading
import time

RANKS = 3
VICTIM = 1
# A machine with fewer cores than ranks. The benchmark's own limits are longer.
SOON_S = 60.0
# One case whose filling, moving and checking take some time each. The rank is killed after each of
# these seconds of the benchmark's, wherever it is by then.
DELAYS_S = (0.3, 0.8, 1.5, 2.5)


def main():
    mpirun, program, *more = sys.argv[1:]
    for delay_s in DELAYS_S:
        kill_one([mpirun, "--enable-recovery", "--oversubscribe", "-np", str(RANKS), *more, program,
                  "reshard", "--shape", "4096,4096", "--tensors", "2", "--src-mesh", str(RANKS),
                  "--src-ranks", f"0-{RANKS - 1}", "--dst-ranks", f"0-{RANKS - 1}",
                  "--src-placements", "S(0)", "--dst-mesh", str(RANKS), "--dst-placements", "S(1)",
                  "-n", "1000", "--timeout-s", "300"], delay_s)


def kill_one(command, delay_s):
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           errors="replace")
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(job.stdout), daemon=True)
    reader.start()
    try:
        victim = find_rank(job.pid)
        begin = time.monotonic()
        while not any(line.startswith("#") for line in list(lines)):  # the report's head
            check(time.monotonic() - begin < SOON_S, "no report:\n" + "".join(lines))
            time.sleep(0.02)
        time.sleep(delay_s)
        os.kill(victim, signal.SIGKILL)
        begin = time.monotonic()
        wanted = {rank for rank in range(RANKS) if rank != VICTIM}
        while not wanted <= (named := who_named(lines, victim)):
            check(time.monotonic() - begin < SOON_S,
                  f"after {delay_s} s, only {named} say who has ended:\n" + "".join(lines))
            time.sleep(0.02)
        print(f"killed after {delay_s} s: named by all after {time.monotonic() - begin:.2f} s")
        job.wait(timeout=SOON_S)
    finally:
        job.kill()
        job.wait()


def who_named(lines, victim):
    """The ranks that have said who has ended."""
    pattern = rf"rank (\d+): (?:.*)rank {VICTIM}, process {victim}, has ended"
    return {int(found.group(1)) for line in list(lines) if (found := re.search(pattern, line))}


def find_rank(mpirun):
    """The process of the rank to kill, once all ranks have begun."""
    deadline = time.monotonic() + SOON_S
    while time.monotonic() < deadline:
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
            if rank and int(parent) == mpirun:
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
