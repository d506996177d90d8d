#!/usr/bin/env python3
"""scripts/two_nodes.sh: what crosses its link, what it promises programs, and what it leaves.

  two_nodes_test.py TWO_NODES TWO_NODES_RANK SLUICE_BENCH

Ends with 77 where that script may not make namespaces.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from bench_run import job_limit, run_tests

RANKS = 4  # of each node
SKIPPED = 77


def nodes(script, *args, ranks=RANKS):
    done = job_limit.run([script, "--ranks", str(ranks), *args], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def mpi_and_shared_memory_find_two_nodes(script, rank_program, _):
    code, output = nodes(script, rank_program)
    assert code == 0, output


def the_program_s_code_comes_back(script, *_):
    code, output = nodes(script, "sh", "-c", "exit 5", ranks=1)
    assert code == 5, (code, output)


def rows_of_node_a(script, bench, size, dst_placements, *flags):
    """What two_nodes.sh says of sluice-bench, which moves size x size f32 from rows on node-a to
    the ranks of node-b."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "out.json"
        code, output = nodes(
            script, "--json", str(file), bench, "reshard", "--shape", f"{size},{size}",
            "--dtype", "f32", "--src-mesh", str(RANKS), "--src-ranks", f"0-{RANKS - 1}",
            "--src-placements", "S(0)", "--dst-mesh", str(RANKS), "--dst-ranks",
            f"{RANKS}-{2 * RANKS - 1}", "--dst-placements", dst_placements, "--timeout-s", "200",
            *flags)
        assert code == 0, output
        return json.loads(file.read_text())


# To columns of node-b: all payload crosses, once.
def the_link_counts_what_the_plan_sends(script, _, bench):
    iterations, warmup, size = 3, 1, 1024
    out = rows_of_node_a(script, bench, size, "S(1)", "--check", "1", "-n", str(iterations), "-w",
                         str(warmup))
    result = out["results"]["results"][0]
    assert out["results"]["config"]["host_names"] == ["node-a", "node-b"], out
    assert result["checked"] and result["wrong"] == 0, out
    payload = 4 * size * size
    assert result["payload_bytes"] == payload, out
    planned = (iterations + warmup) * payload
    assert planned <= out["a_to_b_bytes"] < 1.5 * planned, (planned, out)
    assert out["b_to_a_bytes"] < 0.5 * planned, (planned, out)
    assert out["planned_a_to_b_bytes"] == planned and out["planned_b_to_a_bytes"] == 0, out
    [run] = out["compared"]
    assert out["runs"] == iterations + warmup and run["median_ms"] > 0, out


# To replicas on node-b: once for all of them, or once for each.
def plans_are_compared_by_what_crosses(script, _, bench):
    runs, size = 4, 512
    out = rows_of_node_a(script, bench, size, "R", "--compare-plans", "relay,naive", "-n",
                         str(runs - 1), "-w", "1")
    relay, naive = out["compared"]
    assert (relay["plan"], naive["plan"]) == ("relay", "naive"), out
    assert relay["planned_a_to_b_bytes"] == 4 * size * size, relay
    assert naive["planned_a_to_b_bytes"] == RANKS * 4 * size * size, naive
    planned = runs * (RANKS + 1) * 4 * size * size
    assert out["planned_a_to_b_bytes"] == planned and out["planned_b_to_a_bytes"] == 0, out
    assert planned <= out["a_to_b_bytes"] < 1.2 * planned, (planned, out)
    ratio = naive["time_over_first"]
    assert "time_over_first" not in relay and 0 < ratio["p25"] <= ratio["median"], out
    rounds = [theirs / ours for theirs, ours in
              zip(*(r["iterations_us"] for r in reversed(out["results"]["results"])))]
    assert sorted(rounds)[1] == ratio["median"], (rounds, ratio)


def running(argument):
    """The programs of all processes with this in an argument."""
    found = []
    for file in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if any(argument.encode() in word for word in words):
            found.append(words[0])
    return found


# However the script ends, what it started ends soon: also where it cannot do anything about it.
def nothing_outlives_it(script, *_):
    for number, end in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGKILL)):
        with tempfile.TemporaryDirectory() as folder:
            check_end(script, end, f"6543.{time.time_ns()}{number}", folder)


def check_end(script, end, seconds, folder):
    """`seconds`: an argument that nobody else has."""
    job = subprocess.Popen([script, "--ranks", "1", "sleep", seconds], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, env=dict(os.environ, TMPDIR=folder))
    with job_limit.limited(f"two nodes and signal {end}"):
        while running(seconds).count(b"sleep") < 2:
            assert job.poll() is None, end
            time.sleep(0.05)
        job.send_signal(end)
        job.wait()
    # Its processes are nobody's children where it was killed.
    deadline = time.monotonic() + job_limit.LIMIT_S
    while running(seconds):
        assert time.monotonic() < deadline, (end, running(seconds))
        time.sleep(0.05)
    assert end == signal.SIGKILL or not os.listdir(folder), os.listdir(folder)


def main():
    job_limit.hear_ctrl_c()
    code, output = nodes(sys.argv[1], "true", ranks=1)
    if code == SKIPPED:
        print(output)
        return SKIPPED
    assert code == 0, output
    run_tests((mpi_and_shared_memory_find_two_nodes, the_program_s_code_comes_back,
              the_link_counts_what_the_plan_sends, plans_are_compared_by_what_crosses,
              nothing_outlives_it), *sys.argv[1:4])
    return 0


if __name__ == "__main__":
    sys.exit(main())
