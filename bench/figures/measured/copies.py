"""Copies of rows and casts of tensors against memcpy, in turns: copies.json."""
import json

FILTER = r"^Rows/.*/streaming:1/threads:1|^Cast/ratio_|NaiveCastRatio|FoldRatio/ratio_"
COMMAND = f"copy_bench --benchmark_filter='{FILTER}'"
ROUNDS = 41  # of each of its benchmarks


def measure(job):
    wanted = "^Cast/ratio_f32_to_bf16/" if job.quick else FILTER
    text = job.run([job.bin / "copy_bench", f"--benchmark_filter={wanted}",
                    "--benchmark_format=json"])
    return {"rounds": ROUNDS, "command": COMMAND, "results": [
        {"name": run["name"], "ratio": {"n": ROUNDS, "median": run["ratio"],
                                        "q1": run["ratio_q1"], "q3": run["ratio_q3"]},
         "memcpy_gb_per_s": run["memcpy_GBps"]}
        for run in json.loads(text)["benchmarks"] if "ratio" in run]}
