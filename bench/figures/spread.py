"""Medians and quartiles."""
import statistics


def spread(values):
    values = list(values)
    if len(values) == 1:
        q1 = median = q3 = values[0]
    else:
        q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return {"n": len(values), "median": median, "q1": q1, "q3": q3, "min": min(values),
            "max": max(values)}


def summarize(runs, keys, values):
    """For each combination of `keys` found in `runs`: it, and the spread of each of `values`."""
    groups = {}
    for run in runs:
        groups.setdefault(tuple(run[key] for key in keys), []).append(run)
    summary = []
    for group, members in groups.items():
        entry = dict(zip(keys, group))
        for value in values:
            found = [run[value] for run in members if run.get(value) is not None]
            if found:
                entry[value] = spread(found)
        summary.append(entry)
    return summary
