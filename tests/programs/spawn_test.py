#!/usr/bin/env python3
"""scripts/spawn.sh with programs of the shell: environment, output, exit codes, and all ends.

  spawn_test.py SPAWN
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/nodes"))
import job_limit  # noqa: E402  (of scripts/nodes)


class Spawn:
    def __init__(self, script):
        self.script = script

    def run(self, *arguments, **more):
        done = job_limit.run([self.script, *map(str, arguments)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, **more)
        return done.returncode, done.stdout, done.stderr

    def start(self, *arguments, **more):
        return subprocess.Popen([self.script, *map(str, arguments)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **more)


def wait_for(what, is_true):
    end = time.monotonic() + job_limit.LIMIT_S
    while not is_true():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def end(job):
    with job_limit.limited("spawn.sh after a signal"):
        job.communicate()


def is_alive(pid):
    """False also of what has ended and waits for its parent to see that."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def pids_in(folder, count):
    """What `count` processes have written of themselves."""
    def written():
        return [f for f in pathlib.Path(folder).iterdir() if f.read_text().endswith("\n")]
    wait_for("processes do not start", lambda: len(written()) == count)
    return [int(f.read_text()) for f in written()]


def every_rank_has_its_environment(spawn):
    words = 'echo "$SLUICE_RANK $SLUICE_SIZE $SLUICE_WORLD $SLUICE_TOKEN"'
    alone = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_")}
    for count in (1, 2, 3, 8):
        code, out, err = spawn.run("-n", count, "sh", "-c", words, env=alone)
        assert code == 0, (code, err)
        lines = [line.split() for line in out.splitlines()]
        assert sorted(int(line[0]) for line in lines) == list(range(count)), out
        assert {line[1] for line in lines} == {str(count)}, out
        places = {line[2] for line in lines}
        assert len(places) == 1 and re.fullmatch(r"tcp://127\.0\.0\.1:\d+", places.pop()), out
        tokens = {line[3] for line in lines}
        assert len(tokens) == 1 and len(tokens.pop()) >= 32, out
    # A world that is there already is joined.
    there = dict(alone, SLUICE_WORLD="tcp://node1:29600", SLUICE_TOKEN="secret")
    code, out, _ = spawn.run("-n", 2, "sh", "-c", words, env=there)
    assert code == 0 and out.count(" 2 tcp://node1:29600 secret\n") == 2, out


def the_port_is_free_and_kept(spawn):
    """A server with SO_REUSEADDR can have it. Who asks for any port does not get it."""
    serve = """
import os, socket
host, port = os.environ["SLUICE_WORLD"].removeprefix("tcp://").split(":")
others = [socket.socket() for _ in range(200)]
for other in others:
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    other.bind((host, 0))
    assert other.getsockname()[1] != int(port)
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind((host, int(port)))
server.listen()
socket.create_connection((host, int(port))).close()
"""
    code, _, err = spawn.run("-n", 1, sys.executable, "-c", serve)
    assert code == 0, err


def output_is_forwarded(spawn):
    code, out, err = spawn.run("-l", "-n", 3, "sh", "-c", "echo a b; echo oops >&2; printf end")
    assert code == 0, (code, err)
    assert sorted(out.splitlines()) == sorted(
        f"[{rank}] {text}" for rank in range(3) for text in ("a b", "end")), out
    assert sorted(err.splitlines()) == [f"[{rank}] oops" for rank in range(3)], err
    # Much of it, whole.
    code, out, _ = spawn.run("-l", "-n", 3, "sh", "-c", "seq 20000")
    assert code == 0 and len(out.splitlines()) == 60000, code
    # The first rank has the input, and the others have none.
    code, out, _ = spawn.run("-l", "-n", 2, "cat", given="hello\n")
    assert (code, out) == (0, "[0] hello\n"), (code, out)


def exit_codes(spawn):
    code, _, err = spawn.run("-n", 3, "sh", "-c", "exit 7")
    assert code == 7, (code, err)
    code, _, err = spawn.run("-n", 2, "no-such-program-as-this")
    assert code == 127 and "no-such-program-as-this" in err, (code, err)
    for bad in (["-n", 0, "true"], ["-n", "two", "true"], ["true"], ["-n", 2], [],
                ["-n", 2, "-g", "-1", "true"], ["-n", 99999, "true"]):
        code, _, err = spawn.run(*bad)
        assert code == 2 and "usage: spawn.sh" in err, (bad, code, err)
    code, out, _ = spawn.run("--help")
    assert code == 0 and "SLUICE_WORLD" in out, out


def a_failure_ends_all(spawn):
    """Rank 1 fails first, rank 2 fails later, and the others would run for ever."""
    forever = "; while :; do sleep 1; done"
    script = 'case $SLUICE_RANK in 1) exit 5;; 2) trap "exit 9" TERM; esac' + forever
    code, _, err = spawn.run("-g", 0.2, "-n", 4, "sh", "-c", script)
    assert code == 5, (code, err)
    assert "rank 1 ended with code 5" in err, err
    code, _, err = spawn.run("-g", 0.2, "-n", 3, "sh", "-c",
                             "[ $SLUICE_RANK != 1 ] || kill -9 $$" + forever)
    assert code == 137, (code, err)
    # Who does not listen is killed.
    code, _, err = spawn.run("-g", 0.2, "-n", 2, "sh", "-c",
                             'trap "" TERM; [ $SLUICE_RANK = 0 ] || exit 3' + forever)
    assert code == 3, (code, err)
    # Others have their while: this one uses it to say something.
    code, out, _ = spawn.run("-g", job_limit.LIMIT_S, "-n", 2, "sh", "-c",
                             "[ $SLUICE_RANK = 0 ] || exit 3; sleep 0.3; echo last words")
    assert (code, out) == (3, "last words\n"), (code, out)


def signals_end_all(spawn):
    script = 'echo $$ >"$0/$SLUICE_RANK"; while :; do sleep 1; done'
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        with tempfile.TemporaryDirectory(prefix="spawn-") as folder:
            job = spawn.start("-g", 0.2, "-n", 3, "sh", "-c", script, folder)
            pids = pids_in(folder, 3)
            job.send_signal(number)
            end(job)
            expected = -number if number == signal.SIGKILL else 128 + number
            assert job.returncode == expected, (number, job.returncode)
            wait_for("processes are left", lambda: not any(map(is_alive, pids)))


def what_a_rank_has_started_ends_too(spawn):
    with tempfile.TemporaryDirectory(prefix="spawn-") as folder:
        script = 'sh -c \'echo $$ >"$0/$SLUICE_RANK"; while :; do sleep 1; done\' "$0"; true'
        job = spawn.start("-g", 0.2, "-n", 2, "sh", "-c", script, folder)
        pids = pids_in(folder, 2)
        job.send_signal(signal.SIGTERM)
        end(job)
        wait_for("grandchildren are left", lambda: not any(map(is_alive, pids)))


def main():
    job_limit.hear_ctrl_c()
    spawn = Spawn(sys.argv[1])
    for test in (every_rank_has_its_environment, the_port_is_free_and_kept, output_is_forwarded,
                 exit_codes, a_failure_ends_all, signals_end_all, what_a_rank_has_started_ends_too):
        test(spawn)


if __name__ == "__main__":
    main()
