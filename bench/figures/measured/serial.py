"""24 redistributions against one chunk at a time: serial.json."""
COMMAND = ("sluice-bench reshard --shape 2048,2048 --tensors 2 --baseline serial")
MEMORIES = ("private", "shared")
CASES = tuple(f"etha-{number}-{source}" for source in ("no_partial", "replicate_dp", "partial_dp")
              for number in range(1, 9))


def measure(job):
    rounds = job.rounds(5)
    flags = COMMAND.split()[2:]
    if job.quick:
        flags[flags.index("2048,2048")] = "64,64"
    cases = CASES[::5] if job.quick else CASES
    return {"rounds": rounds,
            "command": f"{COMMAND} --memory private|shared --preset CASE, 16 ranks",
            "results": [{"memory": memory, **result} for memory in MEMORIES for case in cases
                        for result in job.reshard(16, *flags, "--preset", case, "--memory", memory,
                                                  "-n", rounds)]}
