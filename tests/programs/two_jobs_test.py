#!/usr/bin/env python3
"""scripts/nodes/two_jobs.sh: each of its modes comes to its end, and leaves nothing behind.

  two_jobs_test.py TWO_JOBS FOLDER_OF_PROGRAMS PART

PART: one_machine, hosts, or partition. The last two end with 77 where namespaces are not allowed.
"""
import os
import pathlib
import signal
import subprocess
import sys
import time

_ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT / "scripts/nodes"), str(_ROOT / "mpi_tests")]
import job_limit  # noqa: E402  (of scripts/nodes)
from few import few  # noqa: E402  (of mpi_tests/)

LIMIT_S = 900  # only against hanging; the script has a limit for each step
SKIPPED = 77


class TwoJobs:
    def __init__(self, script, programs):
        self.command = [script, "--programs", programs]

    def run(self, *arguments):
        done = job_limit.run([*self.command, *arguments], LIMIT_S, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def is_well(self, *arguments):
        code, output = self.run(*arguments)
        if code == SKIPPED:
            print(output)
            sys.exit(SKIPPED)
        assert code == 0, (code, output)
        assert "Both jobs have ended well" in output, output
        return output


def children_of(pid):
    """All that a process has started, and what that has started in its turn."""
    try:
        tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
        found = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:  # it has ended
        return []
    return found + [each for child in found for each in children_of(child)]


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def nothing_outlives_it(jobs, *arguments):
    for end in few((signal.SIGTERM, signal.SIGINT, signal.SIGKILL)):
        show = subprocess.Popen([*jobs.command, "--kill", *arguments], stdout=subprocess.PIPE,
                                text=True)
        with job_limit.limited("two_jobs.sh", LIMIT_S):
            for line in show.stdout:
                if "servers start" in line:
                    break
            started = children_of(show.pid)
            assert len(started) >= 3, started
            show.send_signal(end)
            show.communicate()
        deadline = time.monotonic() + LIMIT_S
        while any(map(runs, started)):
            assert time.monotonic() < deadline, (end, started)
            time.sleep(0.05)


def one_machine(jobs):
    output = jobs.is_well()
    assert "server 2: 3 versions, 0 wrong elements" in output, output
    output = jobs.is_well("--kill", "--join")
    for words in ("All 4 others have named it", "the trainers have sent nothing for that"):
        assert words in output, output
    output = jobs.is_well("--join", "--trainers", "1")
    assert "The next version has come to all 3 servers" in output, output
    nothing_outlives_it(jobs)
    for bad in (["--partition"], ["--rate", "1gbit"], ["--servers", "1"], ["--kil-l"],
                ["--namespaces", "--rate", "fast"]):
        code, output = jobs.run(*bad)
        assert code == 2 and "two_jobs.sh: error: " in output, (bad, code, output)
    code, output = jobs.run("--programs", "/no/such/folder")
    assert code == 1 and "there is no /no/such/folder/sluice-store" in output, (code, output)


def hosts(jobs):
    jobs.is_well("--namespaces")
    output = jobs.is_well("--namespaces", "--rate", "10gbit", "--kill", "--join")
    assert " on host-b) in version " in output, output
    nothing_outlives_it(jobs, "--namespaces")


def partition(jobs):
    output = jobs.is_well("--namespaces", "--partition")
    assert "Each side has named the other one" in output, output


def without_rights(script, programs):
    """Whoever may not make namespaces is told so."""
    if os.getuid() != 0:
        return
    done = job_limit.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", script,
                          "--programs", programs, "--namespaces"], LIMIT_S, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
    assert done.returncode == SKIPPED, done
    assert "takes root" in done.stdout, done


def main():
    job_limit.hear_ctrl_c()
    script, programs, part = sys.argv[1:]
    if part == "one_machine":
        without_rights(script, programs)
    {"one_machine": one_machine, "hosts": hosts, "partition": partition}[part](
        TwoJobs(script, programs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
