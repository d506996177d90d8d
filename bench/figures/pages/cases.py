"""The 24 redistributions on 16 ranks of a node: ours against each other way, of best-mpi.json."""
import statistics

from spread import spread as spread_over

from pages.markdown import spread, spread_of, table

MEMORIES = (("private", "in your own memory"), ("shared", "in memory that Sluice allocated"))


def of(results, memory):
    """[{name, ours_ms, ways: {way: spread of its time over ours}, best: the same, with the way,
    bound: the same}]. Each way is in whatever memory and setting of MPI it is fastest in."""
    data = results.get("best-mpi")
    return [_case(case, memory) for case in data["cases"]] if data else []


def _case(case, memory):
    ours = case["ours"][memory]
    best = case["best"]
    setting = f"{'with' if best['cma'] else 'without'} CMA"
    return {"name": case["case"], "ours_ms": ours["median"] / 1e3,
            "ways": {way: _fastest(settings, ours) for way, settings in case["ways"].items()
                     if settings},
            "best": {"way": f"{best['way']} {setting}", **_spread(case["ratio"][memory])},
            "bound": _spread(case["of_bound"][memory])}


def _fastest(settings, ours):
    """Of the rounds' ratios."""
    times = min((copy for memory in settings.values() for copy in memory.values()),
                key=lambda time: time["median"])
    return spread_over(theirs / mine for theirs, mine in zip(times["rounds"], ours["rounds"]))


def _spread(quartiles):
    return {"n": len(quartiles["rounds"]), "median": quartiles["median"], "q1": quartiles["p25"],
            "q3": quartiles["p75"]}


def serial(results, memory):
    """{case: spread of the time of one chunk at a time over ours}, of serial.json."""
    data = results.get("serial")
    found = {}
    for result in data["results"] if data else ():
        theirs = (result.get("baselines") or {}).get("serial")
        if result["memory"] == memory and theirs:
            found[result["id"]] = {"median": theirs["ratio"], "q1": theirs["ratio_p25"],
                                   "q3": theirs["ratio_p75"]}
    return found


def serial_text(results):
    """A sentence for each kind of memory, or nothing."""
    parts = []
    for memory, words in MEMORIES:
        ratios = sorted(entry["median"] for entry in serial(results, memory).values())
        if ratios:
            parts.append(f"One chunk at a time (`serial`) takes {statistics.median(ratios):.2f} "
                         f"times as long {words} (median; {ratios[0]:.2f} to {ratios[-1]:.2f}).")
    return " ".join(parts)


def both(results):
    """What the picture shows."""
    found = {memory: of(results, memory) for memory, _ in MEMORIES}
    return found if any(found.values()) else None


def best(case):
    """The other way that is fastest, of all settings."""
    return case["best"]


def median(found):
    return statistics.median(best(case)["median"] for case in found)


def least(found):
    return min(best(case)["median"] for case in found)


def headline(found):
    ratios = [best(case)["median"] for case in found]
    q1, _, q3 = statistics.quantiles(ratios, n=4, method="inclusive")
    ahead = sum(ratio > 1 for ratio in ratios)
    return (f"the best other way takes {spread(median(found), q1, q3)} times as long (median, "
            f"quartiles of the cases), {least(found):.2f} at least; ours is ahead in {ahead} of "
            f"{len(found)}")


def way_tables(results):
    """Every way in every case, with quartiles."""
    parts = []
    for memory, words in MEMORIES:
        found = of(results, memory)
        if not found:
            continue
        ways = sorted({way for case in found for way in case["ways"]})
        chunkwise = serial(results, memory)
        rows = [[case["name"], f"{case['ours_ms']:.1f}"] +
                [spread_of(case["ways"][way]) if way in case["ways"] else "-" for way in ways] +
                [spread_of(chunkwise[case["name"]]) if case["name"] in chunkwise else "-"] *
                bool(chunkwise) + [spread_of(case["bound"])] for case in found]
        parts.append(f"{words.capitalize()}; times over ours:\n\n" +
                     table(["case", "ours, ms", *ways, *["serial"] * bool(chunkwise), "bound"],
                           rows))
    return "\n\n".join(parts)


def summary_table(results):
    rows = []
    for memory, words in MEMORIES:
        found = of(results, memory)
        if not found:
            continue
        worst = min(found, key=lambda case: best(case)["median"])
        bounds = [case["bound"]["median"] for case in found]
        rows.append([words, f"{median(found):.2f}", f"{least(found):.2f}",
                     f"{worst['name']}: {best(worst)['way']} {spread_of(best(worst))}",
                     f"{statistics.median(bounds):.2f} ({min(bounds):.2f}-{max(bounds):.2f})"])
    return table(["best other way / ours", "median", "least", "the least one (quartiles)",
                  "bound / ours, median (range)"], rows)
