"""Square tensors from two ranks to two others: bandwidth against size, per wire and per way."""
from pages.markdown import image, size, table

WIRES = (("memory", "through the node's memory"), ("tcp", "over TCP"))
WAYS = ("direct", "mpi", "isend", "isend-packed", "serial", "alltoallw")


def curves(results):
    """{title: {way: [(bytes, GB/s median, q1, q3)]}}, a title per number of tensors and wire."""
    data = results.get("squares")
    if not data:
        return None
    counts = sorted({result["tensors"] for result in data["results"]})
    found = {f"{count} tensor{'s' * (count > 1)}, {words}": _ways(data["results"], count, wire)
             for wire, words in WIRES for count in counts}
    return {title: ways for title, ways in found.items() if ways}


def _ways(results, count, wire):
    ways = {}
    for result in results:
        if (result["tensors"], result["wire"]) != (count, wire):
            continue
        for way, rates in rates_of(result).items():
            ways.setdefault(way, []).append((result["payload_bytes"], *rates))
    return {way: sorted(ways[way]) for way in WAYS if way in ways}


def rates_of(result):
    """{way: (GB/s median, q1, q3)} of one run. Of another way a result has its median alone."""
    ours = "mpi" if result["wire"] == "tcp" or result["id"].endswith("/mpi") else "direct"
    times = {ours: result["time_us"]}
    if ours == "direct" or result["wire"] == "tcp":
        for way, other in (result.get("baselines") or {}).items():
            if other:
                times[way] = {key: other["time_us"] for key in ("median", "q1", "q3")}
    return {way: tuple(result["payload_bytes"] / 1e3 / max(time[key], 1e-9)
                       for key in ("median", "q3", "q1")) for way, time in times.items()}


def picture(results):
    found = curves(results)
    if not found:
        return ""
    most = size(results.get("squares")["bytes_max"])
    return (image("GB/s against bytes, rows of two ranks to columns of two others", "squares.svg") +
            f"\n\nTwo ranks to two others, rows to columns. Tensors of more than {most} in all are "
            "left out: 25 of 8192 x 8192 and the packed copies beside them do not fit into memory.")


def squares_table(results):
    """GB/s, medians."""
    found = curves(results)
    if not found:
        return ""
    return "\n\n".join(f"{title[0].upper()}{title[1:]}:\n\n" + _table(ways)
                       for title, ways in found.items())


def _table(ways):
    points = {way: {count: rate for count, rate, *_ in line} for way, line in ways.items()}
    counts = sorted({count for line in points.values() for count in line})
    rows = [[size(count), *(f"{points[way][count]:.2f}" if count in points[way] else "-"
                            for way in ways)] for count in counts]
    return table(["GB/s", *ways], rows)
