"""What all measurements share: where programs are, how much to do, and running them."""
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

CANNOT_RUN_HERE = 77


class CannotRun(Exception):
    """This machine does not allow it."""


class Job:
    def __init__(self, root, bin_folder, share, quick):
        self.root = root
        self.bin = bin_folder
        self.quick = quick
        self._share = share  # of the usual number of rounds
        self._folder = tempfile.TemporaryDirectory(prefix="measure-")
        self.folder = pathlib.Path(self._folder.name)

    def rounds(self, usual, least=3):
        """An odd number, so that the median is a round's."""
        return 1 if self.quick else max(least, round(usual * self._share) | 1)

    def minutes(self, usual):
        return round(usual * self._share, 2)

    @staticmethod
    def variables(more):
        """The environment with more in it."""
        return {**os.environ, **more}

    def run(self, command, **more):
        """The program's standard output. It must end well."""
        command = [str(part) for part in command]
        print("+ " + shlex.join(command), file=sys.stderr, flush=True)
        done = subprocess.run(command, cwd=self.root, stdout=subprocess.PIPE, text=True,
                              check=False, **more)
        if done.returncode == CANNOT_RUN_HERE:
            raise CannotRun(f"{command[0]} cannot run here")
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} ended with {done.returncode}")
        return done.stdout

    def run_for_json(self, command, arguments=(), **more):
        """The same, and what it wrote as JSON."""
        file = self.folder / "results.json"
        file.unlink(missing_ok=True)
        self.run([*command, "--json", file, *arguments], **more)
        return json.loads(file.read_text(encoding="utf-8"))

    def presets(self, script, usual_minutes, *more):
        """What a script found that runs all presets. The time may end before the rounds do."""
        found = self.script(script, [*more, *(
            ["--rounds", 1, "--iters", 1, "--shape", "64,64", "--cases", "etha-[16]-*"]
            if self.quick else
            ["--rounds", self.rounds(5), "--minutes", self.minutes(usual_minutes)])])
        found["rounds"] = min(case["rounds"] for case in found["cases"])
        return found

    def script(self, script, flags):
        """What a script of scripts/ found, with a command that names no folder."""
        env = self.variables({"SLUICE_BENCH": str(self.bin / "sluice-bench")})
        found = self.run_for_json([f"scripts/{script}", *flags], env=env)
        found["command"] = shlex.join(str(part) for part in (f"scripts/{script}", *flags))
        return found

    def reshard(self, ranks, *flags, variables=None):
        """What `sluice-bench reshard` found. Nothing in it tells where it ran. `variables`: of the
        environment, for MPI."""
        found = self.run_for_json(["scripts/mpirun.sh", "--oversubscribe", "-np", ranks,
                                   self.bin / "sluice-bench", "reshard", *flags],
                                  env=self.variables(variables or {}))
        if found["errors"] or any(result["wrong"] for result in found["results"]):
            raise RuntimeError(f"a run failed: {found['errors']}")
        return [without_rounds(result) for result in found["results"]]


def without_rounds(result):
    """A case with the quartiles of its rounds in place of their times."""
    kept = {key: result[key] for key in ("case", "plan", "tensors", "tensor_bytes", "payload_bytes",
                                         "peak", "baselines", "baseline_reasons") if key in result}
    times = sorted(result["iterations_us"])
    kept["time_us"] = {"n": len(times), "median": at(times, 0.5), "q1": at(times, 0.25),
                       "q3": at(times, 0.75), "min": times[0], "max": times[-1]}
    return kept


def at(ordered, share):
    return ordered[int(share * (len(ordered) - 1) + 0.5)]
