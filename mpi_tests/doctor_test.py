#!/usr/bin/env python3
"""sluice-bench doctor: alone, on more ranks than cores, where calls are denied, and with bad flags.

  doctor_test.py MPIRUN SLUICE_BENCH DENY_CALLS
  doctor_test.py MPIRUN SLUICE_BENCH --fake-gpu

The second form: with GPUs of the fake CUDA runtime, which SLUICE_BENCH has.
Code 77, after everything else has passed: this system takes no filters of calls.
"""
import os
import re
import subprocess
import sys

from bench_run import BenchRun, DeniedRun

CHECKS = ["build", "fabric", "mpi", "mpi_threads", "ranks", "nodes", "wire_rank", "wire_node",
          "wire_messages", "wire_network", "gpus", "wire_gpu_ipc", "wire_gpu_nccl", "cores",
          "binding", "yielding", "cache", "ptrace", "memfd", "dev_shm", "memlock", "open_files",
          "io_uring", "ports"]


class Doctor:
    """Runs the doctor, and checks what all of its reports have in common."""

    def __init__(self, mpirun, program):
        self.mpirun, self.program = mpirun, program

    def run(self, world, args=(), denied=None):
        """(text, {check: its findings})"""
        bench = BenchRun(self.mpirun, self.program, "doctor")
        if denied:
            bench = DeniedRun(self.mpirun, self.program, "doctor", *denied)
        code, text, results = bench.run(world, args)
        assert results is not None, text
        assert results["errors"] == [], results
        assert isinstance(results["version"], str), results
        assert results["config"]["world"] == max(world, 1), results
        findings = {}
        for finding in results["results"]:
            assert set(finding) == {"check", "value", "state", "todo", "ranks"}, finding
            assert finding["value"], finding
            assert finding["state"] in ("ok", "slow", "missing"), finding
            assert (finding["todo"] == "") == (finding["state"] == "ok"), finding
            findings.setdefault(finding["check"], []).append(finding)
        assert list(findings) == CHECKS, list(findings)
        problems = [f for f in results["results"] if f["state"] != "ok"]
        told = [f for f in problems if "--strict" in args or f["state"] == "missing"]
        assert code == (1 if told else 0), (code, text)
        self.text_matches(text, results["results"], problems)
        return text, findings

    @staticmethod
    def text_matches(text, findings, problems):
        """The lines between the head and the count are the findings, in their order."""
        lines = re.findall(r"^(ok|slow|missing) +(.*?)(?:  |$)", text, re.M)
        expected = [(f["state"], f["check"].replace("_", " ")) for f in findings]
        # Names of 16 letters have one blank behind them.
        assert len(lines) == len(expected), text
        for (state, line), (want_state, name) in zip(lines, expected):
            assert state == want_state and line.startswith(name), (state, line, name)
        assert text.count("What to do: ") == len(problems), text
        end = (f"# To do: {len(problems)} (" if problems else
               "# Nothing to do: all is as fast as it can be here.")
        assert end in text, text


def one(findings, check):
    assert len(findings[check]) == 1, findings[check]
    return findings[check][0]


def alone(doctor):
    text, findings = doctor.run(0)
    assert re.search(r"^# sluice-bench doctor \S+: 1 rank on ", text, re.M), text
    assert one(findings, "ranks")["value"] == "1", findings["ranks"]
    assert "no two ranks share a node" in one(findings, "wire_node")["value"]
    assert one(findings, "cores")["state"] == "ok", findings["cores"]


def more_ranks_than_cores(doctor):
    ranks = max(3, os.cpu_count() + 1)
    if ranks > 16:
        ranks = 3
    _, findings = doctor.run(ranks)
    assert f"ranks 0-{ranks - 1}" in one(findings, "nodes")["value"], findings["nodes"]
    cores = one(findings, "cores")
    if ranks > os.cpu_count():
        assert cores["state"] == "slow" and cores["value"].startswith("oversubscribed"), cores
        assert f"{ranks} ranks share {os.cpu_count()} CPU" in cores["value"], cores
    assert "none" in one(findings, "wire_network")["value"], findings["wire_network"]


def ranks_per_node(doctor):
    text, findings = doctor.run(3, ["--ranks-per-node", "2"])
    nodes = one(findings, "nodes")["value"]
    assert "ranks 0-1" in nodes and "rank 2" in nodes, nodes
    assert "--ranks-per-node" in nodes, nodes
    assert "messages between nodes" in one(findings, "wire_network")["value"], text


def bad_flags(doctor):
    for world in (0, 3):
        for args in (["--wash"], ["--timeout-s", "soon"], ["--ranks-per-node", "-1"]):
            code, text, results = BenchRun(doctor.mpirun, doctor.program, "doctor").run(world, args)
            assert code == 2, (args, code, text)
            assert "sluice-bench doctor: " in text, text
            assert results["results"] == [], results
            assert results["errors"][0]["case"] == "", results
            assert results["errors"][0]["message"], results


def denied(doctor, deny):
    calls = "process_vm_readv,process_vm_writev"
    for world in (1, 3):
        text, findings = doctor.run(world, denied=(deny, calls))
        wire = one(findings, "wire_node")
        assert wire["state"] == "slow", text
        assert "Operation not permitted" in wire["value"], wire
        assert "process_vm_readv" in wire["todo"], wire
        if world > 1:
            assert "rank 0 copy to and from memory of rank 1" in wire["value"], wire
            assert "ranks 0-2" in wire["value"], wire
        assert "a seccomp filter" in one(findings, "ptrace")["value"], findings["ptrace"]


def gpus(doctor):
    """A GPU for each of two ranks, one for both, and none."""
    os.environ["FAKE_CUDA_DEVICES"] = "2"
    _, findings = doctor.run(2)
    assert one(findings, "gpus")["value"].startswith("2 visible"), findings["gpus"]
    assert one(findings, "wire_gpu_ipc")["value"].startswith("cuda_ipc: "), findings["wire_gpu_ipc"]
    assert one(findings, "wire_gpu_nccl")["value"].startswith("nccl: "), findings["wire_gpu_nccl"]
    os.environ["FAKE_CUDA_DEVICES"] = "1"
    _, findings = doctor.run(2)
    nccl = one(findings, "wire_gpu_nccl")
    assert nccl["state"] == "slow" and "ranks 0 and 1 share the GPU" in nccl["value"], nccl
    assert one(findings, "wire_gpu_ipc")["state"] == "ok", findings["wire_gpu_ipc"]
    os.environ["FAKE_CUDA_DEVICES"] = "0"
    _, findings = doctor.run(2)
    assert one(findings, "gpus")["value"].startswith("none here"), findings["gpus"]
    assert one(findings, "wire_gpu_nccl")["value"].startswith("none"), findings["wire_gpu_nccl"]


def main():
    mpirun, program, deny = sys.argv[1:]
    doctor = Doctor(mpirun, program)
    if deny == "--fake-gpu":
        gpus(doctor)
        return 0
    alone(doctor)
    more_ranks_than_cores(doctor)
    ranks_per_node(doctor)
    bad_flags(doctor)
    if subprocess.run([deny, "pidfd_open", "/bin/true"], check=False).returncode == 77:
        return 77
    denied(doctor, deny)
    return 0


if __name__ == "__main__":
    sys.exit(main())
