"""docs/loaders.md: waves of reads, and slots; bars, which loaders of Python's are among."""
from pages.markdown import image, spread_of, table

NAMES = {"waves:8": "one of 8 slabs at a time", "serial": "the whole budget at a time",
         "threads:8x4": "8 loader threads", "dataloader": "PyTorch DataLoader",
         "mosaicml-streaming": "MosaicML streaming", "webdataset": "webdataset",
         "sluice": "Sluice", "warm": "Sluice without latency"}
BAR_CONSUME_MS = 8  # a consumer slower than the budget allows, at each latency


def waves(results):
    data = results.get("waves")
    parts = [image("Items per second of each way, at each latency", "waves.svg")] \
        if bars(results) else []
    if data:
        parts += [f"Items a second; medians (quartiles), {data['rounds']} rounds.\n\n" +
                  _table(data["summary"]), goal_table(data["goals"], "goal (bold: missed)")]
    return "\n\n".join(parts)


def _table(rows):
    found = {(row["mode"], row["consume_ms"], row["latency_ms"]): row for row in rows}
    latencies = list(dict.fromkeys(row["latency_ms"] for row in rows))
    return table(["way", "computing", *(f"{ms:g} ms" for ms in latencies)], [
        [NAMES[mode], f"{consume_ms:g} ms", *(
            spread_of(found[mode, consume_ms, ms]["items_per_s"], 0) for ms in latencies)]
        for consume_ms in dict.fromkeys(row["consume_ms"] for row in rows)
        for mode in NAMES if (mode, consume_ms, latencies[0]) in found], left=2)


def goal_table(found, words="goal"):
    """A row for each goal, a column for each setting; what was missed is bold."""
    settings = list(dict.fromkeys(goal["setting"] for goal in found))
    rows = {}
    for goal in found:
        rows.setdefault((goal["words"], goal["least"]), {})[goal["setting"]] = goal
    return table([words, "at least", *settings],
                 [[name, f"{least:g}", *(_cell(of.get(setting)) for setting in settings)]
                  for (name, least), of in rows.items()])


def _cell(goal):
    if goal is None:
        return ""
    text = spread_of(goal["measured"])
    return text if goal["reached"] else f"**{text}**"


def bars(results):
    """[{title, latencies: {ms: {way: spread of items per second}}}], a panel for each."""
    waved, loaded = results.get("waves"), results.get("loaders")
    panels = []
    if waved:
        rows = [row for row in waved["summary"] if row["consume_ms"] == BAR_CONSUME_MS]
        panels.append({"title": f"{BAR_CONSUME_MS} ms of computing",
                       "latencies": _by_latency((row["latency_ms"], row["mode"],
                                                 row["items_per_s"]) for row in rows)})
    if loaded:
        panels.append({"title": f"{loaded['consume_us'] / 1000:g} ms of computing",
                       "latencies": _by_latency(_of_loaders(loaded))})
    return panels


def _by_latency(rows):
    found = {}
    for latency_ms, way, spread in rows:
        if way in NAMES:
            found.setdefault(f"{latency_ms:g}", {})[NAMES[way]] = spread
    return found


def _of_loaders(data):
    """Each way with the items of a shard that suit it best."""
    best = {}
    for row in data["rows"]:
        key = (row["latency_ms"], "waves:8" if row["way"].startswith("waves:") else row["way"])
        if key not in best or row["time_us"]["median"] < best[key]["time_us"]["median"]:
            best[key] = row
    for (latency_ms, way), row in best.items():
        if way not in ("serial", "sluice-thread"):
            times = row["time_us"]
            yield latency_ms, way, {name: 1e6 * data["items"]["count"] / times[of] for name, of in (
                ("median", "median"), ("q1", "p75"), ("q3", "p25"))}


def slots(results):
    data = results.get("slots")
    if not data:
        return ""
    ratios = [row["of_bound"]["median"] for row in data["summary"]]
    reached = sum(goal["reached"] for goal in data["goals"])
    return (f"{image('Throughput against slots, at three latencies', 'slots.svg')}\n\n"
            f"Without latency it is {spread_of(_gb(data['base']))} GB/s. Of what the slots allow "
            f"it reaches {min(ratios):.2f} to {max(ratios):.2f}; {reached} of {len(ratios)} "
            f"settings reach the goal of {data['goals'][0]['least']:g} ({data['rounds']} rounds).")


def slot_lines(results):
    """What the plot shows."""
    data = results.get("slots")
    return data and {"base": _gb(data["base"]), "item_bytes": data["parameters"]["item_bytes"],
                     "lines": [{"latency_ms": row["latency_ms"], "slots": row["slots"],
                                **_gb(row["steady"])} for row in data["summary"]]}


def _gb(spread):
    return {key: spread[key] * 1e-9 for key in ("median", "q1", "q3")}
