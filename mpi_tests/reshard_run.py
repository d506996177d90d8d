"""Runs `sluice-bench reshard` under mpirun and returns what it did."""
import itertools
import json
import os
import pathlib
import subprocess
import tempfile


class Bench:
    """`mpirun`: the wrapper script; `program`: sluice-bench."""

    def __init__(self, mpirun, program):
        self.mpirun = mpirun
        self.program = program
        self.folder = tempfile.TemporaryDirectory(prefix="reshard-")
        self.runs = itertools.count()

    def path(self, name):
        return str(pathlib.Path(self.folder.name) / name)

    def write(self, name, content):
        text = content if isinstance(content, str) else json.dumps(content)
        pathlib.Path(self.path(name)).write_text(text)
        return self.path(name)

    def run(self, world, args, timeout_s=120, by_rank=None, results_file=None):
        """(exit code, output, results). `world` 0: without mpirun. `by_rank`: {rank: other
        arguments}; results: None if no results file was left. Raises TimeoutExpired if the job
        hangs."""
        results_file = results_file or self.path(f"results-{next(self.runs)}.json")
        tail = ["-J", results_file]
        command = [] if world == 0 else [self.mpirun, "--oversubscribe"]
        for rank in range(world) if by_rank else range(1):
            if rank > 0:
                command.append(":")
            if world > 0:
                command += ["-np", "1" if by_rank else str(world)]
            command += [self.program, "reshard"]
            command += (by_rank or {}).get(rank, args) + tail
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=timeout_s, text=True, errors="replace", check=False,
                              env=dict(os.environ, OMPI_MCA_orte_abort_timeout="5"))
        results = None
        if os.path.exists(results_file):
            with open(results_file, encoding="utf-8") as file:
                results = json.load(file)
        return done.returncode, done.stdout, results
