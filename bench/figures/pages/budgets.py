"""What a budget costs: simulated models, and 24 redistributions on 16 real ranks."""
import statistics

from pages import meshes
from pages.markdown import MIB, image, spread_of, table


def _of_budget(found, budget):
    return next((r for r in found if r["budget"] == budget), None)


def deepseek(results):
    """(without a budget, with 8), or None."""
    found = results.simulated("deepseek-v3")
    pair = (_of_budget(found, 0), _of_budget(found, 8))
    return pair if all(pair) else None


def simulated_answer(results):
    found = deepseek(results)
    if not found:
        return None
    return (f"DeepSeek-V3 from 128 to 128 ranks, simulated: {found[0]['peak']['max']:,} buckets "
            f"become 8, {found[1]['ratio_to_no_budget']:.2f} times the time")


def simulated_highest(results):
    """Of models, with 8 over none."""
    return max((r["ratio_to_no_budget"] for _, job in meshes.jobs(results) for r in job
                if r["budget"] == 8 and r.get("ratio_to_no_budget")), default=None)


def real(results):
    """[{name, free, eight, time_ratio}] of 16 real ranks: each side has buckets, staging and growth
    of resident memory of the busiest rank."""
    data = results.get("budget-24")
    return [{"name": case["case"], "free": _side(case, "0"), "eight": _side(case, "8"),
             "time_ratio": _ratio(case["budgets"]["8"]["ratio"])}
            for case in data["cases"]] if data else []


def _side(case, budget):
    found = case["budgets"][budget]
    return {"buckets": found["peak_buckets"], "staging_bytes": found["peak_bytes"],
            "resident_bytes": found["growth_bytes"]}


def _ratio(quartiles):
    return {"median": quartiles["median"], "q1": quartiles["p25"], "q3": quartiles["p75"]}


def real_answer(results):
    found = real(results)
    if not found:
        return None
    ratios = [case["time_ratio"]["median"] for case in found]
    most = max(case["free"]["buckets"] for case in found)
    held = max(case["eight"]["buckets"] for case in found)
    return (f"{len(found)} redistributions on 16 ranks: up to {most} buckets become {held}, "
            f"{statistics.median(ratios):.2f} times the time at the median, {max(ratios):.2f} at "
            "most")


def real_worst(results):
    return max(real(results), key=lambda case: case["time_ratio"]["median"], default=None)


def picture(results):
    parts = []
    if meshes.jobs(results):
        parts.append(image("Time and staging against the budget, simulated", "budgets.svg"))
    found = real(results)
    if found:
        own = results.get("budget-24")["memory"] == "private"
        parts.append("Busiest rank of 16 real ones, tensors "
                     f"{'in your own memory' if own else 'in memory that Sluice allocated'}, "
                     "without a budget and with 8 buckets:\n\n" + real_table(found))
    return "\n\n".join(parts)


def real_table(found):
    rows = [[case["name"].removeprefix("etha-"), case["free"]["buckets"], case["eight"]["buckets"],
             *(_mib(case[side]["staging_bytes"]) for side in ("free", "eight")),
             *(_mib(case[side]["resident_bytes"]) for side in ("free", "eight")),
             spread_of(case["time_ratio"])] for case in found]
    return table(["case", "buckets", "with 8", "staging, MiB", "with 8", "resident growth, MiB",
                  "with 8", "time with 8 / without"], rows)


def _mib(count):
    return "-" if count is None else f"{count / MIB:.1f}"
