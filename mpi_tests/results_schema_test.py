#!/usr/bin/env python3
"""What each command writes is what docs/schemas and docs/results.md say, also where it fails.

  results_schema_test.py MPIRUN SLUICE_BENCH SLUICE_SIM
"""
import concurrent.futures
import copy
import functools
import json
import os
import pathlib
import socket
import subprocess
import sys

from bench_run import BenchRun, job_limit
from together import together

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
NAMES = ("reshard", "stream", "shards", "checkpoint", "sync", "doctor", "sluice-sim")
# Objects whose keys are names that a user or a program chose.
NAMED = ("baselines", "baseline_reasons")
LAYOUTS = ["--src", "2:S(0)", "--dst", "2:R"]
BAD_CASE = {"id": "bad", "shape": [8, 8], "dtype": "f17",
            "source": {"mesh": [2], "ranks": [0, 1], "placements": ["S(0)"]},
            "target": {"mesh": [2], "ranks": [0, 1], "placements": ["R"]}}
GOOD_CASE = dict(BAD_CASE, id="good", dtype="f32")


class Schema:
    def __init__(self, jsonschema, name):
        self.name = name
        schema = json.loads((DOCS / "schemas" / f"{name}.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        self.validator = jsonschema.Draft202012Validator(schema)
        self.keys = set()
        self.collect(schema)
        # The flags of some commands are in their --help alone.
        self.flags = "additionalProperties" in schema["properties"]["config"]

    def collect(self, schema):
        """The names of all fields that it knows."""
        if isinstance(schema, dict):
            self.keys |= set(schema.get("properties", ()))
            for value in schema.values():
                self.collect(value)
        elif isinstance(schema, list):
            for value in schema:
                self.collect(value)

    def unknown(self, value):
        if isinstance(value, list):
            return set().union(*(self.unknown(v) for v in value))
        if not isinstance(value, dict):
            return set()
        inside = (self.unknown(list(v.values()) if k in NAMED and isinstance(v, dict) else v)
                  for k, v in value.items())
        return (set(value) - self.keys).union(*inside)

    def undescribed(self, results):
        return self.unknown({**results, "config": {}} if self.flags else results)

    def check(self, results):
        first = next(iter(self.validator.iter_errors(results)), None)
        assert first is None, (self.name, list(first.absolute_path), first.message)
        assert not self.undescribed(results), (self.name, self.undescribed(results))

    def refuses(self, results):
        assert not self.validator.is_valid(results), (self.name, results)

    def refuses_damage(self, results):
        """A schema that lets anything pass shows nothing."""
        for key in ("version", "config", "results", "errors"):
            self.refuses({k: v for k, v in results.items() if k != key})
        self.refuses(dict(results, errors=["a text"]))
        result = results["results"][0]
        for key in result:
            if key in NAMED or (key == "cursor" and self.name == "stream"):
                continue
            damaged = copy.deepcopy(results)
            damaged["results"][0][key] = ["neither a number", "nor an object"]
            if not isinstance(result[key], list):
                self.refuses(damaged)
        for key in ("check", "value", "state", "todo") if self.name == "doctor" else (
                "case", "time_us", "gb_per_s"):
            damaged = copy.deepcopy(results)
            del damaged["results"][0][key]
            self.refuses(damaged)


def agree(figure, expected):
    assert abs(figure - expected) <= 1e-9 * max(1, abs(expected)), (figure, expected)


def times_agree(results, payload):
    for result in results["results"]:
        times = result["time_us"]
        assert 0 < times["min"] <= times["median"] <= times["max"], times
        agree(result["gb_per_s"], result[payload] / times["median"] / 1e3)


def ran(bench, schema, world, args, payload=None, code=0):
    """The results of a run that did what it should."""
    ended, output, results = bench.run(world, args)
    assert ended == code, (args, ended, output)
    assert results and results["results"], (args, output)
    schema.check(results)
    if code == 0:
        assert results["errors"] == [], (args, results["errors"])
    if payload:
        times_agree(results, payload)
    schema.refuses_damage(results)
    return results


def failed(bench, schema, world, args, case="", code=2):
    """The errors are there, of `case`."""
    ended, output, results = bench.run(world, args)
    assert ended == code, (args, ended, output)
    assert results is not None, (args, output)
    schema.check(results)
    assert [error["case"] for error in results["errors"]] == [case], (args, results["errors"])
    assert results["errors"][0]["message"] in output, (args, output)
    return results


def reshard(bench, schema):
    good = ["--shape", "64,64", "-n", "3", *LAYOUTS]
    ran(bench, schema, 2, [*good, "-b", "4K", "-e", "12K", "-i", "8K", "--baseline",
                           "isend,alltoallw", "--fingerprint"], "payload_bytes")
    ran(bench, schema, 2, [*good, "--windowed", "1", "--compare-budgets", "0,2"], "payload_bytes")
    ran(bench, schema, 0, ["--plan-only", "--seed", "3", *good])
    cases = bench.path("cases.json")
    pathlib.Path(cases).write_text(json.dumps({"cases": [BAD_CASE, GOOD_CASE]}))
    for world, more in ((2, []), (0, ["--plan-only"])):
        results = failed(bench, schema, world, ["--cases", cases, *more], "bad", code=1)
        assert [r["case"] for r in results["results"]] == ["good"], results
    failed(bench, schema, 2, ["--nonsense"])


def stream(bench, schema):
    good = ["--source", "generator", "--items", "8", "--item-bytes", "4K"]
    results = ran(bench, schema, 2, [*good, "-n", "3", "--baseline", "serial,threads:2x2"], "bytes")
    assert results["config"]["iters"] == 3 and results["config"]["check"] == 1, results["config"]
    failed(bench, schema, 0, [*good, "--order", "none"])
    failed(bench, schema, 0, [*good, "--fault", "permanent:1"], code=1)


def shards(bench, schema):
    good = ["--make", "npy", "--dir", bench.path("made"), "--items", "5", "--item-bytes", "4K",
            "--seed", "7"]
    results = ran(bench, schema, 0, good, "payload_bytes")
    assert results["results"][0]["payload_bytes"] == 5 * 4096, results
    assert results["config"]["fill_seed"] == 7, results
    failed(bench, schema, 0, good, code=1)  # it is not empty any more
    failed(bench, schema, 0, [*good, "--dtype", "u9"])
    failed(bench, schema, 0, [*good, "--nonsense"])


def checkpoint(bench, schema):
    folder = pathlib.Path(bench.path("checkpoint"))
    folder.mkdir()
    good = ["--path", f"buffered:{folder}", "--shape", "8,8", "--layout", "2:S(0)"]
    ran(bench, schema, 2, ["--make", *good, "-n", "3"], "bytes")
    failed(bench, schema, 2, [*good, "--layout", "two"])


def sync(bench, schema):
    # Bound and not listening: trainer 0 can listen there, and nobody else gets it.
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        meet = ["--world", f"tcp://127.0.0.1:{kept.getsockname()[1]}", "--rank", "0", "--size", "1"]
        good = [*meet, "--tensors", "2,8,8", "--versions", "3", "--timeout-s", "200"]
        server_file = bench.path("server.json")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            server = pool.submit(job_limit.run, [bench.program, "sync", "--role", "server", *good,
                                                 "--json", server_file], stdout=subprocess.DEVNULL)
            results = ran(bench, schema, 0, ["--role", "trainer", *good], "payload_bytes")
            assert server.result().returncode == 0, server.result()
        failed(bench, schema, 0, ["--role", "trainer", *good, "--wait-s", "0.5"], code=1)
    for each in (results, json.loads(pathlib.Path(server_file).read_text())):
        schema.check(each)
        assert [entry["version"] for entry in each["versions"]] == [1, 2, 3], each
        for key in each["versions"][0]:
            damaged = copy.deepcopy(each)
            damaged["versions"][0][key] = "nothing of the kind"
            schema.refuses(damaged)
    loss = {"member": "server 1", "process": "process 2 on a", "epoch": 1, "version": 2,
            "noticed_us": 3}
    schema.check(dict(results, lost=[loss]))
    for key in loss:
        schema.refuses(dict(results, lost=[{k: v for k, v in loss.items() if k != key}]))
    failed(bench, schema, 0, ["--role", "trainer", "--nonsense"])
    failed(bench, schema, 0, ["--role", "trainer", *meet])


def doctor(bench, schema):
    help_text = job_limit.run([bench.program, "--help"], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
    if "\n  doctor " not in help_text:
        print("left out: there is no doctor in this program")
        return
    _, output, results = bench.run(2, [])
    assert results and results["results"], output
    schema.check(results)
    schema.refuses_damage(results)
    failed(bench, schema, 2, ["--nonsense"])


def simulated(peak, scale, deadlock, schema):
    results = ran(peak, schema, 0, ["--shape", "64,64", *LAYOUTS, "--budget-buckets", "0,1"],
                  "payload_bytes")
    assert [r["case"] for r in results["results"]] == ["inline/budget-0", "inline/budget-1"]
    # The half that each rank does not hold.
    assert {r["payload_bytes"] for r in results["results"]} == {64 * 64 * 4}, results
    ran(peak, schema, 0, ["--preset", "etha-3-no_partial", "--network", "h100", "--bucket-bytes",
                          "auto", "--max-in-flight", "auto", "--costs"], "payload_bytes")
    ran(scale, schema, 0, ["--ranks", "4:8:2", "--pair-bytes", "64K"], "payload_bytes")
    ran(deadlock, schema, 0, ["--rule", "escape", "-n", "20"])
    ran(deadlock, schema, 0, ["--rule", "plain", "-n", "100", "--seed", "1"])
    cases = peak.path("cases.json")
    pathlib.Path(cases).write_text(json.dumps({"cases": [GOOD_CASE, BAD_CASE]}))
    results = failed(peak, schema, 0, ["--cases", cases, "--budget-buckets", "2"], "bad", code=1)
    assert [r["case"] for r in results["results"]] == ["good"], results
    for command in (peak, scale, deadlock):
        failed(command, schema, 0, ["--nonsense"])
    failed(peak, schema, 0, ["--preset", "etha-9-no_partial"])
    failed(scale, schema, 0, ["--family", "none"])
    failed(deadlock, schema, 0, ["--rule", "fair"])


def every_field_is_explained(schemas):
    page = (DOCS / "results.md").read_text()
    for schema in schemas.values():
        missing = [key for key in sorted(schema.keys) if f"`{key}`" not in page]
        assert not missing, (schema.name, missing)


def main():
    try:
        import jsonschema  # of Debian's python3-jsonschema
    except ImportError:
        # The package is of the system's Python, and another one may come first in PATH.
        system = "/usr/bin/python3"
        if os.path.exists(system) and not os.path.samefile(system, sys.executable):
            os.execv(system, [system, *sys.argv])
        print("no jsonschema for this Python: scripts/packages.sh installs python3-jsonschema")
        return 77
    mpirun, bench, sim = sys.argv[1:]
    schemas = {name: Schema(jsonschema, name) for name in NAMES}
    every_field_is_explained(schemas)
    tests = [functools.partial(globals()[name], BenchRun(mpirun, bench, name), schemas[name])
             for name in NAMES if name != "sluice-sim"]
    commands = [BenchRun(mpirun, sim, name) for name in ("peak", "scale", "deadlock")]
    tests.append(functools.partial(simulated, *commands, schemas["sluice-sim"]))
    together(tests)
    return 0


if __name__ == "__main__":
    sys.exit(main())
