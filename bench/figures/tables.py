"""The Markdown tables: what was measured next to its goal."""
import goals


def text(parts):
    written = [f"## {TITLES[name]}\n\n{TABLES[name](parts[name])}"
               for name in TABLES if name in parts]
    return _head(parts) + "\n\n".join(written) + "\n"


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def _head(parts):
    machines = {tuple(sorted(part["machine"].items())) for part in parts.values()}
    lines = []
    for machine in sorted(machines):
        m = dict(machine)
        lines.append(f"{m['cpus']} CPUs ({m['cpu']}), {m['memory_gib']} GiB, Linux {m['kernel']}; "
                     f"sluice {m['sluice']}; fio {m['fio']}, curl {m['curl']}, "
                     f"nginx {m['nginx']}.")
    if any(part["quick"] for part in parts.values()):
        lines.append("**Quick runs are among these: they show that the programs work, no more.**")
    return "\n".join(lines) + "\nMedians, with quartiles in brackets.\n\n"


def _table(head, rows):
    return "\n".join("| " + " | ".join(cells) + " |"
                     for cells in (head, ["---"] * len(head), *rows))


def _number(value, digits=2):
    return f"{value:.{digits}f}"


def _spread(spread, digits=2, factor=1):
    values = [f"{spread[key] * factor:.{digits}f}" for key in ("median", "q1", "q3")]
    return values[0] if values[1] == values[2] else f"{values[0]} ({values[1]}-{values[2]})"


def _percent(spread):
    return _spread(spread, 2, 100) + " %"


def _rate(spread):
    return _spread(spread, 2, 1e-9)


def _grid(part):
    rows = [row for row in part["summary"] if not row["ample"]]
    latencies = sorted({row["latency_ms"] for row in rows if row["latency_ms"] > 0})
    by_place = {(row["source"], row["window_mib"], row["latency_ms"]): row for row in rows}
    lines = []
    for source, window in dict.fromkeys((row["source"], row["window_mib"]) for row in rows):
        cells = [by_place[source, window, latency] for latency in latencies]
        lines.append([f"{source}:", str(window), _rate(by_place[source, window, 0]["steady"]),
                      *(f"{_spread(cell['steady_ratio'])}; "
                        f"{_number(cell['whole_ratio']['median'])}" for cell in cells)])
    head = ["source", "MiB in flight", "B0, GB/s", *(f"T/T* at {ms:g} ms" for ms in latencies)]
    lowest = min((row for row in rows if row["latency_ms"] > 0),
                 key=lambda row: row["steady_ratio"]["median"])
    ample = [[f"{row['source']}:", _spread(row["window_mib"], 0),
              _spread(row["window_of_latency"]), f"at least {goals.AMPLE}",
              _spread(row["steady_of_base"]), _spread(row["whole_of_base"])]
             for row in part["summary"] if row["ample"]]
    ample_head = ["source, at 200 ms", "MiB in flight", "of L x B0", "goal", "T/B0",
                  "whole run"]
    return (_table(head, lines) +
            "\n\nIn the steady state; after the semicolon the whole run with its opening. The goal "
            f"is {goals.BOUND}. Lowest: {_number(lowest['steady_ratio']['median'])} "
            f"({lowest['source']}:, {lowest['window_mib']} MiB, {lowest['latency_ms']:g} ms).\n\n" +
            _table(ample_head, ample))


def _tails(part):
    hedged = {"hedged": (f"at least {goals.HEDGED}", f"at most {goals.EXTRA_REQUESTS:.0%}")}
    return _table(
        ["source", "reads", "goal", "throughput / untailed", "of its pace", "goal",
         "extra requests"],
        [[f"{row['source']}:", row["setting"], hedged.get(row["setting"], "--")[0],
          _spread(row["ratio"]), _spread(row["of_pace"]), hedged.get(row["setting"], "--")[1],
          _percent(row["extra_requests"])] for row in part["summary"]])


def _pacing(part):
    at_most = {thread: f"at most {goal:.0%}" for thread, goal in goals.STALL.items()}
    streams = [[f"{row['source']}:", f"{row['step']:g}", str(row["progress_thread"]),
                at_most[row["progress_thread"]] if row["step"] > 1 else "-",
                _percent(row["stall_share"]), f"at least {goals.OVERLAP}",
                _spread(row["overlap"], 3), _spread(row["production_us"], 0)]
               for row in part["summary"]]
    p = part["parameters"]
    make, step = p["generate_ms"], p["consume_us"] * 1e-3
    # An item that waits for the update before it overlaps with nothing.
    made = [[*(("after the update", "1") if row["after_update"] else
               ("one batch ahead", _number((make + step) / max(make, step), 3))),
             str(row["progress_thread"]), _spread(row["speed_up"], 3)]
            for row in part["generator_summary"]]
    return (_table(["source", "step / production", "progress thread", "goal", "stall", "goal",
                    "overlap", "production, us"], streams) +
            f"\n\nA generator of {make:g} ms an item, a consumer of {step:g} ms:\n\n" +
            _table(["generator", "ideal", "progress thread", "speed-up over one after the other"],
                   made))


def _disk(part):
    return _table(
        ["size", "throughput / fio", "GB/s", "fio", "CPU s/GiB", "fio", "goal", "CPU / fio",
         "both without start", "GB/s, steady / fio"],
        [[size_text(row["size"]), _spread(row["whole_ratio"]), _rate(row["whole"]),
          _rate(row["fio_bytes_per_s"]), _spread(row["cpu_s_per_gib"], 3),
          _spread(row["fio_cpu_s_per_gib"], 3), f"at most {goals.FIO_CPU}",
          _spread(row["cpu_ratio"]),
          _spread(row["cpu_ratio_without_start"]), _spread(row["steady_ratio"])]
         for row in part["summary"]])


def _http(part):
    return _table(
        ["connections", "goal", "throughput / curl", "GB/s", "curl", "goal", "reuse"],
        [[str(row["connections"]), f"at least {goals.CURL}", _spread(row["whole_ratio"]),
          _rate(row["whole"]), _rate(row["curl_bytes_per_s"]), f"at least {goals.REUSE}",
          _spread(row["reuse"], 4)] for row in part["summary"]])


def _read_once(part):
    def cell(row, key):
        return _spread(row[key], 3) if key in row else "-"
    return _table(
        ["source", "ranks", "goal", "bytes read / unique", "opens / objects",
         "bytes, counted by the storage", "opens, counted"],
        [[row["source"], str(row["ranks"]), f"{goals.READ_ONCE:g}",
          *(cell(row, key) for key in ("bytes_ratio", "opens_ratio", "counted_bytes_ratio",
                                       "counted_opens_ratio"))] for row in part["summary"]])


def _memory(part):
    mib = 1 / (1 << 20)
    return _table(
        ["source", "budget, MiB", "process above before, MiB", "allowed, MiB", "goal", "ratio",
         "not in the ledger, MiB", "ledger's peak / limit"],
        [[f"{row['source']}:", f"{row['budget_bytes'] >> 20}", _spread(row["above_bytes"], 1, mib),
          _spread(row["allowed_bytes"], 1, mib), f"at most {goals.MEMORY:g}",
          _spread(row["ratio"]), _spread(row["over_ledger_bytes"], 1, mib),
          _spread(row["ledger_ratio"], 3)] for row in part["summary"]])


def _crowd(part):
    count = part["parameters"]["processes"]
    return _table(
        ["source", "latency, ms", "processes", "alone, MB/s", "goal", "median share",
         "least / median", "together / alone", "all at once, of the longest run"],
        [[f"{row['source']}:", str(row["latency_ms"]), str(count), _spread(row["alone"], 1, 1e-6),
          f"at least {goals.CROWD}" if row["latency_ms"] > 0 else "-",
          _spread(row["share_median"], 3), _spread(row["least_of_median"], 3),
          _spread(row["together_of_alone"], 1), _spread(row["all_at_once"])]
         for row in part["summary"]])


def _first_item(part):
    latencies = sorted({row["latency_ms"] for row in part["summary"]})
    by_place = {(row["source"], row["ranks"], row["slots"], row["latency_ms"]): row["ratio"]
                for row in part["summary"]}
    places = dict.fromkeys(place[:3] for place in by_place)
    return _table(
        ["source", "ranks", "slots", "goal", *(f"{ms:g} ms" for ms in latencies)],
        [[f"{source}:", str(ranks), str(slots), f"at most {goals.FIRST_ITEM}",
          *(_spread(by_place[source, ranks, slots, ms]) for ms in latencies)]
         for source, ranks, slots in places])


def _loaders(part):
    return _table(
        ["source", "latency, ms", "against", "ratio", "GB/s", "the other"],
        [[f"{row['source']}:", f"{row['latency_ms']:g}", row["other"], _spread(row["ratio"]),
          _rate(row["whole"]), _rate(row["other_whole"])] for row in part["summary"]])


TITLES = {"grid": "Throughput under latency", "tails": "Slow reads, in order",
          "pacing": "A consumer with a step of its own", "disk": "Against fio, 32 at once",
          "http": "Against curl, from nginx", "read_once": "Read once between ranks",
          "memory": "Memory", "crowd": "Many processes at once", "first_item": "The first item",
          "loaders": "Against plain loaders"}
TABLES = {"grid": _grid, "tails": _tails, "pacing": _pacing, "disk": _disk, "http": _http,
          "read_once": _read_once, "memory": _memory, "crowd": _crowd, "first_item": _first_item,
          "loaders": _loaders}
