"""A stream and plain loaders over latencies of the storage, in turns: latency.json."""
from parts import loaders
from runs import Bench
from setup import Setup
from shards import Shards

CONSUME_US = 1000  # a step of a trainer that takes 1 GiB/s

COMMAND = ("sluice-bench stream --source buffered:DIR --latency-ms 0|20|50|200 --slots 64 "
           f"--piece-bytes 1M --consume-us {CONSUME_US} --baseline " + ",".join(loaders.OTHERS))


def measure(job):
    rounds = job.rounds(5)
    bench = Bench(job.bin / "sluice-bench", job.root / "scripts/mpirun.sh")
    setup = Setup(bench, Shards(bench, job.folder), job.bin, rounds, job.quick)
    return {"rounds": rounds, "command": COMMAND,
            **loaders.measure(setup, ("buffered",), CONSUME_US)}
