"""One world of chaos_epochs.py: its store and members as processes, what happens to them, and what
is to be said of what they say."""
import collections
import json
import pathlib
import re
import signal
import subprocess
import time

import job_limit
import spawn
from chaos_store import StoreProcess

LIMIT_S = 500  # until all have come to one epoch, when nothing happens any more


class Member:
    """A process, and what it has said so far."""

    def __init__(self, name, process, out):
        self.name = name
        self.process = process
        self.out = out
        self.read_to = 0
        self.said = []
        self.hurt = None  # what was done to it: "killed", "stopped" for long, "left"
        self.wakes_at = None
        self.broken_by = set()  # causes that its session or its world may name

    def listen(self):
        """What it has said since the last call."""
        with open(self.out, encoding="utf-8", errors="replace") as file:
            file.seek(self.read_to)
            text = file.read()
        whole, newline, _ = text.rpartition("\n")
        self.read_to += len((whole + newline).encode())
        words = []
        for line in whole.splitlines():
            try:
                words.append(json.loads(line))
            except ValueError:
                words.append({"say": "noise", "text": line})
        self.said += words
        return words

    def is_there(self):
        return self.process.poll() is None and self.hurt != "killed"

    def __str__(self):
        return f"{self.name} (process {self.process.pid})"


class ElasticWorld:
    """Runs one world, and collects `problems` and `counts`."""

    def __init__(self, world, folder, programs):
        self.world = world
        self.folder = pathlib.Path(folder)
        self.programs = programs
        self.problems = []
        self.counts = collections.Counter()
        self.members = []  # all that there have been
        self.by_pid = {}
        self.expected = set()  # places of members that are about to start
        self.restarts = 0
        self.store_again_at = None
        self.log = open(self.folder / "log", "ab")
        self.kept = spawn.reserve_port(world["host"])  # kept free while the store is away
        self.store = StoreProcess(programs, folder, self.log, self.kept.getsockname()[1],
                                  world["host"])

    # --- Processes.

    def start_member(self, role, rank):
        world = self.world
        environment = spawn.clean_environment()
        environment.update(
            SLUICE_WORLD=self.store.url(), SLUICE_TOKEN=self.store.token, SLUICE_ROLE=role,
            SLUICE_RANK=str(rank), SLUICE_SIZE=str(world["roles"][role]),
            SLUICE_SERVE="" if world["served"] else "0",
            SLUICE_WIRES=world["wires"], UCX_TLS="tcp",
            SLUICE_ROLES=",".join(f"{name}:{size}" for name, size in world["roles"].items()))
        out = self.folder / f"out-{len(self.members)}"
        command = [str(self.programs / "epoch_member"), str(self.folder), str(world["steps"]),
                   str(world["kib"]), str(world["silence_s"]),
                   str(int(world["lease_s"] * 1000))]
        if not world["direct"]:
            command.append("no-direct")
        if world["again"]:
            command.append("again")
        with open(out, "wb") as file:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file,
                                       stderr=self.log, env=environment)
        member = Member(f"{role} {rank}", process, out)
        self.members.append(member)
        self.by_pid[process.pid] = member

    def end(self):
        for member in self.members:
            if member.process.poll() is None:
                member.process.kill()
            member.process.wait()
        self.store.end()
        self.kept.close()
        self.log.close()

    # --- What happens.

    def run(self):
        if not self.world["served"]:
            self.store.start()
        self.counts[f"worlds at {self.world['host']}"] += 1
        if self.world["again"]:
            self.counts[f"one after another, {'served' if self.world['served'] else 'apart'}"] += 1
        started = time.monotonic()
        due = [(at_s, {"what": "start", "place": place})
               for at_s, place in zip(self.world["start_s"], self.places())]
        due += [(event["at_s"], event) for event in self.world["events"]]
        due.sort(key=lambda each: each[0])
        self.expected = set(self.places())
        while due or self.store_again_at is not None or any(m.wakes_at for m in self.members):
            while due and time.monotonic() - started >= due[0][0]:
                self.act(due.pop(0)[1])
            self.tick()
            time.sleep(0.01)
        self.settle()

    def places(self):
        return [(role, rank) for role, size in self.world["roles"].items() for rank in range(size)]

    def vacant(self):
        taken = {member.name for member in self.members if member.is_there()}
        return [place for place in self.places()
                if f"{place[0]} {place[1]}" not in taken and place not in self.expected]

    def act(self, event):
        what = event["what"]
        if what == "start":
            self.expected.remove(event["place"])
            self.start_member(*event["place"])
            return
        if what == "join":
            vacant = self.vacant()
            if vacant:
                self.counts["joiners"] += 1
                self.start_member(*vacant[int(event["pick"] * len(vacant))])
            return
        if what == "restart":
            if self.store.is_there():
                self.counts["restarts of the store"] += 1
                self.restarts += 1
                self.store.end()
                self.store_again_at = time.monotonic() + event["length_s"]
            return
        there = [m for m in self.members if m.is_there() and m.hurt is None and m.wakes_at is None]
        if len(there) < 2:  # somebody is to survive
            return
        self.hurt(there[int(event["pick"] * len(there))], what, event["length_s"])

    def hurt(self, member, what, length_s):
        if what == "kill":
            member.hurt = "killed"
            member.process.kill()
            self.counts["kills"] += 1
        elif what == "leave":
            member.hurt = "left"
            (self.folder / f"leave-{member.process.pid}").touch()
            self.counts["farewells"] += 1
        else:
            # Time that the machine may add, as it has more to do, counts too.
            if length_s >= self.world["lease_s"] / 2:
                member.hurt = "stopped"
            member.wakes_at = time.monotonic() + length_s
            member.process.send_signal(signal.SIGSTOP)
            self.counts["stops" if member.hurt is None else "long stops"] += 1

    def tick(self):
        now = time.monotonic()
        if self.store_again_at is not None and now >= self.store_again_at:
            self.store_again_at = None
            self.store.start()
        for member in self.members:
            if member.wakes_at is not None and now >= member.wakes_at:
                member.wakes_at = None
                member.process.send_signal(signal.SIGCONT)
            for word in member.listen():
                self.judge(member, word)

    # --- The end.

    def settle(self):
        """Nothing happens any more: all come to one epoch, and to its end."""
        self.tick()
        deadline = time.monotonic() + LIMIT_S
        from_here = {member: len(member.said) for member in self.members}
        while not self.is_settled(from_here):
            self.fill_roles()
            if not any(member.is_there() for member in self.members):
                self.problems.append("ended: no member is left")
                return
            if time.monotonic() > deadline:
                last = {str(m): m.said[-3:] for m in self.members if m.is_there()}
                stacks = "".join(job_limit.stacks(m.process.pid) for m in self.members)
                self.problems.append(f"hung: no epoch of all within {LIMIT_S} s: {last}\n{stacks}")
                return
            self.tick()
            time.sleep(0.01)
        self.counts["worlds that came to one epoch of all"] += 1

    def fill_roles(self):
        """An epoch takes a member of each role, and a world all. Whoever is about to leave has its
        place until it does."""
        stay = {m.name.split()[0] for m in self.members if m.is_there() and m.hurt != "left"}
        for role, rank in self.vacant():
            if role not in stay or self.world["again"]:
                stay.add(role)
                self.start_member(role, rank)

    def is_settled(self, from_here):
        there = [member for member in self.members if member.is_there()]
        if any(member.hurt == "left" for member in there):
            return False
        pids = sorted(member.process.pid for member in there)
        common = None
        for member in there:
            done = {word["number"] for word in member.said[from_here.get(member, 0):]
                    if word["say"] == "done"}
            whole = {word["number"] for word in member.said
                     if word["say"] == "epoch" and sorted(word["members"]) == pids}
            common = done & whole if common is None else common & done & whole
        return bool(common)

    # --- What members say.

    def judge(self, member, word):
        say = word["say"]
        self.counts[f"said: {say}"] += 1
        if say in ("wrong", "noise"):
            self.problems.append(f"wrong: {member}: {word}")
        elif say == "epoch":
            member.epoch = word["members"]
        elif say == "failed" and member.hurt is None:
            self.judge_failure(member, word)
        elif say == "joins anew" and member.hurt is None and not self.may_join_anew(word):
            self.problems.append(f"error: {member} has lost its world: {word}")
        elif say == "ended" and not self.may_end(member, word):
            self.problems.append(f"error: {member} has ended: {word}")

    def judge_failure(self, member, word):
        """A session may fail because of a member that was hurt, which it has to name."""
        hurt = [rank for rank, pid in enumerate(member.epoch) if self.by_pid[pid].hurt]
        named = {int(text) for found in re.findall(r"ranks? (\d+(?:(?:, |-| and )\d+)*)",
                                                   word["message"])
                 for text in re.findall(r"\d+", found)}
        if not named & set(hurt):
            kind = "not named" if hurt else "error"
            self.problems.append(f"{kind}: ranks {hurt} were hurt, and {member} says {word} "
                                 f"of {member.epoch}")

    def may_join_anew(self, word):
        """The store has ended, or NextEpoch has named a member that was hurt. Where worlds follow
        one another, those that fail because of it leave, and are named, too."""
        if self.world["again"] and any(other.hurt for other in self.members):
            return True
        return self.restarts > 0 or any(f"(process {pid} " in word["message"]
                                        for pid, other in self.by_pid.items() if other.hurt)

    def may_end(self, member, word):
        """Whoever was taken for lost may have lost its place to a joiner."""
        return (word["code"] == "ALREADY_EXISTS" and member.hurt == "stopped"
                and f"{member.name} (process " in word["message"])
