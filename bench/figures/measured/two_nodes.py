"""Two nodes of 8 ranks with a link of 1 Gbit/s between them: two-nodes.json."""
from measured.job import at

PRESETS = ("etha-1-no_partial", "etha-2-no_partial")
RATE = "1gbit"
COMMAND = (f"scripts/two_nodes.sh --rate {RATE} build/bin/sluice-bench reshard --preset "
           "etha-N-no_partial --shape 4096,4096 --tensors 1 --compare-plans relay,naive")


def measure(job):
    rounds = job.rounds(7)
    return {"rounds": rounds, "command": COMMAND, "rate": RATE, "ranks_per_node": 8,
            "results": [_case(job, preset, rounds) for preset in PRESETS]}


def _case(job, preset, rounds):
    shape = "256,256" if job.quick else "4096,4096"
    ran = job.run_for_json(["scripts/two_nodes.sh", "--rate", RATE], [
        job.bin / "sluice-bench", "reshard", "--preset", preset, "--shape", shape, "--tensors", 1,
        "--compare-plans", "relay,naive", "-n", rounds])
    ours, naive = ran["compared"]
    ratio = naive["time_over_first"]
    crossing = {facts["plan"]: facts["planned_a_to_b_bytes"] for facts in (ours, naive)}
    times = {result["plan"]: sorted(result["iterations_us"])
             for result in ran["results"]["results"]}
    return {"preset": preset,
            "time_ms": {plan: {"median": at(found, 0.5) / 1e3, "q1": at(found, 0.25) / 1e3,
                               "q3": at(found, 0.75) / 1e3} for plan, found in times.items()},
            "crossing_bytes": crossing,
            "time_ratio": {"n": rounds, "median": ratio["median"], "q1": ratio["p25"],
                           "q3": ratio["p75"]},
            "link_of_plan": ran["a_to_b_bytes"] / ran["planned_a_to_b_bytes"]}
