"""What members of a sync that are killed, and that join, cost the others.

Members are processes of this machine. Lines are stamped where they are read, so that reading them
counts too."""
import random
import re
import selectors
import signal
import subprocess
import time

from rounds import Failure, free_port

LIMIT_S = 120
VERSION = re.compile(r" *(\d+) +(\d+) ")


class Sync:
    """The processes of one sync, and what they say."""

    def __init__(self, job, servers, tensors, *more):
        world = f"tcp://127.0.0.1:{free_port()}"
        self._command = [job.bin / "sluice-bench", "sync", "--world", world, "--tensors", tensors,
                         "--versions", 100000, *more]
        self._folder = job.folder
        self._servers = servers
        self._selector = selectors.DefaultSelector()
        self.lines = {}      # by name: (when it was read, a line)
        self.processes = {}  # by name
        self._unread = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
            process.stdout.close()

    def start(self, role, rank):
        name = f"{role} {rank}"
        command = [*self._command, "--role", role, "--rank", rank, "--size",
                   1 if role == "trainer" else self._servers]
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        self.processes[name] = process
        self.lines[name] = []
        self._unread[name] = b""
        self._selector.register(process.stdout, selectors.EVENT_READ, name)

    def read_until(self, is_it):
        """Reads all processes' lines until `is_it` is true."""
        end = time.monotonic() + LIMIT_S
        while not is_it():
            if time.monotonic() > end:
                raise Failure("a sync stands still")
            for key, _ in self._selector.select(timeout=1):
                data = key.fileobj.read1()
                now = time.monotonic()
                if not data:
                    self._selector.unregister(key.fileobj)
                    continue
                *whole, self._unread[key.data] = (self._unread[key.data] + data).split(b"\n")
                self.lines[key.data] += [(now, line.decode()) for line in whole]

    def versions(self, name):
        """[(when, version, epoch)], without what was caught up."""
        found = [(when, VERSION.match(line)) for when, line in self.lines[name]
                 if "caught up" not in line]
        return [(when, int(match[1]), int(match[2])) for when, match in found if match]


def kill(job, processes, tensors):
    """A server is killed while a version moves. The slowest survivor counts, in seconds."""
    servers = processes - 1
    with Sync(job, servers, tensors) as sync:
        sync.start("trainer", 0)
        for rank in range(servers):
            sync.start("server", rank)
        sync.read_until(lambda: len(sync.versions("trainer 0")) >= 3)
        victim = f"server {random.randrange(servers)}"
        sync.processes[victim].send_signal(signal.SIGKILL)
        killed = time.monotonic()
        others = [name for name in sync.processes if name != victim]
        named = {}
        sync.read_until(lambda: _have_named(sync, others, victim, named))
        slowest = max(named.values())
        # The trainer says so when all survivors have the version.
        sync.read_until(lambda: sync.versions("trainer 0")[-1][0] > slowest)
        arrived = next(when for when, _, _ in sync.versions("trainer 0") if when > slowest)
    return {"named_s": slowest - killed, "arrived_s": arrived - slowest}


def _have_named(sync, others, victim, named):
    for name in others:
        for when, line in sync.lines[name] if name not in named else ():
            if f"lost {victim} " in line:
                named[name] = when
    return len(named) == len(others)


def join(job, _, tensors):
    """A server joins a trainer and two others. What that costs these, and what the trainer sends
    for it."""
    with Sync(job, 3, tensors, "--at-least", 2) as sync:
        for role, rank in (("trainer", 0), ("server", 0), ("server", 1)):
            sync.start(role, rank)
        sync.read_until(lambda: len(sync.versions("trainer 0")) >= 8)
        before = sync.versions("trainer 0")
        sync.start("server", 2)
        sync.read_until(lambda: any("caught up" in line for _, line in sync.lines["trainer 0"]))
        caught_up = next((when, line) for when, line in sync.lines["trainer 0"]
                         if "caught up" in line)
        sync.read_until(lambda: sync.versions("trainer 0")[-1][0] > caught_up[0])
        all_of = sync.versions("trainer 0")
    alone = _between(before[2:])
    # From the last version without the joiner to the first after it has caught up.
    epoch = before[-1][2]
    last = [entry for entry in all_of if entry[2] == epoch][-1]
    end = next(entry for entry in all_of if entry[0] > caught_up[0])
    usual = sorted(alone)[len(alone) // 2]
    steps = end[1] - last[1]
    return {"version_s": usual, "versions": float(steps), "joining_s": end[0] - last[0],
            "slower": (end[0] - last[0]) / (steps * usual),
            "trainer_bytes": float(caught_up[1].split()[6])}


def _between(versions):
    return [after[0] - before[0] for before, after in zip(versions, versions[1:])]
