"""The processes of two_jobs.py: started on their hosts, read line by line, killed by number."""
import collections
import json
import pathlib
import queue
import re
import secrets
import subprocess
import threading
import time

import spawn
import two_hosts

LIMIT_S = 300  # against hanging; nothing takes so long
HOST_OF_ROLE = {"store": 0, "trainer": 0, "server": 1}
# Lines that are shown. The others tell a failed session's state.
SHOWN = re.compile(r"# |\s+\d|\w+ \d+:|listening|sluice-")


class Failure(Exception):
    """What was to be seen is not seen."""


class Job:
    """A process, whose lines are shown as they come."""

    def __init__(self, name, process, stage):
        self.name = name
        self.process = process
        self.stage = stage
        self.lines = queue.Queue()
        self.last = collections.deque(maxlen=30)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if self.stage.shows and SHOWN.match(line):
                print(f"     {self.name} | {line.rstrip()}", flush=True)
            self.last.append(line.rstrip("\n"))
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def wait_for(self, pattern, meanwhile=lambda: None):
        """The first line from here on in which the pattern is found. Calls `meanwhile` every now
        and then."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            meanwhile()
            try:
                line = self.lines.get(timeout=0.2)
            except queue.Empty:
                continue
            if line is None:
                self.lines.put(None)
                raise Failure(f"{self.name} has ended, and has not said '{pattern}'")
            if re.search(pattern, line):
                return line
        raise Failure(f"{self.name} does not say '{pattern}' in {LIMIT_S} s")

    def must_end_well(self):
        try:
            code = self.process.wait(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} does not end in {LIMIT_S} s") from None
        self.reader.join(timeout=LIMIT_S)
        if code != 0:
            raise Failure("\n".join([f"{self.name} has ended with code {code}:", *self.last]))

    def pid(self):
        """As its host counts processes."""
        return (self.stage.folder / f"pid {self.name}").read_text().strip()

    def runs(self):
        return self.process.poll() is None

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join(timeout=5)
        self.process.stdout.close()


class Stage:
    """Where the jobs are seen. `hosts`: None if this machine is the only one."""

    def __init__(self, programs, folder, roles, hosts):
        self.programs = pathlib.Path(programs).resolve()
        self.folder = pathlib.Path(folder)
        self.roles = roles
        self.hosts = hosts
        self.jobs = []
        self.steps = 0
        self.shows = True  # what the jobs say
        self.address = None
        self.token_file = self.folder / "token"
        self.token_file.touch(mode=0o600)
        self.token_file.write_text(secrets.token_hex())

    def say(self, text):
        self.steps += 1
        print(f"{self.steps}. {text}", flush=True)

    def start_store(self):
        """It chooses a port, and says which."""
        bind = "127.0.0.1" if self.hosts is None else two_hosts.ADDRESSES[HOST_OF_ROLE["store"]]
        store = self._start("store", HOST_OF_ROLE["store"],
                            ["sluice-store", "--bind", bind, "--token-file",
                             str(self.token_file)], {})
        self.address = store.wait_for("listening on tcp://").split()[-1]

    def start(self, role, rank, command):
        environment = {
            "SLUICE_WORLD": self.address, "SLUICE_TOKEN_FILE": str(self.token_file),
            "SLUICE_SERVE": "0",
            "SLUICE_ROLE": role, "SLUICE_RANK": str(rank), "SLUICE_SIZE": str(self.roles[role]),
            "SLUICE_ROLES": ",".join(f"{name}:{size}" for name, size in self.roles.items())}
        return self._start(f"{role} {rank}", HOST_OF_ROLE[role], command, environment)

    def _start(self, name, host, command, environment):
        program = self.programs / command[0]
        if not program.exists():
            raise Failure(f"there is no {program}: ninja -C build {command[0]}")
        # The shell becomes the program, so the number is the program's.
        started = ["sh", "-c", 'echo $$ >"$1" && shift && exec "$@"', "sh",
                   str(self.folder / f"pid {name}"), str(program), *command[1:]]
        if self.hosts is not None:
            started = self.hosts.on(host, started)
        with two_hosts.uninterrupted():
            process = subprocess.Popen(
                started, env={**spawn.clean_environment(), **environment}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                preexec_fn=two_hosts.die_with_this())
            job = Job(name, process, self)
            self.jobs.append(job)
        return job

    def json_file(self, role, rank):
        return str(self.folder / f"{role} {rank}.json")

    def results(self, job):
        return json.loads((self.folder / f"{job.name}.json").read_text())

    def kill(self, job):
        """Its process ends without a word, as by a crash."""
        command = ["kill", "-9", job.pid()]
        host = HOST_OF_ROLE[job.name.split()[0]]
        subprocess.run(command if self.hosts is None else self.hosts.on(host, command), check=True)
        job.process.wait()

    def end(self):
        for job in reversed(self.jobs):
            if self.hosts is None and job.process.poll() is None:
                job.process.kill()
        if self.hosts is not None:
            self.hosts.end()
        for job in self.jobs:
            job.end()
