"""24 redistributions without a budget and with 8 buckets: budget-24.json."""
MINUTES = 3


def measure(job):
    return job.presets("budget_table.sh", MINUTES)
