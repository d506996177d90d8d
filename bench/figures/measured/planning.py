"""What planning costs a rank of a large job: planning.json."""
import re

from spread import spread

MODEL, SYSTEM = "deepseek-v3", "deepseek-v3-512-512"
COMMAND = f"plan_bench --model {MODEL} --system {SYSTEM} --samples 64"


def measure(job):
    rounds = job.rounds(5)
    samples = 4 if job.quick else 64
    found = [_once(job, samples) for _ in range(rounds)]
    return {"rounds": rounds, "command": COMMAND, "ranks": found[0]["ranks"],
            "tensors": found[0]["tensors"], "samples": samples,
            "slowest_ms": spread(run["slowest_ms"] for run in found),
            "memory_mb": spread(run["memory_mb"] for run in found)}


def _once(job, samples):
    text = job.run([job.bin / "plan_bench", "--model", MODEL, "--system", SYSTEM,
                    "--samples", samples])
    tensors, ranks = re.search(r"# (\d+) tensors, (\d+) ranks", text).groups()
    slowest, memory = re.search(r"# slowest rank ([\d.]+) ms, memory of planning at most (\d+) MB",
                                text).groups()
    return {"ranks": int(ranks), "tensors": int(tensors), "slowest_ms": float(slowest),
            "memory_mb": float(memory)}
