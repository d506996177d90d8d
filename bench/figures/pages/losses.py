"""The section "Where it loses": what is slower, or dearer, with the figures that say so."""
from pages import budgets, cases, checkpoints, loaders, pair, storage
from pages.markdown import spread_of


def text(results):
    return _text(results, (_tiny, _own_memory, _sums, _budget, _real_budget, _consumer,
                           _first_item, _page_cache, _loaders, _hand_over, _checkpoints))


def short_text(results):
    """What most users will meet."""
    return _text(results, (_tiny, _own_memory, _budget, _page_cache, _checkpoints))


def _text(results, parts):
    return "\n".join(f"* {line}" for part in parts for line in part(results))


def _tiny(results):
    found = pair.tiny_text(results)
    if found:
        yield (f"10,000 tensors of 256 bytes between two ranks: one `MPI_Alltoallw` with joined "
               f"types is {found} times as fast.")


def _own_memory(results):
    found = cases.of(results, "private")
    if not found:
        return
    slower = [case for case in found if cases.best(case)["median"] < 1.1]
    if not slower:
        return
    worst = min(found, key=lambda case: cases.best(case)["median"])
    yield (f"In your own memory {len(slower)} of {len(found)} redistributions gain less than a "
           f"tenth. The least is `{worst['name']}`: {cases.best(worst)['way']} takes "
           f"{spread_of(cases.best(worst))} times as long.")


def _sums(results):
    found = cases.of(results, "shared")
    if not found:
        return
    worst = min(found, key=lambda case: case["bound"]["median"])
    if worst["bound"]["median"] < 0.95:
        yield (f"The farthest from the bound is `{worst['name']}`: the bound takes "
               f"{spread_of(worst['bound'])} of our time. Four contributions are added up there."
               if "5-partial" in worst["name"] else
               f"The farthest from the bound is `{worst['name']}`: the bound takes "
               f"{spread_of(worst['bound'])} of our time.")


def _budget(results):
    highest = budgets.simulated_highest(results)
    if highest:
        yield (f"A budget of 8 makes whole models up to {highest:.2f} times as slow "
               "(simulated, [large meshes](large-meshes.md)).")


def _real_budget(results):
    worst = budgets.real_worst(results)
    if worst and worst["time_ratio"]["median"] > 1.05:
        yield (f"On 16 real ranks the dearest case of a budget of 8 is `{worst['name']}`, "
               f"{spread_of(worst['time_ratio'])} times the time without one.")


def _consumer(results):
    data = (results.get("streaming") or {}).get("pacing")
    if data:
        stalls = [row["stall_share"]["median"] for row in data["summary"]
                  if row["progress_thread"] == 0 and row["step"] > 1]
        yield (f"Without a progress thread a stream's consumer stalls for {min(stalls):.0%} to "
               f"{max(stalls):.0%} of its time.")


def _first_item(results):
    data = (results.get("streaming") or {}).get("first_item")
    if data:
        rows = [row for row in data["summary"] if row["ranks"] > 1]
        worst = max(rows, key=lambda row: row["ratio"]["median"])
        yield (f"{worst['ranks']} ranks on 2 cores: the first item takes up to "
               f"{worst['ratio']['median']:.1f} times a round trip and its own transfer.")


def _page_cache(results):
    found = storage.bars(results).get(0)
    if not found:
        return
    loader = max((found[name] for name in found if "loader" in name),
                 key=lambda entry: entry["median"])
    ours = found["Sluice, whole run"]
    if loader["median"] < 0.95 * ours["median"]:
        return
    word = "ahead" if loader["median"] > ours["median"] else "level"
    yield (f"Data in the page cache, without latency: plain loader threads are {word}, "
           f"{loader['median'] / 1e9:.1f} GB/s beside {ours['median'] / 1e9:.1f}.")


def _loaders(results):
    """The one that is farthest ahead."""
    found = loaders.ahead(results)
    if found:
        latency_ms, row = min(found, key=lambda one: one[1]["ratio"]["median"])
        inverse = {"median": 1 / row["ratio"]["median"], "q1": 1 / row["ratio"]["p75"],
                   "q3": 1 / row["ratio"]["p25"]}
        yield (f"{latency_ms:g} ms of latency: {loaders.full_name(row)} is {spread_of(inverse)} "
               "times as fast ([loaders](loaders.md)).")


def _hand_over(results):
    found = loaders.slower(results)
    if found:
        processes, ratio = max(found, key=lambda one: one[1]["median"])
        yield (f"Handing an item over, {processes} process{'es' * (processes > 1)} on 2 cores: a "
               f"queue with a mutex is {spread_of(ratio, 1)} times as fast "
               "([loaders](loaders.md#handing-over)).")


def _checkpoints(results):
    row = checkpoints.ahead(results)
    if row:
        inverse = {"median": 1 / row["ratio"]["median"], "q1": 1 / row["ratio"]["p75"],
                   "q3": 1 / row["ratio"]["p25"]}
        yield (f"A checkpoint out of the {checkpoints.PLACES[row['case']]}, one process: "
               f"{checkpoints.name_of(row)} is {spread_of(inverse)} times as fast.")
