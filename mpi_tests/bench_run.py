"""Runs a subcommand of sluice-bench, alone or under mpirun, and returns what it did."""
import itertools
import json
import os
import pathlib
import subprocess
import tempfile


class BenchRun:
    """`mpirun`: the wrapper script; `program`: sluice-bench."""

    def __init__(self, mpirun, program, subcommand):
        self.mpirun = mpirun
        self.program = program
        self.subcommand = subcommand
        self.folder = tempfile.TemporaryDirectory(prefix=f"{subcommand}-")
        self.runs = itertools.count()

    def path(self, name):
        return str(pathlib.Path(self.folder.name) / name)

    def run(self, world, args, timeout_s=120, by_rank=None, results_file=None):
        """(exit code, output, results). `world` 0: without mpirun. `by_rank`: {rank: other
        arguments}; results: None if no results file was left. Raises TimeoutExpired if it
        hangs."""
        number = next(self.runs)
        results_file = results_file or self.path(f"results-{number}.json")
        # Runs of one test go on side by side: see the tests' own folders in CMakeLists.txt.
        of_mpi = self.path(f"ompi-{number}")
        os.mkdir(of_mpi)
        command = [] if world == 0 else [self.mpirun, "--oversubscribe"]
        for rank in range(world) if by_rank else range(1):
            if rank > 0:
                command.append(":")
            if world > 0:
                command += ["-np", "1" if by_rank else str(world)]
            command += [self.program, self.subcommand]
            command += [str(a) for a in (by_rank or {}).get(rank, args)]
            command += ["--json", results_file]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=timeout_s, text=True, errors="replace", check=False,
                              env=dict(os.environ, OMPI_MCA_orte_abort_timeout="5",
                                       OMPI_MCA_orte_tmpdir_base=of_mpi))
        results = None
        if os.path.exists(results_file):
            with open(results_file, encoding="utf-8") as file:
                results = json.load(file)
        return done.returncode, done.stdout, results
