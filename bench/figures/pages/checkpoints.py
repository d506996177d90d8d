"""docs/checkpoints.md: loads in several ways, in turns, of checkpoints.json."""
from pages import heads
from pages.markdown import size, spread, table

NAMES = {"sluice": "Sluice", "mmap": "plain mapping and memcpy", "safetensors": "safetensors",
         "runai": "Run:ai model streamer"}
PLACES = {"cold": "storage", "warm": "page cache"}


def text(results):
    data = results.get("checkpoints")
    if not data:
        return ""
    rows = [[PLACES[row["case"]], name_of(row), row["processes"],
             f"{row['time_us']['median'] / 1e3:.0f}", f"{row['gb_per_s']:.2f}",
             spread(row["ratio"]["median"], row["ratio"]["p25"], row["ratio"]["p75"])]
            for row in data["rows"]]
    rows += [["", NAMES[one["way"]], "", "", "", one["reason"]] for one in data["missing"]]
    made, head = data["checkpoint"], heads.head_of(data)
    return (f"{size(made['bytes'])} in {made['files']} files, {made['tensors']} tensors, into your "
            f"own memory; {head['rounds']} rounds, medians and quartiles.\n"
            f"{heads.machine_text(head['machine'])}; {head['date']}, commit "
            f"`{head['commit']}`.\n\n" +
            table(["from", "way", "processes", "ms", "GB/s", "time / Sluice's, 1 process"], rows,
                  left=2))


def name_of(row):
    """Those of others with their version."""
    name = NAMES[row["way"]]
    return f"{name} {row['version']}" if row["way"] in ("safetensors", "runai") else name


def ahead(results):
    """The way with one process that is farthest ahead of Sluice, and where; or None."""
    data = results.get("checkpoints")
    faster = [row for row in (data["rows"] if data else ())
              if row["way"] != "sluice" and row["processes"] == 1 and row["ratio"]["median"] < 1]
    return min(faster, key=lambda row: row["ratio"]["median"], default=None)
