#!/usr/bin/env python3
"""Two jobs that are started apart meet: trainers first, servers later, as from another shell.

The programs of examples/two_jobs run, and sync three versions. With --kill, --join or --partition
`sluice-bench sync` does: its members come and go between versions.

With --namespaces each job is on a host of its own: its network, processes and shared memory are
apart, and one link is between the hosts. That takes root, and a system that lets root make
namespaces. Otherwise it ends with 77.
"""
import argparse
import pathlib
import shutil
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True
import two_hosts  # noqa: E402  (beside this file)
from two_jobs_stage import Failure, Stage  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
TENSORS = "4,512,512"
# Time enough for all that is shown: versions go on meanwhile.
VERSIONS, PAUSE_MS = 100, 200
# After which a host that cannot be reached is given up. Without --partition all can be.
SILENCE_S, LONG_SILENCE_S = 10, 120


def parse():
    parser = argparse.ArgumentParser(prog="two_jobs.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainers", type=int, default=2, metavar="N", help="[2]")
    parser.add_argument("--servers", type=int, default=3, metavar="N", help="[3]")
    parser.add_argument("--namespaces", action="store_true", help="each job on a host of its own")
    parser.add_argument("--rate", metavar="RATE",
                        help="of the link, in each direction, as tc spells it: 10gbit")
    parser.add_argument("--kill", action="store_true", help="the last server is killed")
    parser.add_argument("--join", action="store_true",
                        help="a server comes late; with --kill in the place of the killed one")
    parser.add_argument("--partition", action="store_true",
                        help="the link loses all packets for a while; takes --namespaces")
    parser.add_argument("--programs", default=str(ROOT / "build/bin"), metavar="FOLDER",
                        help="where the programs are [build/bin]")
    arguments = parser.parse_args()
    if not 1 <= arguments.trainers <= 64 or not 2 <= arguments.servers <= 64:
        parser.error("1 to 64 trainers, and 2 to 64 servers")
    if (arguments.rate or arguments.partition) and not arguments.namespaces:
        parser.error("--rate and --partition take --namespaces: there is no link without them")
    try:
        two_hosts.check_rate(arguments.rate or "1gbit")
    except ValueError as error:
        parser.error(f"--rate takes {error}")
    return arguments


class Show:
    """The steps, in the order in which they are seen."""

    def __init__(self, arguments, stage):
        self.arguments = arguments
        self.stage = stage
        self.trainers = []
        self.servers = []
        self.has_sync = arguments.kill or arguments.join or arguments.partition

    def run(self):
        arguments, stage = self.arguments, self.stage
        stage.say("The store starts. The members of both jobs meet there.")
        stage.start_store()
        stage.say(f"{arguments.trainers} trainers start. There is no server yet, so they wait.")
        self.trainers = [self.start("trainer", rank) for rank in range(arguments.trainers)]
        self.trainers[0].wait_for("waits for the servers|# sync: trainer 0")
        stage.say(f"{self.at_first()} servers start, as from another shell.")
        self.servers = [self.start("server", rank) for rank in range(self.at_first())]
        if self.has_sync:
            self.wait_for_version(self.at_first())
            self.wait_for_version(self.at_first())
            if arguments.kill:
                self.kill_server()
            if arguments.join:
                self.join_server()
            if arguments.partition:
                self.part_hosts()
            stage.say(f"The rest of the {VERSIONS} versions is not shown.")
            stage.shows = False
        self.end()

    def at_first(self):
        """How many servers start at first."""
        comes_late = self.arguments.join and not self.arguments.kill
        return self.arguments.servers - (1 if comes_late else 0)

    def start(self, role, rank):
        if not self.has_sync:
            return self.stage.start(role, rank, [f"two_jobs_{role}"])
        at_least = self.at_first() - (1 if self.arguments.kill else 0)
        return self.stage.start(role, rank, [
            "sluice-bench", "sync", "--tensors", TENSORS, "--versions", str(VERSIONS), "--pause-ms",
            str(PAUSE_MS), "--timeout-s",
            str(SILENCE_S if self.arguments.partition else LONG_SILENCE_S), "--at-least",
            str(at_least),
            "--json", self.stage.json_file(role, rank)])

    def wait_for_version(self, servers, meanwhile=lambda: None):
        """The next one that comes to so many servers, as trainer 0 tells it."""
        line = rf"^ +\d+ +\d+ +{self.arguments.trainers} +{servers} .*\d$"
        return self.trainers[0].wait_for(line, meanwhile)

    def kill_server(self):
        victim = self.servers.pop()
        self.stage.say(f"{victim.name} is killed: its process ends without a word.")
        self.stage.kill(victim)
        for job in self.trainers + self.servers:
            job.wait_for(rf"lost {victim.name} ")
        self.stage.say(f"All {len(self.trainers + self.servers)} others have named it.")
        self.wait_for_version(len(self.servers))
        self.stage.say(f"The next version has come to the {len(self.servers)} servers that are "
                       f"left, in the same processes.")

    def join_server(self):
        rank = len(self.servers)
        self.stage.say(f"server {rank} starts. It gets the current version from other servers.")
        self.servers.append(self.start("server", rank))
        line = self.trainers[0].wait_for(rf"caught up: .*server {rank}\b")
        of_trainers = line.split()[6]
        if of_trainers != "0":
            raise Failure(f"trainers have sent {of_trainers} bytes to the server that came late")
        self.stage.say("It has caught up, and the trainers have sent nothing for that.")
        self.wait_for_version(len(self.servers))
        self.stage.say(f"The next version has come to all {len(self.servers)} servers.")

    def part_hosts(self):
        self.stage.say("The link loses all packets. No side can know whether the other one lives.")
        self.stage.hosts.cut()
        self.names_the_others(self.trainers, "server")
        self.names_the_others(self.servers, "trainer")
        self.stage.say("Each side has named the other one.")
        self.stage.hosts.heal()
        self.stage.say("The link is whole again. Servers that have given up are started again.")
        # A server that cannot reach the store ends, sooner or later.
        self.wait_for_version(len(self.servers), self.start_servers_again)
        self.stage.say(f"The next version has come to all {len(self.servers)} servers.")

    def start_servers_again(self):
        for rank, server in enumerate(self.servers):
            if not server.runs():
                self.servers[rank] = self.start("server", rank)

    def names_the_others(self, jobs, others):
        """Each of the jobs says who is silent, by its rank or by its name."""
        first = 0 if others == "trainer" else self.arguments.trainers
        count = len(self.trainers if others == "trainer" else self.servers)
        ranks = "|".join(str(rank) for rank in range(first, first + count))
        for job in jobs:
            job.wait_for(rf"lost {others} \d|\b{others} \d|ranks? ([\d, -]*\b)?({ranks})\b")

    def end(self):
        for job in self.trainers + self.servers:
            job.must_end_well()
        wrong = sum(version["wrong"] for job in self.trainers + self.servers if self.has_sync
                    for version in self.stage.results(job)["versions"])
        if wrong:
            raise Failure(f"{wrong} elements are wrong")
        self.stage.say(f"Both jobs have ended well, and all elements were right on "
                       f"{len(self.servers)} servers.")


def show(arguments, folder):
    hosts = stage = None
    try:
        if arguments.namespaces:
            hosts = two_hosts.TwoHosts(arguments.rate)
        roles = {"trainer": arguments.trainers, "server": arguments.servers}
        stage = Stage(arguments.programs, folder, roles, hosts)
        Show(arguments, stage).run()
        return 0
    except two_hosts.NotAllowed as error:
        print(f"two_jobs.sh: {error}", file=sys.stderr)
        return 77
    except Failure as error:
        print(f"two_jobs.sh: {error}", file=sys.stderr)
        return 1
    finally:
        if stage is not None:
            stage.end()
        elif hosts is not None:
            hosts.end()


def main():
    arguments = parse()
    for number in two_hosts.ENDINGS:
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    folder = tempfile.mkdtemp(prefix="sluice-two-jobs-")
    try:
        return show(arguments, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
