#!/usr/bin/env python3
"""Starts N processes of a program on this machine, as the ranks of a world, without mpirun.

Each process finds SLUICE_RANK, SLUICE_SIZE and SLUICE_WORLD, the address at which rank 0 serves the
store, in its environment. The port is free, and kept free of others until rank 0 takes it.
SLUICE_TOKEN keeps other users of the machine out. If SLUICE_WORLD is set already, the processes
join that world instead, with the token that is set: SLUICE_ROLE=server spawn.sh -n 4 server ...

If a process fails, the others have a while to say so and to end. Then they are ended, too. The exit
code is that of the process that failed first (128 + N after signal N). Ctrl-C and SIGTERM end all.
Rank 0 reads what is piped into this script.
"""
import argparse
import ctypes
import functools
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PR_SET_PDEATHSIG = 1
# What this library and launchers read, but for what says which UCX to take.
OF_LAUNCHERS = re.compile(r"^(SLUICE_(?!UCX_)|OMPI_|PMI|SLURM_|MASTER_|RANK$|WORLD_SIZE$)")


def arguments():
    parser = argparse.ArgumentParser(
        prog="spawn.sh", usage="%(prog)s -n N [-l] [-g SECONDS] PROGRAM [ARGUMENT...]",
        description=__doc__.split("\n\n", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, required=True, metavar="N", help="processes, 1 to 4096")
    parser.add_argument("-l", action="store_true", dest="label",
                        help="begin each line of output with its rank")
    parser.add_argument("-g", type=float, default=2, metavar="SECONDS", dest="grace",
                        help="how long the others have when one has failed [2]")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="PROGRAM")
    options = parser.parse_args()
    if options.command[:1] == ["--"]:
        del options.command[0]
    if not options.command:
        parser.error("which program?")
    if not 1 <= options.n <= 4096:
        parser.error(f"-n {options.n}: 1 to 4096 processes")
    if not 0 <= options.grace <= 1e6:
        parser.error(f"-g {options.grace}: 0 to 1000000 seconds")
    return options


def clean_environment():
    """That of this process, without what a launcher has left in it."""
    return {key: value for key, value in os.environ.items() if not OF_LAUNCHERS.match(key)}


def reserve_port(host="127.0.0.1"):
    """A socket that is bound to a free port and does not listen. With SO_REUSEADDR at both ends a
    server may take that port, while the system gives it to nobody else."""
    kept = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind((host, 0))
    return kept


def end_with(parent):
    """In a new process, before its program: signals as they are usual, and no life without
    `parent`, the process that starts it."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it has ended before, and no signal comes


def prepare(parent):
    """In the new process, before its program: a group of its own, signals as they are usual, and no
    life without `parent`, the process that starts it.

    Not a session of its own: Linux shares CPUs out by session (sched_autogroup_enabled). Among more
    ranks than CPUs a rank that waits could yield to none of the others."""
    os.setpgid(0, 0)
    end_with(parent)


class Processes:
    """The ranks. All signals that matter are blocked, and taken by `wait`."""

    def __init__(self, options, environment):
        self.label = options.label
        self.printing = threading.Lock()
        self.readers = []
        self.running = {}  # rank by process
        for rank in range(options.n):
            self.start(rank, options.command, dict(environment, SLUICE_RANK=str(rank)))
        # Threads do not go along with a fork: all are started after the last one.
        for reader in self.readers:
            reader.start()

    def start(self, rank, command, environment):
        pipe = subprocess.PIPE if self.label else None
        # A terminal stops whoever reads from it in the background.
        reads = rank == 0 and not os.isatty(0)
        process = subprocess.Popen(
            command, env=environment, stdin=None if reads else subprocess.DEVNULL, stdout=pipe,
            stderr=pipe, preexec_fn=functools.partial(prepare, os.getpid()))
        self.running[process.pid] = (rank, process)
        if self.label:
            for source, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
                self.readers.append(threading.Thread(
                    target=self.forward, args=(rank, source, target.buffer), daemon=True))

    def forward(self, rank, source, target):
        for line in source:
            try:
                with self.printing:
                    target.write(b"[%d] " % rank + line + (b"" if line.endswith(b"\n") else b"\n"))
                    target.flush()
            except OSError:
                pass  # nobody listens any more, and the process is not to wait for that

    def ended(self):
        """[(rank, exit code)] of those that have ended since the last call."""
        codes = []
        for pid, (rank, process) in list(self.running.items()):
            code = process.poll()
            if code is not None:
                del self.running[pid]
                codes.append((rank, code if code >= 0 else 128 - code))
        return codes

    def send(self, number):
        """To all that run, and to what they have started."""
        for pid in self.running:
            try:
                os.killpg(pid, number)
            except ProcessLookupError:
                pass

    def drain(self):
        """What the ended ones have printed is forwarded before this returns. A process of theirs
        that lives on may keep a pipe open: nobody waits for that."""
        for reader in self.readers:
            reader.join(timeout=2)


def watch(processes, grace):
    """The exit code, when none runs any more."""
    result = 0
    end_at = None  # when the others are told to end, and then are killed
    next_signal = signal.SIGTERM
    while processes.running:
        wait = 3600 if end_at is None else max(0, end_at - time.monotonic())
        came = signal.sigtimedwait([signal.SIGCHLD, *ENDINGS], wait)
        if came is not None and came.si_signo in ENDINGS:
            again = result == 128 + came.si_signo
            result = result or 128 + came.si_signo
            processes.send(signal.SIGKILL if again else came.si_signo)
            end_at, next_signal = time.monotonic() + grace, signal.SIGKILL
        for rank, code in processes.ended():
            if code == 0:
                continue
            if result == 0:
                result, end_at = code, time.monotonic() + grace
                others = f"; {len(processes.running)} others still run" if processes.running else ""
                print(f"spawn.sh: rank {rank} ended with code {code}{others}", file=sys.stderr)
        if end_at is not None and time.monotonic() >= end_at:
            processes.send(next_signal)
            end_at, next_signal = time.monotonic() + max(grace, 1), signal.SIGKILL
    return result


def main():
    options = arguments()
    environment = dict(os.environ, SLUICE_SIZE=str(options.n))
    kept = None
    if not environment.get("SLUICE_WORLD"):
        kept = reserve_port()
        environment["SLUICE_WORLD"] = f"tcp://127.0.0.1:{kept.getsockname()[1]}"
        environment["SLUICE_TOKEN"] = secrets.token_hex(16)
        environment.pop("SLUICE_TOKEN_FILE", None)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD, *ENDINGS])
    try:
        processes = Processes(options, environment)
    except OSError as error:
        print(f"spawn.sh: {options.command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    result = watch(processes, options.grace)
    processes.drain()
    return result


if __name__ == "__main__":
    sys.exit(main())
