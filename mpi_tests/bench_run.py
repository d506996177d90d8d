"""Runs a subcommand of sluice-bench, alone or under mpirun, and returns what it did."""
import itertools
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "scripts/nodes"))
import job_limit  # noqa: E402  (of scripts/nodes)

# Beside a build a rank may have no word for longer than by default. A test may say otherwise.
PATIENCE = ["--timeout-s", "200"]
PATIENT = ("reshard", "stream", "checkpoint", "doctor")


def run_tests(tests, *arguments):
    for test in tests:
        test(*arguments)
        print(f"ok {test.__name__}", flush=True)


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

    def run(self, world, args, by_rank=None, results_file=None, mca=None):
        """(exit code, output, results). `world` 0: without mpirun. `by_rank`: {rank: other
        arguments}; `mca`: Open MPI's parameters; results: None if no results file was left.
        Raises job_limit.Late if it hangs."""
        number = next(self.runs)
        results_file = results_file or self.path(f"results-{number}.json")
        # Runs of one test go on side by side: see the tests' own folders in CMakeLists.txt.
        of_mpi = self.path(f"ompi-{number}")
        os.mkdir(of_mpi)
        command = [] if world == 0 else [self.mpirun, "--oversubscribe", "-np", str(world)]
        if by_rank:
            command.append(self.script(number, by_rank))
        command += [self.program, self.subcommand, *self.patient(args), "--json", results_file]
        done = job_limit.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace",
                             env=dict(os.environ, OMPI_MCA_orte_abort_timeout="5",
                                      OMPI_MCA_orte_tmpdir_base=of_mpi,
                                      **{f"OMPI_MCA_{k}": v for k, v in (mca or {}).items()}))
        results = None
        if os.path.exists(results_file):
            with open(results_file, encoding="utf-8") as file:
                results = json.load(file)
        return done.returncode, done.stdout, results

    def passes(self, world, args, **how):
        """(output, results) of a run that has to end well."""
        code, output, results = self.run(world, args, **how)
        assert code == 0, (args, output)
        return output, results

    def refused(self, world, args, expected, by_rank=None, code=None):
        """Results of a run that all ranks end in order, and whose error says `expected`. Without
        `code`: 1 where only a case among others has failed, which has an error of its own."""
        ended, output, results = self.run(world, args, by_rank=by_rank)
        assert expected in output, (args, expected, output)
        assert "MPI_FINALIZE" not in output, (args, output)  # in order: all is freed before
        assert results is not None, (args, output)
        errors = results["errors"]
        code = code or (1 if any(error["case"] for error in errors) else 2)
        assert ended == code, (args, ended, output)
        if code == 2:  # once, and before the table begins
            said = [line for line in output.splitlines() if line.startswith(("sluice-bench ", "#"))]
            assert len(said) == 1 and said[0][0] != "#", (args, output)
        assert any(expected in e["case"] + e["message"] for e in errors), (args, expected, errors)
        return results

    def cannot_write_results(self, world, args):
        code, output, _ = self.run(world, args, results_file="/nowhere/results.json")
        assert code == 2 and output.count("/nowhere/results.json") == 1, (code, output)
        assert "# " not in output and "MPI_ABORT" not in output, output

    def patient(self, args):
        """The arguments as words, with a long limit of silence if they have none."""
        words = list(map(str, args))
        more = self.subcommand in PATIENT and "--timeout-s" not in words
        return words + (PATIENCE if more else [])

    def script(self, number, by_rank):
        """A program that runs its arguments; on the ranks of `by_rank`, with other ones. In place
        of "mpirun -np 1 A : -np 1 B", at which mpirun of Open MPI 5.0.7 crashes."""
        path = pathlib.Path(self.path(f"by-rank-{number}.sh"))
        lines = ["#!/bin/sh", "program=$1 subcommand=$2",
                 "for results; do :; done  # the last argument",
                 "case ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} in"]
        for rank, args in by_rank.items():
            words = " ".join(map(shlex.quote, self.patient(args)))
            lines.append(f'  {rank}) set -- "$program" "$subcommand" {words} --json "$results" ;;')
        path.write_text("\n".join(lines + ["esac", 'exec "$@"', ""]))
        path.chmod(0o755)
        return str(path)


class DeniedRun(BenchRun):
    """Runs it where a filter keeps each rank from `calls`."""

    def __init__(self, mpirun, program, subcommand, deny, calls):
        super().__init__(mpirun, program, subcommand)
        self.deny, self.calls = deny, calls

    def run(self, world, args, **how):
        # Open MPI may make these calls itself.
        return super().run(world, args, by_rank={0: []},
                           mca={"btl_vader_single_copy_mechanism": "none"}, **how)

    def script(self, number, by_rank):
        path = pathlib.Path(self.path(f"deny-{number}.sh"))
        path.write_text(f'#!/bin/sh\nexec "{self.deny}" {self.calls} "$@"\n')
        path.chmod(0o755)
        return str(path)
