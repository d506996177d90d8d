"""What Connect takes on many processes of this machine, the slowest rank of each call:
connect.json."""
from spread import spread

PROCESSES = 64
CASES = ((1000, False), (1000, True), (10000, False), (10000, True))

COMMAND = "scripts/spawn.sh -n 64 connect_bench --tensors 1000|10000 [--stages] --rounds 11"


def measure(job):
    calls = job.rounds(11, least=11)
    return {"rounds": calls, "command": COMMAND, "processes": 4 if job.quick else PROCESSES,
            "cases": [_case(job, calls, tensors, stages) for tensors, stages in CASES]}


def _case(job, calls, tensors, stages):
    found = job.run_for_json(
        ["scripts/spawn.sh", "-n", 4 if job.quick else PROCESSES, job.bin / "connect_bench",
         "--tensors", tensors, "--rounds", calls, *(["--stages"] if stages else [])])
    return {"tensors": tensors, "stages": stages, "connect_ms": spread(found["connect_ms"]),
            "compile_ms": spread(found["compile_ms"])}
