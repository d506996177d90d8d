"""What a budget holds down and what it costs: simulated models, 24 redistributions on 16 real
ranks, and models on 32."""
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
    return side_of(found)


def side_of(found):
    """Of the busiest rank."""
    return {"buckets": found["peak_buckets"], "staging_bytes": found["peak_bytes"],
            "messages": found.get("peak_ops"), "resident_bytes": found["growth_bytes"]}


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


def real_models(results):
    """[{name, ranks, payload_bytes, joined: {free, eight}, apart: {free, eight}}] of real ranks.
    Each side has what `side_of` has, and time_ratio over `joined` without a budget."""
    data = results.get("budget-models")
    return [{**{key: case[key] for key in ("ranks", "scale", "layers", "payload_bytes")},
             "name": case["case"].split("/")[0],
             "joined": _sides(case["budgets"]), "apart": _sides(case["apart"])}
            for case in data["cases"]] if data else []


def _sides(budgets):
    return {name: {**side_of(budgets[budget]), "time_ratio": _ratio(budgets[budget]["ratio"])}
            for name, budget in (("free", "0"), ("eight", "8"))}


def picture(results):
    parts = []
    if meshes.jobs(results):
        parts.append(image("Time and staging against the budget, simulated", "budgets.svg"))
    found = real(results)
    if found:
        parts.append(f"{real_answer(results)[0].upper()}{real_answer(results)[1:]} "
                     "([each of them](figures/performance.md#what-a-budget-costs)).")
    models = real_models(results)
    if models:
        parts.append("Models on real ranks, the busiest one of each. Without joining each chunk is "
                     "a bucket of its own:\n\n" + model_table(models))
    return "\n\n".join(parts)


def real_text(results):
    """Each redistribution."""
    found = real(results)
    if not found:
        return ""
    own = results.get("budget-24")["memory"] == "private"
    return ("Busiest rank of 16 real ones, tensors "
            f"{'in your own memory' if own else 'in memory that Sluice allocated'}, "
            "without a budget and with 8 buckets:\n\n" + real_table(found))


def real_table(found):
    rows = [[case["name"].removeprefix("etha-"), case["free"]["buckets"], case["eight"]["buckets"],
             spread_of(case["time_ratio"]), *_pairs(case["free"], case["eight"])]
            for case in found]
    return table(["case", "buckets", "with 8", "time with 8 / without", *PAIRS], rows)


# What a rank holds beside buckets: without a budget, and with 8.
PAIRS = ("staging, MiB", "with 8", "messages", "with 8", "resident growth, MiB", "with 8")


def _pairs(free, eight):
    return [*(_mib(side["staging_bytes"]) for side in (free, eight)),
            *(_count(side["messages"]) for side in (free, eight)),
            *(_mib(side["resident_bytes"]) for side in (free, eight))]


def model_table(found):
    rows = []
    for case in found:
        title = f"{case['name']}, {case['ranks']} ranks, {case['payload_bytes'] / MIB:,.0f} MiB"
        for way, words in (("joined", "joined"), ("apart", "not")):
            free, eight = case[way]["free"], case[way]["eight"]
            rows.append([title, words, free["buckets"], eight["buckets"],
                         "1" if way == "joined" else spread_of(free["time_ratio"]),
                         spread_of(eight["time_ratio"]), *_pairs(free, eight)])
            title = ""
    return table(["model", "chunks", "buckets", "with 8", "time / joined without a budget",
                  "with 8", *PAIRS], rows, left=2)


def _count(number):
    return "-" if number is None else f"{number:,}"


def _mib(count):
    return "-" if count is None else f"{count / MIB:.1f}"
