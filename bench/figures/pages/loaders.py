"""docs/loaders.md: loaders of Python's, what a step waits, and handing over: of loaders.json and
hand-over.json."""
from pages import heads
from pages.markdown import spread, spread_of, table
from pages.waves import NAMES, goal_table

RESULTS = ("waves", "slots", "loaders", "hand-over")
LIBRARIES = ("dataloader", "dataloader-pinned", "mosaicml-streaming", "webdataset")
# Whose steps are compared. The others read whole shards, or have no latency.
STEPS = ("serial", "threads", "dataloader", "dataloader-pinned", "sluice", "sluice-thread")


def where(results):
    return heads.where(results, RESULTS)


def name_of(way):
    """With what it is set to, if that is part of its name."""
    if way.startswith("threads:"):
        return f"{way.removeprefix('threads:').partition('x')[0]} loader threads"
    if way.startswith("waves:"):
        return f"one of {way.removeprefix('waves:')} slabs at a time"
    return {"sluice-thread": "Sluice, progress thread",
            "dataloader-pinned": "PyTorch DataLoader, pinned"}.get(way) or NAMES[way]


def loaders(results):
    data = results.get("loaders")
    if not data:
        return ""
    rows, latencies = _matrix(data["rows"])
    lines = [[full_name(row), row["items_ahead"],
              *(f"{of[ms]['items_per_s']:.0f}; {_ratio(of[ms]['ratio'])}" for ms in latencies)]
             for row, of in rows]
    text = (f"{data['items']['count']} items of {data['items']['bytes'] >> 10} KiB, "
            f"{data['consume_us'] / 1000:g} ms of computing with each, {data['workers']} workers, "
            f"{data['ahead']} items ahead of each; {heads.head_of(data)['rounds']} rounds. Items a "
            "second; time over Sluice's (quartiles).\n\n" +
            table(["way", "items ahead", *(f"{ms:g} ms" for ms in latencies)], lines))
    for one in data["missing"]:
        text += f"\n\nNot measured: {name_of(one['way'])}; {one['reason']}."
    return text + "\n\n" + goal_table(data["goals"], "goal (bold: missed)")


def _matrix(rows):
    """[(first row of a way, {latency: row})], and all latencies."""
    found = {}
    for row in rows:
        found.setdefault((row["way"], row["shard_items"]), {})[row["latency_ms"]] = row
    return ([(next(iter(of.values())), of) for of in found.values()],
            list(dict.fromkeys(row["latency_ms"] for row in rows)))


def full_name(row):
    name = name_of(row["way"])
    if row["way"] in LIBRARIES:
        name += " " + row["version"]
    return name + (f", {row['latency_per']}" if row["shard_items"] else "")


def _ratio(entry):
    return spread(entry["median"], entry["p25"], entry["p75"])


def waiting(results):
    """The share of a step that waits for data, and steps a second."""
    data = results.get("loaders")
    if not data:
        return ""
    rows, latencies = _matrix(data["rows"])
    return table(["step with", *(f"{ms:g} ms: waiting; steps/s" for ms in latencies)], [
        [name_of(row["way"]), *(f"{of[ms]['wait_share']['median']:.0%}; "
                                f"{of[ms]['items_per_s']:.0f}" for ms in latencies)]
        for row, of in rows if row["way"].partition(":")[0] in STEPS])


def hand_over(results):
    data = results.get("hand-over")
    if not data:
        return ""
    found = {(row["processes"], row["way"]): row for row in data["summary"]}
    rows = []
    for (processes, way), ours in found.items():
        if way in MEANWHILE:
            queue = found[processes, way.replace("stream", "queue")]
            ratio = spread_of(ours["queue_over"])
            rows.append([processes, MEANWHILE[way], spread_of(ours["wall_ns"], 0),
                         spread_of(ours["cpu_ns"], 0), spread_of(queue["wall_ns"], 0),
                         spread_of(queue["cpu_ns"], 0),
                         ratio if round(ours["queue_over"]["median"], 2) >= 1 else f"**{ratio}**"])
    return (f"Medians (quartiles), {data['rounds']} rounds.\n\n" +
            table(["processes", "meanwhile", "Sluice, ns an item", "of the processor",
                   "queue, ns an item", "of the processor",
                   "queue's time over Sluice's (bold: below 1)"], rows, left=2))


MEANWHILE = {"stream": "nothing", "stream, filling": "the other thread fills up"}


def slower(results):
    """[(processes, how many times as fast the queue is: a spread)] where a stream is behind."""
    data = results.get("hand-over")
    return [(row["processes"], {"median": 1 / row["queue_over"]["median"],
                                "q1": 1 / row["queue_over"]["q3"],
                                "q3": 1 / row["queue_over"]["q1"]})
            for row in data["summary"] if row["way"] == "stream" and
            row["queue_over"]["median"] < 1] if data else []


def ahead(results):
    """[(latency, row)] of libraries that took less time than Sluice."""
    data = results.get("loaders")
    return [(row["latency_ms"], row) for row in data["rows"] if row["way"] in LIBRARIES and
            round(row["ratio"]["median"], 2) < 1] if data else []
