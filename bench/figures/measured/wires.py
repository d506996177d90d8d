"""What carries buckets between two nodes: Open MPI over TCP, UCX, our own TCP: wires.json."""
from spread import spread

RATES = ("none", "10gbit")
WAYS = ("mpi", "ucx", "tcp")
COMMAND = "scripts/compare_wires.sh --rounds 11 --rate none|10gbit"


def measure(job):
    rounds = job.rounds(11)
    return {"rounds": rounds, "command": COMMAND,
            "results": [row for rate in RATES for row in _rate(job, rate, rounds)]}


def _rate(job, rate, rounds):
    small = ["--to", "256K", "--iterations", 3] if job.quick else []
    runs = job.run_for_json(["scripts/compare_wires.sh", "--rounds", rounds, "--rate", rate,
                             *small], [job.bin / "sluice-bench"])
    # {way: {size: [microseconds of each round]}}
    found = {way: {} for way in WAYS}
    for way, results in runs.items():
        for result in (each for run in results for each in run["results"]):
            if result["wrong"]:
                raise RuntimeError(f"{way}: wrong elements")
            found[way].setdefault(result["payload_bytes"], []).append(result["time_us"]["median"])
    return [{"rate": rate, "bucket_bytes": size,
             "time_us": {way: spread(found[way][size]) for way in WAYS},
             "gb_per_s": {way: spread(size / 1e3 / time for time in found[way][size])
                          for way in WAYS},
             # Above 1: Open MPI takes longer.
             "ratio": {way: spread(mpi / ours for mpi, ours in
                                   zip(found["mpi"][size], found[way][size]))
                       for way in WAYS[1:]}}
            for size in sorted(found["mpi"])]
