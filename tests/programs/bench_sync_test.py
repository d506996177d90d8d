#!/usr/bin/env python3
"""sluice-bench sync: two jobs that are started apart, members that are killed and that join.

  bench_sync_test.py SPAWN SLUICE_BENCH PART

PART: versions, members, or faults. SLUICE_BENCH may be built with MPI or without.
"""
import fcntl
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from world_bench import ALONE, job_limit, patient, reserved_port, run_together

TOY = ("--tensors", "5,48,40")
PIPE_BYTES = 4096  # the least that there is
LINES_AHEAD = 50  # and at least as many lines of a version as there is room for
LIMIT_S = 900  # of what a test does with one sync


class Process:
    """One process of a sync, whose lines are read as they come."""

    def __init__(self, sync, role, rank, arguments, env=None):
        self.name = f"{role} {rank}"
        self.json_file = sync.path(f"{role}-{rank}-{len(sync.processes)}.json")
        command = [sync.program, *patient(["sync", *arguments]), "--json", self.json_file]
        self.lines = []
        # Without a buffer, so that nothing is read ahead.
        self.job = subprocess.Popen(command, bufsize=0, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, env=dict(ALONE, **(env or {})))
        sync.processes.append(self)

    def hold(self):
        """From now on it may be LINES_AHEAD of what has been read, and then waits."""
        fcntl.fcntl(self.job.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return self

    def waits(self):
        """It sleeps: it has nothing to do that it could do now."""
        try:
            state = pathlib.Path(f"/proc/{self.job.pid}/stat").read_text().rpartition(")")[2]
        except OSError:
            return True
        return state.split()[0] not in "RD"

    def read_until(self, is_it, other=None):
        """The first line, from here on, of which that is true. No line is read while `other` has
        something to do: so a process that is held does not run away from one that begins."""
        while True:
            while other is not None and not other.waits():
                time.sleep(0.01)
            line = self.job.stdout.readline().decode()
            if not line:
                raise AssertionError(f"{self.name} ended:\n{''.join(self.lines)}")
            self.lines.append(line)
            if is_it(line):
                return line

    def await_version(self, version, caught_up=False, other=None):
        def is_it(line):
            words = line.split()
            return (words and words[0].isdigit() and int(words[0]) >= version
                    and ("caught up" in line) == caught_up)
        return self.read_until(is_it, other)

    def end(self):
        """(exit code, output, results)."""
        self.lines.append(self.job.stdout.readall().decode())
        self.job.wait()
        output = "".join(self.lines)
        path = pathlib.Path(self.json_file)
        results = json.loads(path.read_text()) if path.exists() else None
        return self.job.returncode, output, results


class Sync:
    """Processes that meet at a port of their own."""

    def __init__(self, program):
        self.program = program
        self.folder = tempfile.TemporaryDirectory(prefix="sync-")
        self.kept, port = reserved_port()
        self.world = f"tcp://127.0.0.1:{port}"
        self.processes = []

    def __enter__(self):
        self.limit = job_limit.limited("a sync", LIMIT_S)
        self.limit.__enter__()
        return self

    def __exit__(self, *how):
        self.limit.__exit__(*how)
        for process in self.processes:
            process.job.kill()
            process.job.wait()
            process.job.stdout.close()
        self.kept.close()

    def path(self, name):
        return str(pathlib.Path(self.folder.name) / name)

    def start(self, role, rank, size, *arguments, env=None):
        return Process(self, role, rank, ["--role", role, "--world", self.world, "--rank", rank,
                                          "--size", size, *arguments], env)


def plain(results):
    return [entry for entry in results["versions"] if not entry["catch_up"]]


def caught_up(results):
    return [entry for entry in results["versions"] if entry["catch_up"]]


def is_right(process, versions=None):
    """The results of a process that did all well. `versions`: those that it must have."""
    code, output, results = process.end()
    assert code == 0, (process.name, code, output)
    assert results["errors"] == [], results["errors"]
    for entry in results["versions"]:
        assert entry["wrong"] == 0 and entry["time_us"] > 0, entry
        assert set(entry["members"]) == set(entry["bytes_from"]) == {"trainer", "server"}, entry
    if versions is not None:
        assert [entry["version"] for entry in plain(results)] == versions, (process.name, results)
    return results


# ---- Versions.

def trainers_and_servers(program, trainers_first, *more, trainers=2, servers=3):
    versions = 4
    with Sync(program) as sync:
        roles = [("trainer", trainers), ("server", servers)]
        for role, size in roles if trainers_first else reversed(roles):
            for rank in range(size):
                sync.start(role, rank, size, "--versions", versions, *more)
            while not all(process.waits() for process in sync.processes):
                time.sleep(0.01)
        for process in sync.processes:
            results = is_right(process, list(range(1, versions + 1)))
            assert not caught_up(results) and results["lost"] == [], results
            for entry in plain(results):
                assert entry["members"] == {"trainer": trainers, "server": servers}, entry
                assert entry["bytes_from"]["trainer"] > 0 and entry["payload_bytes"] > 0, entry
                assert entry["own_us"] <= entry["time_us"], entry
            case = results["results"][0]
            assert case["time_us"]["min"] <= case["time_us"]["max"] and case["wrong"] == 0, case


def in_any_order(program, _):
    trainers_and_servers(program, True, *TOY)
    trainers_and_servers(program, False, *TOY, "--seed", 3)
    trainers_and_servers(program, True, *TOY, "--progress-thread", trainers=1, servers=1)


def models_and_systems(program, _):
    model = ["--model", "llama-3-8b", "--scale", 64, "--layers", 2]
    trainers_and_servers(program, True, *model)
    # Whole replicas of two servers, and one that is left over.
    for servers in (4, 3):
        trainers_and_servers(program, True, *model, "--system", "llama-3-8b-fsdp4-tp2dp2",
                             trainers=4, servers=servers)


def a_pause_is_no_silence(program, _):
    with Sync(program) as sync:
        for role in ("trainer", "server"):
            sync.start(role, 0, 1, *TOY, "--versions", 2, "--pause-ms", 15000, "--timeout-s", 10)
        for process in sync.processes:
            is_right(process, [1, 2])


def environments(program, spawn):
    """Each job by spawn.sh, with the launcher's variables in place of flags."""
    with Sync(program) as sync:
        env = dict(ALONE, SLUICE_WORLD=sync.world, SLUICE_TOKEN="a secret of this test",
                   SLUICE_WIRES="tcp")
        ended = run_together([
            ([spawn, "-n", str(size), program, *patient(["sync", *TOY, "--versions", 3, *more])],
             dict(env, SLUICE_ROLE=role))
            for role, size, more in (("server", 2, ()), ("trainer", 2, ("--seed", "0")))])
        assert [code for code, _ in ended] == [0, 0], ended
        for _, output in ended:
            assert "# versions: 3, catch-ups: 0, lost members: 0\n# wrong elements: 0 OK" in output


# ---- Members that come and go.

# Trainer 0 is held, and what is done to others comes before it has got to the end.
LONG = 5 * LINES_AHEAD
PAUSED = ("--versions", LONG, "--pause-ms", 5)


def a_server_is_killed_and_another_joins(program, _):
    """Each server is a replica, and two servers are one."""
    for more, trainers in ((TOY, 2), ((*TOY, "--system", "llama-3-8b-fsdp4-tp2dp2"), 4)):
        with Sync(program) as sync:
            trainer = [sync.start("trainer", rank, trainers, *PAUSED, *more)
                       for rank in range(trainers)]
            trainer[0].hold()
            servers = [sync.start("server", rank, 3, *PAUSED, *more) for rank in range(3)]
            trainer[0].await_version(3)
            servers[1].job.send_signal(signal.SIGKILL)
            for survivor in (trainer[1], servers[2]):
                line = survivor.read_until(lambda line: ": lost " in line)
                assert f"# {survivor.name}: lost server 1 (process {servers[1].job.pid} on" in line
            trainer[0].read_until(lambda line: ": lost " in line)
            version = int(trainer[0].await_version(4).split()[0])
            trainer[0].await_version(version + 2)
            again = sync.start("server", 1, 3, *PAUSED, *more)
            trainer[0].await_version(1, caught_up=True, other=again)
            assert servers[1].end()[0] == -signal.SIGKILL
            for process in (*trainer, servers[0], servers[2]):
                results = is_right(process, list(range(1, LONG + 1)))
                assert [lost["member"] for lost in results["lost"]] == ["server 1"], results["lost"]
                epochs = [entry["epoch"] for entry in results["versions"]]
                assert epochs == sorted(epochs) and len(set(epochs)) == 3, epochs
                servers_by_epoch = {entry["epoch"]: entry["members"]["server"]
                                    for entry in results["versions"]}
                assert list(servers_by_epoch.values()) == [3, 2, 3], servers_by_epoch
                check_catch_up(results, "server 1")
            results = is_right(again)
            entry = check_catch_up(results, "server 1")
            first = plain(results)[0]["version"]
            assert [entry["version"] for entry in plain(results)] == list(
                range(first, LONG + 1)), results
            assert entry["version"] == first - 1 and entry["own_us"] > 0, results
            assert results["lost"] == [], results


def check_catch_up(results, name):
    """All that was caught up came from servers; returns where `name` has."""
    for entry in caught_up(results):
        assert entry["bytes_from"]["trainer"] == 0 and entry["bytes_from"]["server"] > 0, entry
        # The version itself has come before, to those that were there.
        earlier = [each["version"] for each in plain(results) if each["epoch"] < entry["epoch"]]
        assert not earlier or max(earlier) == entry["version"], (entry, earlier)
    # Where replicas are cut, parts move when one is lost, too.
    entry = caught_up(results)[-1]
    assert name in entry["caught_up"], entry
    return entry


def a_trainer_is_killed_and_comes_again(program, _):
    """Not the one that serves the store. The others wait for a process in its place."""
    arguments = (*TOY, *PAUSED)
    with Sync(program) as sync:
        trainers = [sync.start("trainer", rank, 2, *arguments) for rank in range(2)]
        trainers[0].hold()
        server = sync.start("server", 0, 1, *arguments)
        trainers[0].await_version(3)
        trainers[1].job.send_signal(signal.SIGKILL)
        trainers[0].read_until(lambda line: ": lost trainer 1 " in line)
        again = sync.start("trainer", 1, 2, *arguments)
        for process in (trainers[0], server):
            results = is_right(process, list(range(1, LONG + 1)))
            assert [lost["member"] for lost in results["lost"]] == ["trainer 1"], results["lost"]
            assert not caught_up(results), results
        assert plain(is_right(again))[-1]["version"] == LONG


def without_the_first_server(program, _):
    """Those that are there begin; who lacks may come later, or never."""
    with Sync(program) as sync:
        arguments = (*TOY, "--versions", 3, "--at-least", 1)
        sync.start("server", 1, 2, *arguments)
        sync.start("trainer", 0, 1, *arguments)
        for process in sync.processes:
            for entry in is_right(process, [1, 2, 3])["versions"]:
                assert entry["members"]["server"] == 1, entry


def a_server_is_killed_at_the_end(program, _):
    """Whether its loss is noticed or not, the others end well."""
    for _ in range(3):
        with Sync(program) as sync:
            trainer = sync.start("trainer", 0, 1, *TOY, "--versions", 3, "--pause-ms", 50)
            servers = [sync.start("server", rank, 2, *TOY, "--versions", 3) for rank in range(2)]
            trainer.await_version(2)
            servers[1].job.send_signal(signal.SIGKILL)
            for process in (trainer, servers[0]):
                is_right(process, [1, 2, 3])


# ---- Faults.

def refused(sync, code, words, *arguments, role="trainer", rank=0, size=1, env=None):
    ended, output, results = sync.start(role, rank, size, *arguments, env=env).end()
    assert ended == code, (arguments, ended, output)
    assert words in output, (words, output)
    assert results is not None and words in results["errors"][0]["message"], results


def bad_flags(program, _):
    with Sync(program) as sync:
        refused(sync, 2, "--model or --tensors")
        refused(sync, 2, "--model or --tensors", *TOY, "--model", "llama-3-8b")
        refused(sync, 2, "--layers and --scale", *TOY, "--layers", 2)
        refused(sync, 2, "--tensors", "--tensors", "1,2")
        refused(sync, 2, "--tensors", "--tensors", "1,0,2")
        refused(sync, 2, "no-such-model", "--model", "no-such-model")
        refused(sync, 2, "no-such-system", *TOY, "--system", "no-such-system")
        refused(sync, 2, "--role", *TOY, role="boss")
        refused(sync, 2, "--rank is 3, but --size is 2", *TOY, rank=3, size=2)
        refused(sync, 2, "--versions", *TOY, "--versions", 0)
        refused(sync, 2, "--wash", *TOY, "--wash")
        refused(sync, 2, "--timeout-s", *TOY, "--timeout-s", "soon")
        refused(sync, 2, "SLUICE_ROLES", *TOY, env={"SLUICE_ROLES": "server,trainer"})
        refused(sync, 2, "SLUICE_WIRES", *TOY, env={"SLUICE_WIRES": "string"})


def nobody_comes(program, _):
    with Sync(program) as sync:
        refused(sync, 1, sync.world, *TOY, "--wait-s", 5, role="server")
        refused(sync, 1, "server 0", *TOY, "--wait-s", 5)


def a_wrong_token(program, _):
    with Sync(program) as sync:
        tokens = [sync.path("right"), sync.path("wrong")]
        for token in tokens:
            pathlib.Path(token).write_text(f"{os.path.basename(token)} secret of this test\n")
        trainer = sync.start("trainer", 0, 1, *TOY, "--versions", 2, "--token-file", tokens[0])
        refused(sync, 1, "token", *TOY, "--versions", 2, "--token-file", tokens[1], role="server")
        right = sync.start("server", 0, 1, *TOY, "--versions", 2, "--token-file", tokens[0])
        for process in (trainer, right):
            is_right(process, [1, 2])


def given_other_things(program, _):
    with Sync(program) as sync:
        sync.start("trainer", 0, 1, *TOY, "--versions", 3)
        sync.start("server", 0, 1, *TOY, "--versions", 4)
        for process in sync.processes:
            code, output, results = process.end()
            assert code == 1, (code, output)
            assert "was given another --model" in results["errors"][0]["message"], results
    with Sync(program) as sync:
        system = (*TOY, "--system", "llama-3-8b-fsdp4-tp2dp2")
        sync.start("trainer", 0, 1, *system)
        sync.start("server", 0, 1, *system)
        for process in sync.processes:
            code, output, _ = process.end()
            assert code == 2 and "multiple of 4 ranks, and there are 1" in output, (code, output)


PARTS = {"versions": [in_any_order, models_and_systems, a_pause_is_no_silence, environments],
         "members": [a_server_is_killed_and_another_joins, a_trainer_is_killed_and_comes_again,
                     without_the_first_server, a_server_is_killed_at_the_end],
         "faults": [bad_flags, nobody_comes, a_wrong_token, given_other_things]}


def main():
    spawn, program, part = sys.argv[1:]
    for test in PARTS[part]:
        begin = time.monotonic()
        test(program, spawn)
        print(f"{test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
