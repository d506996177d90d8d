"""10,000 tensors of 256 bytes between two ranks: tiny.json."""
COMMAND = ("sluice-bench reshard --shape 64 --tensors 10000 --src-mesh 1 --src-ranks 0 "
           "--src-placements R --dst-mesh 1 --dst-ranks 1 --dst-placements R "
           "--baseline serial,isend,alltoallw")


def measure(job):
    rounds = job.rounds(11)
    flags = COMMAND.split()[2:]
    return {"rounds": rounds, "command": f"{COMMAND} --memory private, 2 ranks",
            "results": job.reshard(2, *flags, "--memory", "private", "-n", rounds)}
