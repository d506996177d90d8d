"""Runs a job of which one rank dies or stops, and judges what the others say of it."""
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

from bench_run import job_limit

LIMIT_S = 400  # against hanging; far longer than the sessions of fault_rank wait for anything

# Of a job over TCP in which a call of Open MPI did not come back, often so beside other programs.
TRIES = 6


class StuckInMpi(Exception):
    """A rank stood still inside a call of MPI, which only MPI could have ended."""


class MpirunEnded(Exception):
    """It ended before its ranks did, and may have ended those."""


# Words of mpirun that has met an error of its own, or whose ranks have.
OWN_ERRORS = ("PMIX ERROR", "Open MPI failed to TCP connect")


class Results:
    """The files that ranks leave. Each writes its number to a pipe when its file is whole."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        os.mkfifo(self.folder / "written")
        # Open for writing too, so that it has no end while no rank has it open.
        self.pipe = os.open(self.folder / "written", os.O_RDWR)
        self.heard = []

    def wait_for(self, ranks, job):
        """What `ranks` of the job wrote; what others write meanwhile counts for later calls."""
        deadline = time.monotonic() + LIMIT_S
        while missing := [rank for rank in ranks if rank not in self.heard]:
            check(time.monotonic() < deadline, f"ranks {missing} have not ended")
            ended = job.poll() is not None
            if not self.listen(0 if ended else 1) and ended:
                raise MpirunEnded(f"mpirun has ended with {job.returncode} without ranks {missing}")
        for rank in ranks:
            self.heard.remove(rank)
        results = [self.read(rank) for rank in ranks]
        stuck = [f"rank {r['rank']} in {r['stuck_in']}" for r in results if "stuck_in" in r]
        if stuck:
            raise StuckInMpi(", ".join(stuck))
        return results

    def wait_for_end(self, rank, pid, job):
        """What `rank` wrote; None if its process has ended without."""
        deadline = time.monotonic() + LIMIT_S
        while rank not in self.heard:
            check(time.monotonic() < deadline, f"rank {rank} has not ended")
            ended = not os.path.exists(f"/proc/{pid}")
            if not self.listen(0.1) and ended:
                return None
        return self.wait_for([rank], job)[0]

    def listen(self, seconds):
        """True if somebody has written within so many seconds."""
        ready = select.select([self.pipe], [], [], seconds)[0]
        if ready:
            self.heard += [int(word) for word in os.read(self.pipe, 4096).split()]
        return bool(ready)

    def read(self, rank):
        return json.loads((self.folder / f"rank-{rank}.json").read_text(encoding="utf-8"))


def main():
    mpirun, program, world, victim, fault, part, *more = sys.argv[1:]
    world, victim = int(world), int(victim)
    # When a peer has ended, Open MPI 4.1's TCP may wait for a lock that it holds itself, or run in
    # circles, and its call never comes back (docs/gotchas.md). Ranks say so of themselves
    # (call_watch.cc). A rank that stands still anywhere else fails the test.
    for tries_left in reversed(range(TRIES if fault == "kill" and "self,tcp" in more else 1)):
        with tempfile.TemporaryDirectory(prefix="fault-") as folder:
            command = [mpirun, "--enable-recovery", "--oversubscribe", *more, "-np", str(world),
                       program, folder, str(victim), fault, part]
            try:
                survivors, output = run(command, folder, world, victim, fault, "self,tcp" in more)
                break
            except StuckInMpi as stuck:
                check(tries_left > 0, f"stands still inside MPI: {stuck}")
                print(f"stands still inside MPI: {stuck}; once more")
    for result in survivors:
        (judge_kill if fault == "kill" else judge_stop)(result, victim, part)
    shared = {path for result in survivors for path in result["shared"]}
    left = [path for path in shared if os.path.exists(path.split(" ")[0])]
    check(not left, f"left in shared memory: {left}")
    print(output)


def run(command, folder, world, victim, fault, over_tcp):
    """What the survivors wrote, and what mpirun did."""
    results = Results(folder)
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           errors="replace")
    try:
        stopping = results.wait_for([victim], job)[0] if fault == "stop" else None
        survivors = results.wait_for([rank for rank in range(world) if rank != victim], job)
        if stopping is not None:
            resume(stopping["pid"], results, victim, over_tcp, job)
        with job_limit.limited("mpirun, whose ranks have ended"):
            output, _ = job.communicate()
    except StuckInMpi:
        end(job)
        raise
    except MpirunEnded as ended:
        output = job.communicate()[0]
        print(output)
        check(any(words in output for words in OWN_ERRORS), ended)
        raise StuckInMpi(ended) from None
    except BaseException:
        print(f"the stacks of all processes:\n{job_limit.stacks(job.pid)}")
        end(job)
        raise
    return survivors, f"mpirun ended with {job.returncode}\n{output}"


def end(job):
    """Ends the job, and shows what it has said."""
    job_limit.end(job.pid)
    print(job.communicate()[0])


def resume(pid, results, victim, over_tcp, job):
    """A rank that goes on after the others have ended ends with an error as well. Over TCP it is
    Open MPI that finds the others' connections closed, and may end it or wait for ever."""
    if over_tcp:
        os.kill(pid, signal.SIGKILL)
        return
    os.kill(pid, signal.SIGCONT)
    result = results.wait_for_end(victim, pid, job)
    print(result)
    check(result is not None, "the rank that was stopped ended without a word")
    check(result["code"] != "OK", "the rank that was stopped saw no error")


def judge_kill(result, victim, _part):
    """Ranks of a node see each other's end, and nothing that has ended uses memory. An MPI that
    goes on after the end of a peer may be the first to say so, of a record."""
    print(result)
    message = result["message"]
    check(result["code"] == "UNAVAILABLE", "another error")
    check(re.search(rf"rank {victim}, process \d+, has ended", message)
          or re.search(rf"PROC_FAILED.*record from (rank {victim} |.* to rank {victim}$)", message),
          "not who has ended")
    check(result["close"] == "OK", "Close")


def judge_stop(result, victim, part):
    print(result)
    message = result["message"]
    check(result["code"] == "DEADLINE_EXCEEDED", "not a deadline")
    if part == "stream":
        check(victim in members_of(message), f"the bucket is not said to be rank {victim}'s")
    else:
        check(f"rank {victim} has not answered" in message
              or f"rank {victim}, which does not answer" in message
              or f"rank {victim} did not call" in message, f"rank {victim} is not named")
    check(result["close"] == "OK" or result["close"].startswith("DEADLINE_EXCEEDED"), "Close")


def members_of(message):
    """The ranks of a bucket, of which a message says "for ranks 0-2, 4"."""
    found = re.search(r"read by rank \d+ for ranks ([-\d, ]*\d)", message)
    check(found, "the bucket's members are not named")
    ranks = set()
    for part in found.group(1).split(","):
        first, _, last = part.partition("-")
        ranks.update(range(int(first), int(last or first) + 1))
    return ranks


def check(condition, text):
    if not condition:
        raise SystemExit(f"failed: {text}")


if __name__ == "__main__":
    main()
