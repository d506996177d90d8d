"""Runs a subcommand of sluice-bench, alone or under mpirun, and returns what it did."""
import itertools
import json
import os
import pathlib
import shlex
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

    def run(self, world, args, timeout_s=120, by_rank=None, results_file=None, mca=None):
        """(exit code, output, results). `world` 0: without mpirun. `by_rank`: {rank: other
        arguments}; `mca`: Open MPI's parameters; results: None if no results file was left.
        Raises TimeoutExpired if it hangs."""
        number = next(self.runs)
        results_file = results_file or self.path(f"results-{number}.json")
        # Runs of one test go on side by side: see the tests' own folders in CMakeLists.txt.
        of_mpi = self.path(f"ompi-{number}")
        os.mkdir(of_mpi)
        command = [] if world == 0 else [self.mpirun, "--oversubscribe", "-np", str(world)]
        if by_rank:
            command.append(self.script(number, by_rank))
        command += [self.program, self.subcommand, *map(str, args), "--json", results_file]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=timeout_s, text=True, errors="replace", check=False,
                              env=dict(os.environ, OMPI_MCA_orte_abort_timeout="5",
                                       OMPI_MCA_orte_tmpdir_base=of_mpi,
                                       **{f"OMPI_MCA_{k}": v for k, v in (mca or {}).items()}))
        results = None
        if os.path.exists(results_file):
            with open(results_file, encoding="utf-8") as file:
                results = json.load(file)
        return done.returncode, done.stdout, results

    def script(self, number, by_rank):
        """A program that runs its arguments; on the ranks of `by_rank`, with other ones. In place
        of "mpirun -np 1 A : -np 1 B", at which mpirun of Open MPI 5.0.7 crashes."""
        path = pathlib.Path(self.path(f"by-rank-{number}.sh"))
        lines = ["#!/bin/sh", "program=$1 subcommand=$2",
                 "for results; do :; done  # the last argument",
                 "case ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} in"]
        for rank, args in by_rank.items():
            words = " ".join(shlex.quote(str(a)) for a in args)
            lines.append(f'  {rank}) set -- "$program" "$subcommand" {words} --json "$results" ;;')
        path.write_text("\n".join(lines + ["esac", 'exec "$@"', ""]))
        path.chmod(0o755)
        return str(path)
