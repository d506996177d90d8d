"""Runs sluice-bench without mpirun: under spawn.sh, or a process for each set of variables."""
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/nodes"))
import job_limit  # noqa: E402  (of scripts/nodes)
import spawn  # noqa: E402

# Beside a build a rank may have no word for longer than by default. A test may say otherwise.
PATIENCE = ["--timeout-s", "200"]
PATIENT = ("reshard", "stream", "checkpoint", "doctor", "sync")
ALONE = {k: v for k, v in os.environ.items()
         if not k.startswith(("SLUICE_", "OMPI_COMM_", "PMI", "SLURM_"))
         and k not in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}


def patient(arguments):
    """The arguments as words, with a long limit of silence if they have none."""
    words = list(map(str, arguments))
    return words + (PATIENCE if words[0] in PATIENT and "--timeout-s" not in words else [])


def run(command, env=None):
    """(exit code, output) of a job."""
    done = job_limit.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         env=env or ALONE)
    return done.returncode, done.stdout


def run_together(commands):
    """[(exit code, output)] of jobs that meet: pairs of a command and its environment."""
    with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
        jobs = [pool.submit(run, *each) for each in commands]
        return [job.result() for job in jobs]


class Bench:
    def __init__(self, spawn, program, mpirun=None):
        self.spawn, self.program, self.mpirun = spawn, program, mpirun
        self.folder = tempfile.TemporaryDirectory(prefix="world-")
        self.runs = itertools.count()
        version = job_limit.run([program, "--version"], stdout=subprocess.PIPE, text=True,
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
        # Where one fails, the others have time to say so.
        command = [self.spawn, "-g", str(job_limit.LIMIT_S), "-n", str(ranks)]
        if by_rank:
            command.append(self.script(by_rank))
        command += [self.program, *patient(arguments), "--json", json_file]
        code, output = run(command, dict(ALONE, **(env or {})))
        return code, output, self.results(json_file)

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
        command = [self.program, *patient(arguments), "--json", json_file]
        ended = run_together([(command, dict(ALONE, **mine)) for mine in variables])
        return ended, self.results(json_file)


def reserved_port():
    kept = spawn.reserve_port()
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
