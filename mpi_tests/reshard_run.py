"""Runs `sluice-bench reshard` under mpirun and returns what it did."""
import json
import pathlib

from bench_run import BenchRun


class Bench(BenchRun):
    def __init__(self, mpirun, program):
        super().__init__(mpirun, program, "reshard")

    def write(self, name, content):
        text = content if isinstance(content, str) else json.dumps(content)
        pathlib.Path(self.path(name)).write_text(text)
        return self.path(name)
