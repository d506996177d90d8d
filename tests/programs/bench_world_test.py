#!/usr/bin/env python3
"""sluice-bench without mpirun: under spawn.sh, as torchrun and srun start it, alone, and broken.

  bench_world_test.py SPAWN SLUICE_BENCH PART [MPIRUN]

PART: ranks (each command on 1, 2, 3 and 8 ranks), launchers, or faults. SLUICE_BENCH may be built
with MPI or without. With MPI, MPIRUN starts some of the processes.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from world_bench import (ALONE, Bench, is_good, job_limit, patient, reserved_port, reshard_args,
                         run, run_together)


# ---- Each command on some ranks.

def reshard(bench, ranks):
    results = is_good(bench.run(ranks, *reshard_args(ranks)), ranks)
    assert results["config"]["mpi"] == "no MPI", results["config"]
    assert results["results"], results
    assert [(wire["wire"], len(wire["ranks"])) for wire in results["wires"]] == \
        ([("direct", ranks - 1)] if ranks > 1 else []), results["wires"]
    # Messages instead of copies, several sessions, planned nodes, a trace and a thread each.
    trace = bench.path(f"trace-{ranks}.json")
    more = ["--compare-transports", "direct,mpi", "--ranks-per-node", 2, "--trace", trace,
            "--progress-thread"]
    results = is_good(bench.run(ranks, *reshard_args(ranks), *more), ranks)
    assert len(results["results"]) == 2, results["results"]
    wires = {(wire["lane"], wire["wire"]) for wire in results["wires"]}
    assert ranks == 1 or ("/mpi", "tcp") in wires, results["wires"]
    assert ranks == 1 or ("/direct", "direct") in wires, results["wires"]
    # What carries messages is said in the header, too.
    code, output, results = bench.run(ranks, *reshard_args(ranks), "--transport", "mpi")
    assert code == 0, output
    if ranks > 1:
        assert results["config"]["transport"] == "tcp", results["config"]
        assert " transport=tcp" in output and "# wires: rank 0 to rank" in output, output
    assert len(json.loads(pathlib.Path(trace).read_text())["traceEvents"]) > 0


def stream(bench, ranks):
    shards = bench.path("shards")
    code, output, _ = bench.run(ranks, "shards", "--make", "raw", "--dir", shards, "--items", 48,
                                "--item-bytes", "16K", "--force")
    assert code == 0, output
    for more in (["--share", "deal"], ["--exchange", 1], ["--shuffle", "--progress-thread"]):
        is_good(bench.run(ranks, "stream", "--source", f"buffered:{shards}", "--budget-bytes", "1M",
                          *more), ranks)


def checkpoint(bench, ranks):
    folder = bench.path(f"checkpoint-{ranks}")
    os.makedirs(folder, exist_ok=True)
    results = is_good(bench.run(ranks, "checkpoint", "--make", "--path", f"buffered:{folder}",
                                "--shape", "64,32", "--tensors", 3, "--save-layout",
                                f"{ranks}:S(0)", "--layout", f"{ranks}:S(1)"), ranks)
    assert {result["case"] for result in results["results"]} == {"save", "load"}, results


def doctor(bench, ranks):
    code, output, results = bench.run(ranks, "doctor")
    assert code in (0, 1), (code, output)
    assert results["errors"] == [], results
    findings = {finding["check"]: finding for finding in results["results"]}
    assert findings["fabric"]["value"].startswith("world at tcp://127.0.0.1:"), findings["fabric"]
    assert findings["mpi"]["value"] == "not in use", findings["mpi"]
    assert findings["ranks"]["value"] == str(ranks), findings["ranks"]
    if ranks > 1:
        assert findings["wire_messages"]["value"].startswith("within a node over "), findings


def all_commands(bench):
    for ranks in (1, 2, 3, 8):
        for command in (reshard, stream, checkpoint, doctor):
            command(bench, ranks)


# ---- Launchers.

def torchrun_and_srun(bench):
    for ranks in (1, 3):
        for of_rank in (
                lambda rank, port: {
                    "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank),
                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port - 1)},
                lambda rank, port: {
                    "SLURM_PROCID": str(rank), "SLURM_NTASKS": str(ranks),
                    "SLURM_LOCALID": str(rank), "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "4711",
                    "SLUICE_WORLD": f"tcp://127.0.0.1:{port}"}):
            kept, port = reserved_port()
            processes = [dict(of_rank(rank, port), SLUICE_TOKEN="a secret of this test")
                         for rank in range(ranks)]
            ended, results = bench.together(processes, *reshard_args(ranks))
            assert [code for code, _ in ended] == [0] * ranks, ended
            assert results["config"]["world"] == ranks, results["config"]
            # Only the first one says something on its output.
            assert all(not output for _, output in ended[1:]), ended
            kept.close()


def two_jobs_meet(bench):
    """Started apart: each has its role, and both are one world of four ranks."""
    kept, port = reserved_port()
    json_file = bench.path("two-jobs.json")
    env = dict(ALONE, SLUICE_WORLD=f"tcp://127.0.0.1:{port}", SLUICE_ROLES="trainer:2,server:2",
               SLUICE_TOKEN="a secret of this test")
    command = [bench.spawn, "-n", "2", bench.program, *patient(reshard_args(4)), "--json",
               json_file]
    ended = run_together([(command, dict(env, SLUICE_ROLE=role))
                          for role in ("server", "trainer")])
    assert [code for code, _ in ended] == [0, 0], ended
    assert bench.results(json_file)["config"]["world"] == 4, ended
    kept.close()


def alone(bench):
    json_file = bench.path("alone.json")
    done = run([bench.program, *map(str, reshard_args(1)), "--json", json_file])
    results = is_good((*done, bench.results(json_file)), 1)
    assert (results["config"]["mpi"] != "no MPI") == bench.has_mpi, results["config"]
    # A batch script of Slurm is one process, whatever will be started in it.
    batch = [{"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "1"}]
    ended, results = bench.together(batch, *reshard_args(1))
    assert ended[0][0] == 0 and results["config"]["world"] == 1, (ended, results)


def only_the_first_of_many_prints(bench):
    for arguments in (["--version"], ["reshard", "--help"], ["reshard", "--list-presets"]):
        done = job_limit.run([bench.spawn, "-l", "-n", "3", bench.program, *arguments],
                             stdout=subprocess.PIPE, text=True, check=True, env=ALONE)
        lines = done.stdout.splitlines()
        assert lines and all(line.startswith("[0] ") for line in lines), lines


def under_mpirun(bench):
    ranks = 2
    launched = [{"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(ranks)}
                for rank in range(ranks)]
    if not bench.has_mpi:
        # Not two jobs of one process each.
        ended, results = bench.together(launched, *reshard_args(1))
        for code, output in ended:
            assert code == 2 and "started by mpirun, but this program is built without" in output
        assert results["errors"] and results["results"] == [], results
        for code, output in bench.together([{}], *reshard_args(1), "--fabric", "mpi")[0]:
            assert code == 2 and "--fabric mpi: this program is built without MPI" in output, output
    kept, port = reserved_port()
    world = {"SLUICE_WORLD": f"tcp://127.0.0.1:{port}", "SLUICE_TOKEN": "a secret of this test"}
    if not (bench.has_mpi and bench.mpirun):
        ended, results = bench.together([dict(mine, **world) for mine in launched],
                                        *reshard_args(ranks), "--fabric", "world")
        assert [code for code, _ in ended] == [0] * ranks, ended
    else:
        json_file = bench.path("mpirun.json")
        command = [bench.mpirun, "--oversubscribe", "-np", str(ranks), bench.program,
                   *patient(reshard_args(ranks)), "--fabric", "world", "--json", json_file]
        code, output = run(command, dict(ALONE, **world))
        assert code == 0, output
        results = bench.results(json_file)
    assert results["config"]["world"] == ranks and results["config"]["mpi"] == "no MPI", results
    kept.close()


# ---- Faults.

def bad_flags(bench):
    for ranks in (1, 3):
        for arguments in (["--wash"], ["--timeout-s", "soon"], ["--fabric", "tcp"]):
            for command in (reshard_args(ranks), ["doctor"]):
                code, output, results = bench.run(ranks, *command, *arguments)
                assert code == 2, (arguments, code, output)
                assert results["errors"], results
    # On one rank of some: all of them hear of it.
    for rank in (0, 2):
        code, output, results = bench.run(3, *reshard_args(3), by_rank={rank: "--wash"})
        assert code == 2, (code, output)
        assert "--wash" in output and f"rank {rank}" in output, output
        assert f"rank {rank}" in results["errors"][0]["message"], results
    code, output, _ = bench.run(3, *reshard_args(3), by_rank={1: "--seed 5"})
    assert code == 2 and "different fill_seed: rank 0 has 0, rank 1 has 5" in output, (code, output)


def bad_environment(bench):
    for variables in ({"SLUICE_RANK": "one"}, {"SLUICE_RANK": "5"}, {"SLUICE_RANK": "-1"},
                      {"SLUICE_WORLD": "node1:29600"}, {"SLUICE_WORLD": "tcp://127.0.0.1:nine"},
                      {"SLUICE_SIZE": "none"}):
        good = {"SLUICE_RANK": "0", "SLUICE_SIZE": "2", "SLUICE_WORLD": "tcp://127.0.0.1:9",
                "SLUICE_TOKEN": "t"}
        ended, _ = bench.together([dict(good, **variables)], *reshard_args(2))
        code, output = ended[0]
        assert code == 2, (variables, code, output)
        assert "sluice-bench reshard: " in output, output
    ended, _ = bench.together([{}], *reshard_args(1), "--fabric", "world")
    assert ended[0][0] == 2 and "SLUICE_" in ended[0][1], ended


def baselines_take_mpi(bench):
    for name in ("isend", "mpi-collective", "memcpy-own", "bound"):
        code, output, results = bench.run(2, *reshard_args(2), "--baseline", name)
        assert code == 2, (code, output)
        assert f"--baseline {name}: takes messages of MPI; " in output, output
        assert ("built without MPI" in output) != bench.has_mpi, output
        assert "messages of MPI" in results["errors"][0]["message"], results


def a_rank_that_does_not_come(bench):
    kept, port = reserved_port()
    missing = {"SLUICE_RANK": "0", "SLUICE_SIZE": "2", "SLUICE_WORLD": f"tcp://127.0.0.1:{port}",
               "SLUICE_TOKEN": "a secret of this test"}
    ended, results = bench.together([missing], *reshard_args(2), "--timeout-s", 5)
    assert ended[0][0] == 1, ended
    assert re.search(r"member 1\b|rank 1\b", ended[0][1]), ended
    assert results["errors"], results
    kept.close()


def a_rank_that_is_killed(bench):
    """In the middle of a long run. The others say who it was."""
    pids = bench.path("pids")
    os.makedirs(pids, exist_ok=True)
    script = pathlib.Path(bench.path("with-pid.sh"))
    script.write_text(f'#!/bin/sh\necho $$ >"{pids}/$SLUICE_RANK"\nexec "$@"\n')
    script.chmod(0o755)
    for victim in (0, 2):
        trace = bench.path(f"killed-{victim}.json")
        job = subprocess.Popen(
            [bench.spawn, "-g", str(job_limit.LIMIT_S), "-n", "3", str(script), bench.program,
             *patient(reshard_args(3, 1000000)), "--check", "none", "--json", trace],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ALONE)
        with job_limit.limited("a job of which a rank is killed"):
            first_line = job.stdout.readline()  # of the table: all ranks have come
            pid = int(pathlib.Path(pids, str(victim)).read_text())
            os.kill(pid, signal.SIGKILL)
            output = first_line + job.communicate()[0]
        assert job.returncode == 137, (job.returncode, output)
        assert f"rank {victim} ended with code 137" in output, output
        others = [line for line in output.splitlines() if line.startswith("sluice-bench")]
        assert any(re.search(rf"(rank|process of rank|ranks) {victim}\b", line.partition(": ")[2])
                   for line in others), output


PARTS = {"ranks": [all_commands],
         "launchers": [torchrun_and_srun, two_jobs_meet, alone, only_the_first_of_many_prints,
                       under_mpirun],
         "faults": [bad_flags, bad_environment, baselines_take_mpi, a_rank_that_does_not_come,
                    a_rank_that_is_killed]}


def main():
    spawn, program, part, *mpirun = sys.argv[1:]
    bench = Bench(spawn, program, *mpirun)
    for test in PARTS[part]:
        begin = time.monotonic()
        test(bench)
        print(f"{test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main()
