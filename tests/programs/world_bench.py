"""Runs sluice-bench without mpirun: under spawn.sh, or a process for each set of variables."""
import itertools
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile

LIMIT_S = 240  # only against hanging
ALONE = {k: v for k, v in os.environ.items()
         if not k.startswith(("SLUICE_", "OMPI_COMM_", "PMI", "SLURM_"))
         and k not in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}


class Bench:
    def __init__(self, spawn, program, mpirun=None):
        self.spawn, self.program, self.mpirun = spawn, program, mpirun
        self.folder = tempfile.TemporaryDirectory(prefix="world-")
        self.runs = itertools.count()
        version = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True,
                                 check=True, env=ALONE).stdout
        found = re.search(r"^built in: (no )?MPI, ", version, re.M)
        assert found, version
        self.has_mpi = found[1] is None

    def path(self, name):
        return str(pathlib.Path(self.folder.name) / name)

    def results(self, path):
        return json.loads(pathlib.Path(path).read_text()) if os.path.exists(path) else None

    def run(self, ranks, *arguments, by_rank=None, env=None):
        """(exit code, output, results). `by_rank`: {rank: other arguments}."""
        json_file = self.path(f"results-{next(self.runs)}.json")
        command = [self.spawn, "-n", str(ranks)]
        if by_rank:
            command.append(self.script(by_rank))
        command += [self.program, *map(str, arguments), "--json", json_file]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=LIMIT_S, check=False, env=dict(ALONE, **(env or {})))
        return done.returncode, done.stdout, self.results(json_file)

    def script(self, by_rank):
        """A program that runs its arguments, and on these ranks adds others."""
        path = pathlib.Path(self.path(f"by-rank-{next(self.runs)}.sh"))
        lines = ["#!/bin/sh", "case $SLUICE_RANK in"]
        lines += [f'  {rank}) set -- "$@" {words} ;;' for rank, words in by_rank.items()]
        path.write_text("\n".join(lines + ["esac", 'exec "$@"', ""]))
        path.chmod(0o755)
        return str(path)

    def together(self, variables, *arguments):
        """One process for each entry of `variables`: [(exit code, output)], results of rank 0."""
        json_file = self.path(f"results-{next(self.runs)}.json")
        jobs = [subprocess.Popen([self.program, *map(str, arguments), "--json", json_file],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                 env=dict(ALONE, **mine)) for mine in variables]
        outputs = [job.communicate(timeout=LIMIT_S)[0] for job in jobs]
        return [(job.returncode, out) for job, out in zip(jobs, outputs)], self.results(json_file)


def reserved_port():
    """As spawn.py keeps one."""
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    return kept, kept.getsockname()[1]


def reshard_args(ranks, iterations=2):
    return ["reshard", "--shape", "48,40", "--tensors", 2, "--src", f"{ranks}:S(0)", "--dst",
            f"{ranks}:S(1)", "-n", iterations]


def is_good(done, ranks):
    code, output, results = done
    assert code == 0, (code, output)
    assert results["errors"] == [], results["errors"]
    assert results["config"]["world"] == ranks, results["config"]
    return results
