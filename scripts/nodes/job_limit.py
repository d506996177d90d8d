#!/usr/bin/env python3
"""Runs a job of many processes with a limit, and shows where it stands when the limit is reached.

usage: job_limit.py SECONDS COMMAND [ARGUMENT...]

The exit code is that of COMMAND: 128 + N if signal N has ended it. At the limit come the stacks of
all its processes. All of them are ended, and the exit code is 124. SIGTERM does the same with the
code 143. SIGINT and SIGHUP show no stacks. What is left when COMMAND ends is named, and killed.

Tests use it as a module: run() is subprocess.run with such a limit, and limited() is for blocks
that read from processes. stacks() and end() are for all that a process has started.
"""
import concurrent.futures
import contextlib
import ctypes
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time

LIMIT_S = 300  # what a job of a test does not reach beside a build, with the least priority
TOOL_S = 20  # of one look at one process
GRACE_S = 5  # between SIGTERM and SIGKILL
LEFT_S = 2  # for what is about to end anyway
PR_SET_CHILD_SUBREAPER = 36
MARK = "JOB_LIMIT_MARK"  # in the environment of a job, by which its orphans are found
TOOLS = {"eu-stack": ["-p"],
         "gdb": ["-nx", "-batch", "-ex", "set debuginfod enabled off",
                 "-ex", "thread apply all bt", "-p"]}


class Late(AssertionError):
    """A job that has not ended within its limit. None of its processes is left."""


def _read(path):
    try:
        return pathlib.Path(path).read_bytes().decode(errors="replace")
    except OSError:  # it has ended, or is somebody else's
        return ""


def processes(root, mark=None):
    """{pid: state} of all that `root` has started, and of what has `mark` in its environment."""
    stats = {int(pid): _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
             for pid in os.listdir("/proc") if pid.isdigit()}
    stats = {pid: words for pid, words in stats.items() if words}
    found = {root} | {pid for pid in stats
                      if mark and f"{MARK}={mark}" in _read(f"/proc/{pid}/environ").split("\0")}
    before = 0
    while before < len(found):
        before = len(found)
        found |= {pid for pid, words in stats.items() if int(words[1]) in found}
    return {pid: stats[pid][0] for pid in sorted(found) if pid in stats and pid != os.getpid()}


def _alive(root, mark=None):
    return [pid for pid, state in processes(root, mark).items() if state not in "ZX"]


def _command_line(pid):
    return (" ".join(_read(f"/proc/{pid}/cmdline").split("\0")).strip()
            or f"[{_read(f'/proc/{pid}/comm').strip()}]")


def frames(pid):
    """Where each thread stands, by the first tool that can tell; else what the kernel says."""
    failed = []
    for tool, words in TOOLS.items():
        path = shutil.which(tool, path=f"{os.environ.get('PATH', '')}:{os.defpath}")
        if path is None:
            failed.append(f"there is no {tool}")
            continue
        try:
            done = subprocess.run([path, *words, str(pid)], stdin=subprocess.DEVNULL, text=True,
                                  capture_output=True, errors="replace", timeout=TOOL_S,
                                  check=False, env=dict(os.environ, DEBUGINFOD_URLS=""))
        except (subprocess.TimeoutExpired, OSError) as error:
            failed.append(str(error))
            continue
        if "#0" in done.stdout:
            return done.stdout
        failed.append(f"{tool}: {done.stderr.strip() or done.stdout.strip()}")
    threads = sorted(pathlib.Path(f"/proc/{pid}/task").glob("*"))
    lines = [f"  thread {task.name} {_read(task / 'comm').strip()} in "
             f"{_read(task / 'wchan') or '?'}\n{_read(task / 'stack')}" for task in threads]
    return "".join(lines) + f"  ({'; '.join(failed)}. The package elfutils has eu-stack.)\n"


def _describe(pid, state):
    where = _read(f"/proc/{pid}/wchan").strip("0") or "-"
    head = f"--- process {pid}, state {state}, waits in {where}: {_command_line(pid)}\n"
    return head if state in "ZX" else head + frames(pid)


def stacks(root, mark=None):
    """Text about `root`, unless that is this process, and about all that it has started."""
    found = processes(root, mark)
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        return "".join(pool.map(_describe, found, found.values()))


def end(root, mark=None, grace_s=GRACE_S, reap=lambda: None):
    """Ends `root`, unless that is this process, and all that it has started."""
    for number, seconds in ((signal.SIGTERM, grace_s), (signal.SIGKILL, TOOL_S)):
        told = set()
        deadline = time.monotonic() + seconds
        while (there := _alive(root, mark)) and time.monotonic() < deadline:
            for pid in set(there) - told:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            told.update(there)
            time.sleep(0.02)
            reap()


def _end_left(root, mark=None, reap=lambda: None):
    """Names and kills what is left of a job that has ended."""
    deadline = time.monotonic() + LEFT_S
    while (left := _alive(root, mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
        reap()
    for pid in left:
        print(f"job_limit: process {pid} is left, and is killed: {_command_line(pid)}",
              file=sys.stderr, flush=True)
    if left:
        end(root, mark, 0, reap)


def _late(command, seconds):
    return f"{command} has not ended after {seconds:g} s; the stacks of its processes:"


# ---- For tests.

def hear_ctrl_c():
    """What a shell runs in the background ignores SIGINT, and so would all that it starts."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def run(command, seconds=LIMIT_S, check=False, given=None, **popen):
    """As subprocess.run with a timeout. At the limit raises Late, whose text has all stacks.
    `given`: what the process reads from its input."""
    mark = secrets.token_hex(8)
    popen["env"] = {**(popen.get("env") or os.environ), MARK: mark}
    if popen.pop("capture_output", False):
        popen.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if given is not None:
        popen["stdin"] = subprocess.PIPE
    with subprocess.Popen(command, **popen) as job:
        try:
            out, err = job.communicate(given, timeout=seconds)
        except subprocess.TimeoutExpired:
            text = f"{_late(command, seconds)}\n{stacks(job.pid, mark)}"
            end(job.pid, mark)
            out = err = "(a process that could not be found keeps it open)"
            with contextlib.suppress(subprocess.TimeoutExpired):
                out, err = job.communicate(timeout=TOOL_S)
            raise Late(f"{text}stdout: {out}\nstderr: {err}") from None
        except BaseException:
            end(job.pid, mark)
            raise
    _end_left(job.pid, mark)
    if check and job.returncode:
        raise subprocess.CalledProcessError(job.returncode, command, out, err)
    return subprocess.CompletedProcess(command, job.returncode, out, err)


@contextlib.contextmanager
def limited(what, seconds=LIMIT_S):
    """A block that waits for processes which this one has started. At the limit prints the stacks
    of all of them, and ends them: whoever reads from them then finds an end."""
    is_late = threading.Event()

    def give_up():
        is_late.set()
        print(f"{_late(what, seconds)}\n{stacks(os.getpid())}", file=sys.stderr, flush=True)
        end(os.getpid())
    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if is_late.is_set():
            timer.join()
    if is_late.is_set():
        raise Late(f"{what} has not ended after {seconds:g} s; see above for its stacks")


# ---- As a program.

class _Stopped(Exception):
    """A signal has come: SIGALRM at the limit."""


def _stop(number, _):
    for each in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise _Stopped(number)


def _reap():
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main():
    try:
        seconds, command = float(sys.argv[1]), sys.argv[2:]
        if not command or not 0 < seconds < 1e8:
            raise ValueError
    except (IndexError, ValueError):
        print("usage: job_limit.py SECONDS COMMAND [ARGUMENT...]", file=sys.stderr)
        return 2
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        try:
            job = subprocess.Popen(command)
        except OSError as error:
            print(f"job_limit: {command[0]}: {error.strerror}", file=sys.stderr)
            return 127
        signal.setitimer(signal.ITIMER_REAL, seconds)
        pid = status = None
        while pid != job.pid:  # orphans that have ended come, too
            pid, status = os.wait()
    except _Stopped as stopped:
        number = stopped.args[0]
        why = _late(command[0], seconds) if number == signal.SIGALRM else (
            f"signal {number} ends {command[0]}")
        print(f"job_limit: {why}", file=sys.stderr, flush=True)
        if number in (signal.SIGALRM, signal.SIGTERM):
            print(stacks(os.getpid()), file=sys.stderr, flush=True)
        end(os.getpid(), reap=_reap)
        return 124 if number == signal.SIGALRM else 128 + number
    signal.setitimer(signal.ITIMER_REAL, 0)
    _end_left(os.getpid(), reap=_reap)
    code = job.returncode = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
