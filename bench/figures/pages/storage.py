"""Streams from storage: the latency bars, and the goals of docs/streaming.md."""
import statistics

import goals
import tables
from pages.markdown import image, spread_of, table

BARS = (("one of 8 slabs at a time", "waves:8", "other_whole"),
        ("the whole budget at a time", "serial", "other_whole"),
        ("8 loader threads", "threads:8x4", "other_whole"),
        ("64 loader threads", "threads:64x1", "other_whole"),
        ("Sluice, whole run", "serial", "whole"), ("Sluice, after its start", "serial", "steady"))


def bars(results):
    """{latency in ms: {name of a bar: spread of bytes per second}}"""
    data = results.get("latency")
    found = {}
    for name, other, key in BARS:
        for row in data["summary"] if data else ():
            if row["other"] == other and not (key == "steady" and row["latency_ms"] == 0):
                found.setdefault(row["latency_ms"], {})[name] = row[key]
    return found


def latency_table(results):
    found = bars(results)
    if not found:
        return ""
    names = [name for name, _, _ in BARS]
    return table(["GB/s, medians (quartiles)"] + [f"{ms:g} ms" for ms in found],
                 [[name] + [_rate(found[ms].get(name)) for ms in found] for name in names])


def _rate(entry):
    if not entry:
        return "-"
    return spread_of({key: entry[key] * 1e-9 for key in ("median", "q1", "q3")})


def of_little(results):
    """At 200 ms: its rate after the start over bytes in flight / latency; a spread, or None."""
    found = bars(results).get(200)
    if not found:
        return None
    parameters = results.get("latency")["parameters"]
    bound = parameters["slots"] * parameters["item_bytes"] / 0.2
    steady = found["Sluice, after its start"]
    return {"n": steady["n"], **{key: steady[key] / bound for key in ("median", "q1", "q3")}}


def answer(results):
    found = of_little(results)
    if not found:
        return None
    in_flight = results.get("latency")["parameters"]["slots"]
    return f"{spread_of(found)} of what {in_flight} MiB in flight allow (Little's law)"


def goals_table(results):
    """docs/streaming.md: what streaming is meant to reach, and what was measured."""
    data = results.get("streaming")
    if not data:
        return ""
    rows = [line for name, line in LINES if name in data for line in line(data[name])]
    return table(["", "goal", "measured", "rounds"], rows, left=3)


def _range(values, digits=2):
    values = sorted(values)
    low, high = f"{values[0]:.{digits}f}", f"{values[-1]:.{digits}f}"
    return low if low == high else f"{low} to {high}"


def _n(rows, key):
    return _range([row[key]["n"] for row in rows], 0)


def _grid(part):
    rows = [row for row in part["summary"] if row["latency_ms"] > 0]
    bounded = [row for row in rows if not row["ample"]]
    ample = [row for row in rows if row["ample"]]
    reached = [row for row in bounded if row["steady_ratio"]["median"] >= goals.BOUND]
    values = [row["steady_ratio"]["median"] for row in bounded]
    yield ["throughput, of what 16 to 512 MiB in flight allow at 20, 50 and 200 ms "
           "([plot](figures/streaming-grid.svg))", f"{goals.BOUND}",
           f"{_range(values)}; {len(reached)} of {len(bounded)} settings reach the goal",
           _n(bounded, "steady_ratio")]
    if ample:
        yield ["at 200 ms with twice what this takes in flight, of the throughput without latency",
               f"{goals.AMPLE}", _range(row["steady_of_base"]["median"] for row in ample),
               _n(ample, "steady_of_base")]


def _tails(part):
    for setting, words in (("hedged", "slow reads started once more"),
                           ("not hedged", "left alone")):
        rows = [row for row in part["summary"] if row["setting"] == setting]
        if rows:
            yield [f"1% of reads ten times slower, {words}, of untailed "
                   "([plot](figures/streaming-tails.svg))",
                   f"{goals.HEDGED}" if setting == "hedged" else "",
                   _range(row["ratio"]["median"] for row in rows), _n(rows, "ratio")]


def _pacing(part):
    for thread, words in ((1, "with"), (0, "without")):
        rows = [row for row in part["summary"]
                if row["progress_thread"] == thread and row["step"] > 1]
        yield [f"stall of a consumer whose step is 1.2 times the production, {words} a progress "
               "thread", f"{goals.STALL[thread]:.0%}", "; ".join(
                   f"{row['source']}: {row['stall_share']['median']:.1%}" for row in rows),
               _n(rows, "stall_share")]


def _disk(part):
    rows = part["summary"]
    yield ["processor time per GiB, of fio's ([plot](figures/streaming-disk.svg))",
           f"{goals.FIO_CPU}", _range(row["cpu_ratio"]["median"] for row in rows),
           _n(rows, "cpu_ratio")]


def _read_once(part):
    rows = [row for row in part["summary"] if "counted_bytes_ratio" in row]
    yield ["bytes read, of unique bytes, counted by the storage, 2 to 8 ranks",
           f"{goals.READ_ONCE:.2f}", _range((row["counted_bytes_ratio"]["median"] for row in rows),
                                            3), _n(rows, "counted_bytes_ratio")]


def _memory(part):
    rows = part["summary"]
    yield ["memory, of budget + device buffers + 16 MiB + 4 KiB a request", f"{goals.MEMORY:.2f}",
           _range(row["ratio"]["median"] for row in rows), _n(rows, "ratio")]


def _http(part):
    rows = part["summary"]
    yield ["HTTP throughput, of `curl --parallel`'s ([plot](figures/streaming-http.svg))",
           f"{goals.CURL}", "; ".join(f"{row['connections']} connections: "
                                      f"{spread_of(row['whole_ratio'])}" for row in rows),
           _n(rows, "whole_ratio")]


def _crowd(part):
    processes = part["parameters"]["processes"]
    slow = [row for row in part["summary"] if row["latency_ms"] > 0]
    yield [f"{processes} processes at once: the slowest, of what it has alone", f"{goals.CROWD}",
           _range(row["share_min"]["median"] for row in slow), _n(slow, "share_min")]
    cached = [row for row in part["summary"] if row["latency_ms"] == 0]
    yield [f"{processes} processes read cached files: the slowest, of the median one", "-",
           _range(row["least_of_median"]["median"] for row in cached),
           _n(cached, "least_of_median")]
    yield [f"{processes} processes read cached files: all together, of one alone", "-",
           _range(row["together_of_alone"]["median"] for row in cached),
           _n(cached, "together_of_alone")]


def _first_item(part):
    for ranks in sorted({row["ranks"] for row in part["summary"]}):
        rows = [row for row in part["summary"] if row["ranks"] == ranks]
        values = [row["ratio"]["median"] for row in rows]
        reached = sum(value <= goals.FIRST_ITEM for value in values)
        yield [f"first item, times a round trip and its own transfer, {ranks} rank"
               f"{'' if ranks == 1 else 's'} ([plot](figures/streaming-first-item.svg))",
               f"{goals.FIRST_ITEM}", f"{_range(values)}, median {statistics.median(values):.2f}; "
               f"{reached} of {len(values)} settings reach the goal", _n(rows, "ratio")]


LINES = (("grid", _grid), ("tails", _tails), ("pacing", _pacing), ("disk", _disk),
         ("read_once", _read_once), ("memory", _memory), ("http", _http), ("crowd", _crowd),
         ("first_item", _first_item))


def latency(results):
    return image("Bytes per second of each way, at each latency", "latency.svg") \
        if bars(results) else ""


# The parts of streaming.json that have a plot.
DRAWN = ("grid", "tails", "disk", "http", "first_item")


def part_of(name):
    return lambda results: (results.get("streaming") or {}).get(name)


def streaming_page(results):
    """docs/figures/streaming.md: every table, with goals and quartiles."""
    data = results.get("streaming")
    return tables.text(data) if data else None
