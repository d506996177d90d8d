"""One pair of ranks: bandwidth against size, and 10,000 tiny tensors."""
from pages.markdown import MIB, size, spread, spread_of, table

WAYS = ("direct", "mpi", "isend")


def curves(results, memory):
    """{way: [(bytes, GB/s median, q1, q3)]} of one kind of memory."""
    data = results.get("sizes")
    found = {way: [] for way in WAYS}
    if not data:
        return found
    for result in data["results"]:
        if result["memory"] != memory:
            continue
        way = transport_of(result)
        found[way].append((result["payload_bytes"], *_rates(result["payload_bytes"],
                                                           result["time_us"])))
        if way == "direct" and (result.get("baselines") or {}).get("isend"):
            # Of another way a result has its median alone.
            time = result["baselines"]["isend"]["time_us"]
            found["isend"].append((result["payload_bytes"], *_rates(
                result["payload_bytes"], {"median": time, "q1": time, "q3": time})))
    return {way: sorted(points) for way, points in found.items()}


def transport_of(result):
    return "mpi" if result["id"].endswith("/mpi") else "direct"


def _rates(count, time):
    """GB/s: the slower quartile of times is the lower one of rates."""
    return tuple(count / 1e3 / max(time[key], 1e-9) for key in ("median", "q3", "q1"))


def at_size(results, memory, way, count):
    """GB/s of one size, or None."""
    return next((point[1:] for point in curves(results, memory)[way] if point[0] == count), None)


def memcpy_ratio(results, memory, count):
    """memcpy's time over ours, of one size, or None."""
    data = results.get("sizes")
    for result in data["results"] if data else ():
        if (result["memory"] == memory and result["payload_bytes"] == count and
                transport_of(result) == "direct"):
            return (result.get("baselines") or {}).get("memcpy")
    return None


def sizes_table(results):
    """GB/s with quartiles."""
    rows = []
    for count in [1 << e for e in range(10, 31, 2)]:
        cells = [at_size(results, memory, way, count) for memory in ("private", "shared")
                 for way in WAYS]
        if any(cells):
            rows.append([size(count)] + [_cell(cell) for cell in cells])
    if not rows:
        return ""
    return table(["GB/s"] + [f"{way}, {memory}" for memory in
                             ("your own memory", "Sluice's memory") for way in WAYS], rows)


def _cell(rates):
    if not rates:
        return "-"
    return f"{rates[0]:.2f}" if rates[1] == rates[2] else spread(*rates)


def answer(results):
    count = 64 * MIB
    private, shared = (at_size(results, memory, "direct", count)
                       for memory in ("private", "shared"))
    if not private or not shared:
        return None
    isend = at_size(results, "private", "isend", count)
    text = f"{private[0]:.1f} GB/s in your own memory"
    text += f" (isend {isend[0]:.1f})" if isend else ""
    text += f", {shared[0]:.1f} in memory that Sluice allocated"
    copied = memcpy_ratio(results, "shared", count)
    return text + (f", which is {copied['ratio']:.2f} of memcpy's rate" if copied else "")


def tiny(results):
    """{way: its time over ours, with quartiles} for 10,000 tiny tensors, or None."""
    data = results.get("tiny")
    if not data:
        return None
    return {name: {"median": other["ratio"], "q1": other["ratio_p25"], "q3": other["ratio_p75"]}
            for name, other in data["results"][0]["baselines"].items() if other}


def tiny_text(results):
    found = tiny(results)
    if not found or "alltoallw" not in found:
        return None
    joined = found["alltoallw"]
    if joined["median"] >= 1:
        return None
    inverse = {"median": 1 / joined["median"], "q1": 1 / joined["q3"], "q3": 1 / joined["q1"]}
    return spread_of(inverse, 1)
