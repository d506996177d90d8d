"""Models on 32 real ranks without a budget and with 8 buckets: budget-models.json."""
MINUTES = 4.5
MODELS = ("llama-3-8b:llama-3-8b-fsdp16-tp8dp2:4:4",
          "deepseek-v3:deepseek-v3-pp2ep8-tp4dp4:8:5",
          "qwen3-235b-a22b:qwen3-235b-a22b-tp2pp2ep4-tp8dp2:8:4")
QUICK = ("llama-3-8b:llama-3-8b-fsdp16-tp8dp2:64:1",)


def measure(job):
    found = job.script("budget_table.sh", [
        "--models", ",".join(QUICK if job.quick else MODELS),
        *(["--rounds", 1, "--iters", 1] if job.quick else
          ["--rounds", job.rounds(5), "--minutes", job.minutes(MINUTES)])])
    found["rounds"] = min(case["rounds"] for case in found["cases"])
    return found
