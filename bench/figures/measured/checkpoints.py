"""Loads of a checkpoint beside other programs: checkpoints.json."""
MINUTES = 2.5


def measure(job):
    flags = (["--rounds", 1, "--bytes", "64M", "--no-torch"] if job.quick else
             ["--rounds", job.rounds(7), "--minutes", job.minutes(MINUTES)])
    return job.script("compare_checkpoints.sh", flags)
