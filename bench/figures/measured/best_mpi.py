"""24 redistributions against the best that MPI can do: best-mpi.json."""
MINUTES = 13
WAYS = "isend,isend-packed,alltoallw,gather-broadcast"  # one message at a time is never the best


def measure(job):
    return job.presets("best_mpi.sh", MINUTES, "--ways", WAYS)
