"""Bandwidth of one pair of ranks against the size of what is moved: sizes.json."""
COMMAND = ("sluice-bench reshard --shape 256 -b 1K -e 1G -f 4 --src-mesh 1 --src-ranks 0 "
           "--src-placements R --dst-mesh 1 --dst-ranks 1 --dst-placements R "
           "--compare-transports direct,mpi --baseline isend,memcpy")
MEMORIES = ("private", "shared")


def measure(job):
    rounds = job.rounds(7)
    flags = COMMAND.split()[2:]
    if job.quick:
        flags[flags.index("1G")] = "1M"
    return {"rounds": rounds, "command": f"{COMMAND} --memory private|shared, 2 ranks",
            "results": [{"memory": memory, **result} for memory in MEMORIES
                        for result in job.reshard(2, *flags, "--memory", memory, "-n", rounds)]}
