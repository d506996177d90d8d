"""The processes of a job of chaos.py: an mpirun and its ranks, or the members of a world.

Both kinds have the same calls. `tick` does what is due, and is called all the time. `poll` gives
None while processes run, and then an exit code. `stacks` tells where each of them stands. `end`
ends all of them, whatever they do.
"""
import json
import os
import pathlib
import signal
import subprocess
import time

import chaos_strangers
import chaos_worlds
import job_limit
import spawn
from chaos_store import StoreProcess

ROOT = pathlib.Path(__file__).resolve().parents[2]
MPIRUN_OF_WIRE = {
    # Open MPI 5 does not always find its way from a network interface to itself.
    "tcp": ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"],
    "shm": ["--mca", "btl", "self,vader"],
    "direct": [],
}
# So that freed memory is not counted as growth.
MALLOC = {"MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_MMAP_THRESHOLD_": "131072"}


def launch(job, folder, build):
    """Starts a job, which finds itself in its folder."""
    pathlib.Path(folder, "job.json").write_text(json.dumps(job), encoding="utf-8")
    kind = WorldJob if "world" in job else MpirunJob
    return kind(job, folder, pathlib.Path(build, "bin"))


class MpirunJob:
    """Ranks under an mpirun of a process group of its own."""

    def __init__(self, job, folder, programs):
        self.folder = pathlib.Path(folder)
        self.ranks = job["ranks"]
        shared = self.folder / "mpi"
        shared.mkdir(exist_ok=True)
        environment = dict(os.environ, OMPI_MCA_orte_tmpdir_base=str(shared),
                           PRTE_MCA_prte_tmpdir_base=str(shared), **MALLOC)
        # Ranks that end with an error end early: the others are to have their say.
        command = [str(ROOT / "scripts" / "mpirun.sh"), "--enable-recovery", "--oversubscribe",
                   "-np", str(self.ranks), *MPIRUN_OF_WIRE[job["wire"]],
                   str(programs / "chaos_rank"), folder]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment,
                                            start_new_session=True)

    def pids(self):
        return {rank: int((self.folder / f"pid-{rank}").read_text()) for rank in range(self.ranks)}

    def tick(self):
        pass

    def stacks(self):
        return job_limit.stacks(self.process.pid)

    def poll(self):
        return self.process.poll()

    def end(self):
        process = self.process
        if process.poll() is None:
            try:
                process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    pass
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


class WorldJob:
    """Members of a world, and a store of their own or apart, each a process of this one."""

    def __init__(self, job, folder, programs):
        self.job = job
        self.world = job["world"]
        self.folder = pathlib.Path(folder)
        self.programs = programs
        self.started = time.monotonic()
        self.members = {}  # by rank
        self.seconds = {}  # by rank
        self.second_words = []  # (rank, what it was told, whether its place was surely taken)
        self.store_pauses_until = None
        self.store_ended = None  # "before" or "after" all had met
        self.log = open(self.folder / "log", "ab")
        # Without a store apart, rank 0 serves one at a port that is kept free.
        self.kept = None if self.world["store_apart"] else spawn.reserve_port(
            self.world["host"])
        self.store = StoreProcess(programs, folder, self.log,
                                  self.kept.getsockname()[1] if self.kept else 0,
                                  self.world["host"])
        if self.world["store_apart"]:
            self.store.start()
        self.due = sorted(
            [(at_s, "start", rank) for rank, at_s in enumerate(self.world["start_s"])]
            + [(each["at_s"], "second", each["rank"]) for each in self.world["seconds"]]
            + [(each["at_s"], "stranger", i) for i, each in enumerate(self.world["strangers"])]
            + ([(self.world["store_fault"]["at_s"], "store", 0)]
               if self.world["store_fault"] else []))
        self.tick()

    # --- Processes.

    def start_member(self, rank, *more):
        role, own = chaos_worlds.name_of(self.job, rank).split()
        sizes = dict(self.world["roles"])
        known = self.world["sizes_known"]
        environment = spawn.clean_environment()
        environment.update(
            SLUICE_WORLD=self.store.url(), SLUICE_TOKEN=self.store.token,
            SLUICE_ROLE=role, SLUICE_RANK=own, SLUICE_SIZE=str(sizes[role]),
            SLUICE_WIRES=self.world["wires"], UCX_TLS="tcp",
            SLUICE_ROLES=",".join(f"{name}:{size}" if known else name
                                  for name, size in sizes.items()),
            SLUICE_WORLD_TIMEOUT=f"{self.world['wait_s']}s", **MALLOC)
        if self.world["store_apart"]:
            environment["SLUICE_SERVE"] = "0"
        return subprocess.Popen([str(self.programs / "chaos_member"), str(self.folder), str(rank),
                                 *more], stdout=self.log, stderr=self.log, env=environment,
                                stdin=subprocess.DEVNULL)

    def all_met(self):
        return all((self.folder / f"met-{rank}").exists() for rank in range(self.job["ranks"]))

    # --- What happens.

    def tick(self):
        now = time.monotonic()
        waiting = []
        for event in self.due:
            if now - self.started < event[0] or not self.act(*event[1:]):
                waiting.append(event)
        self.due = waiting
        if self.store_pauses_until is not None and now >= self.store_pauses_until:
            self.store_pauses_until = None
            if self.store.is_there():
                self.store.go_on()
            else:
                self.store.start()
        self.hear_seconds()

    def act(self, what, number):
        """Does what is due. False: it cannot be done yet."""
        if what == "start":
            self.members[number] = self.start_member(number)
        elif what == "second":
            if not (self.folder / f"pid-{number}").exists():
                return False
            self.seconds[number] = self.start_member(number, "second")
        elif what == "stranger":
            return self.send_stranger(self.world["strangers"][number])
        else:
            if self.world["store_fault"]["after_met"] and not self.all_met():
                return False
            self.break_store(self.world["store_fault"]["what"])
        return True

    def send_stranger(self, stranger):
        ports = [self.store.port]
        if stranger["to"] >= 0:
            if stranger["to"] not in self.members:
                return False
            ports = chaos_strangers.ports_of(self.members[stranger["to"]].pid)
        if ports:
            chaos_strangers.Stranger(stranger["kind"], self.world["host"],
                                     ports[stranger["seed"] % len(ports)],
                                     stranger["seed"]).start()
        return bool(ports)

    def break_store(self, how):
        if how == "stopped":
            self.store.pause()
            self.store_pauses_until = time.monotonic() + 0.5
            return
        self.store_ended = "after" if self.all_met() else "before"
        self.store.end()
        if how == "restarted":
            self.store_pauses_until = time.monotonic() + 0.2

    def hear_seconds(self):
        for rank, process in list(self.seconds.items()):
            if process.poll() is None:
                continue
            del self.seconds[rank]
            first = self.members[rank]
            # A store that a member serves ends with that member's world.
            has_store = self.store_ended is None and (self.world["store_apart"]
                                                      or self.world["keeps_world"][0])
            is_taken = (self.world["keeps_world"][rank] and has_store
                        and not (self.folder / f"rank-{rank}.json").exists()
                        and first.poll() is None)
            word = self.folder / f"second-{rank}.json"
            told = json.loads(word.read_text()) if word.exists() else None
            self.second_words.append((rank, told, is_taken))

    # --- As of an mpirun.

    def pids(self):
        return {rank: process.pid for rank, process in self.members.items()}

    def poll(self):
        codes = [process.poll() for process in self.members.values()]
        if None in codes or len(codes) < self.job["ranks"]:
            return None
        return next((code for code in codes if code != 0), 0)

    def stacks(self):
        processes = [*self.members.values(), *self.seconds.values()]
        return "".join(job_limit.stacks(process.pid) for process in processes)

    def end(self):
        processes = [*self.members.values(), *self.seconds.values()]
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline and any(p.poll() is None for p in processes):
            time.sleep(0.01)
        self.hear_seconds()
        for process in processes:
            process.kill()
            process.wait()
        self.store.end()
        if self.kept is not None:
            self.kept.close()
        self.log.close()


def tail(folder):
    text = pathlib.Path(folder, "log").read_text(errors="replace").strip()
    return "log: " + (text[-1500:] if text else "(empty)")
