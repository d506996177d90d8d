"""Processes that are members of a world, for tests: started apart, read line by line, killed."""
import os
import pathlib
import queue
import re
import secrets
import subprocess
import sys
import threading

_SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path[:0] = [str(_SCRIPTS / "nodes"), str(_SCRIPTS / "chaos")]
import job_limit  # noqa: E402  (of scripts/nodes)
import spawn  # noqa: E402

PATIENCE_S = 300  # a limit against hanging, not a time that anything takes
# What launchers of the machine that runs the tests may have left.
FOREIGN = re.compile(r"^(SLUICE_(?!UCX_)|OMPI_|PMI|SLURM_|MASTER_|RANK$|WORLD_SIZE$)")


class Process:
    """A program and the lines that it says."""

    def __init__(self, name, command, **environment):
        clean = {key: value for key, value in os.environ.items() if not FOREIGN.match(key)}
        self.name = name
        self.said = []
        self.lines = queue.Queue()
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True,
                                        env={**clean, **environment})
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def expect(self, pattern):
        """The first line from here on that the pattern matches, from its beginning."""
        while True:
            try:
                line = self.lines.get(timeout=PATIENCE_S)
            except queue.Empty:
                raise AssertionError(f"{self} does not say {pattern!r}; the stacks of all:\n"
                                     f"{job_limit.stacks(os.getpid())}") from None
            if line is None:
                self.lines.put(None)
                raise AssertionError(f"{self} has ended and has not said {pattern!r}")
            self.said.append(line)
            if re.match(pattern, line):
                return line

    def go_on(self):
        """Gives it the line that it waits for."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        """Its exit code."""
        with job_limit.limited(str(self)):
            return self.process.wait()

    def end(self):
        job_limit.end(self.process.pid, grace_s=0)
        self.process.wait(timeout=PATIENCE_S)
        self.reader.join(timeout=PATIENCE_S)
        self.process.stdin.close()
        self.process.stdout.close()

    def __str__(self):
        return f"{self.name}, which has said {self.said}"


class Site:
    """Where processes of one test meet. Ends them all."""

    def __init__(self, program, roles):
        self.program = program
        self.roles = roles
        self.token = secrets.token_hex(8)
        self.kept = spawn.reserve_port()
        self.port = self.kept.getsockname()[1]
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.end()
        self.kept.close()

    def _add(self, process):
        self.processes.append(process)
        return process

    def store(self):
        """A store apart, which listens."""
        store = self._add(Process("the store", [self.program, "store", str(self.port), self.token]))
        store.expect("serves")
        return store

    def member(self, role, rank, *args, steps=3, kib=64, silence_s=PATIENCE_S, below=(),
               **environment):
        """`below`: a command that starts the program."""
        settings = {"SLUICE_WORLD": f"tcp://127.0.0.1:{self.port}", "SLUICE_TOKEN": self.token,
                    "SLUICE_ROLE": role, "SLUICE_RANK": str(rank),
                    "SLUICE_SIZE": str(self.roles[role]), "SLUICE_WIRES": "tcp", "UCX_TLS": "tcp",
                    "SLUICE_ROLES": ",".join(f"{name}:{size}" for name, size in self.roles.items())}
        command = [*below, self.program, "member", str(steps), str(kib), str(silence_s), *args]
        return self._add(Process(f"{role} {rank}", command, **{**settings, **environment}))

    def job(self, role, *args, **kwargs):
        """All members of a role."""
        return [self.member(role, rank, *args, **kwargs) for rank in range(self.roles[role])]

    def all(self, *args, **kwargs):
        return [member for role in self.roles for member in self.job(role, *args, **kwargs)]
