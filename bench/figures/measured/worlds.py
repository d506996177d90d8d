"""24 redistributions under mpirun and without it, on one node and on two: worlds.json."""
import json
import re
import subprocess

from measured.job import at
from spread import spread

RANKS = 16
ITERATIONS = 3
# The rate of the link between nodes, as tc spells it; one node has no link.
PLACES = {"one node": None, "two nodes": "none", "two nodes, 10 Gbit/s": "10gbit"}
COMMAND = ("scripts/two_nodes.sh --ranks 8 --rate none --fabric world build/bin/sluice-bench "
           "reshard --preset etha-N-KIND --shape 2048,2048 --tensors 1")


def measure(job):
    rounds = job.rounds(11)
    cases = _case_file(job)
    times = {}
    for number in range(rounds):
        for place, rate in PLACES.items():
            for fabric in ("mpi", "world") if number % 2 == 0 else ("world", "mpi"):
                for case, time in _run(job, cases, rate, fabric).items():
                    times.setdefault((place, case), {}).setdefault(fabric, []).append(time)
    return {"rounds": rounds, "command": COMMAND, "iterations": ITERATIONS,
            "results": [{"place": place, "case": case,
                         "time_us": {fabric: spread(found) for fabric, found in by.items()},
                         # Above 1: mpirun's ranks take longer.
                         "ratio": spread(mpi / world for mpi, world in
                                         zip(by["mpi"], by["world"]))}
                        for (place, case), by in times.items()]}


def _case_file(job):
    """All presets as one case file, so that one job does them all."""
    shape = [64, 64] if job.quick else [2048, 2048]
    listed = subprocess.run([job.bin / "sluice-bench", "reshard", "--list-presets"], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    cases = []
    for line in listed.splitlines():
        found = re.fullmatch(r"(\S+)\s+\d+ ranks\s+(\S+) -> (\S+)", line.strip())
        if not found:
            raise RuntimeError(f"no preset: {line}")
        cases.append({"id": found[1], "shape": shape, "source": _side(found[2]),
                      "target": _side(found[3])})
    file = job.folder / "presets.json"
    file.write_text(json.dumps({"cases": cases}), encoding="utf-8")
    return file


def _side(text):
    """A layout as a case file has it, out of MESH@RANKS:PLACEMENTS."""
    mesh, ranks, placements = re.fullmatch(r"([\d,]+)@([\d,-]+):(.*)", text).groups()
    listed = []
    for part in ranks.split(","):
        first, _, last = part.partition("-")
        listed += range(int(first), int(last or first) + 1)
    return {"mesh": [int(size) for size in mesh.split(",")], "ranks": listed,
            "placements": re.findall(r"\w+(?:\([^)]*\))?", placements)}


def _run(job, cases, rate, fabric):
    """{case: median time}"""
    command = [job.bin / "sluice-bench", "reshard", "--cases", cases, "--check", "sample", "-n",
               ITERATIONS]
    if rate is not None:
        ran = job.run_for_json(["scripts/two_nodes.sh", "--ranks", RANKS // 2, "--rate", rate,
                                "--fabric", fabric], command)["results"]
    elif fabric == "mpi":
        ran = job.run_for_json(["scripts/mpirun.sh", "--oversubscribe", "-np", RANKS, *command])
    else:
        ran = job.run_for_json(["scripts/spawn.sh", "-n", RANKS, *command])
    if ran["errors"] or any(result["wrong"] for result in ran["results"]):
        raise RuntimeError(f"{fabric}: {ran['errors']}")
    return {result["case"]: at(sorted(result["iterations_us"]), 0.5) for result in ran["results"]}
