"""Worlds beside mpirun: what carries buckets between nodes, 24
redistributions, and members that come and go."""
from pages import heads
from pages.markdown import size, spread_of, table

WAYS = {"mpi": "Open MPI, TCP", "ucx": "UCX", "tcp": "Sluice's TCP"}
RATES = {"none": "no limit", "10gbit": "10 Gbit/s"}


def wires(results):
    """GB/s of each way, and Open MPI's time over the others'."""
    data = results.get("wires")
    if not data:
        return ""
    rows = [[RATES[row["rate"]], size(row["bucket_bytes"])] +
            [spread_of(row["gb_per_s"][way]) for way in WAYS] +
            [spread_of(row["ratio"][way]) for way in WAYS if way != "mpi"]
            for row in data["results"]]
    header = ["link", "bucket"] + [f"{name}, GB/s" for name in WAYS.values()]
    return table(header + [f"Open MPI's time / {WAYS[way]}'s" for way in WAYS if way != "mpi"],
                 rows, left=2)


def redistributions(results):
    """mpirun's time over the world's: the median of the cases, the least and the most."""
    data = results.get("worlds")
    if not data:
        return ""
    rows = []
    for place in dict.fromkeys(row["place"] for row in data["results"]):
        found = sorted((row["ratio"]["median"], row["case"]) for row in data["results"]
                       if row["place"] == place)
        within = sum(ratio >= 0.95 for ratio, _ in found)
        rows.append([place, f"{found[len(found) // 2][0]:.2f}",
                     f"{found[0][0]:.2f} (`{found[0][1]}`)", f"{found[-1][0]:.2f}",
                     f"{within} of {len(found)}"])
    return table(["mpirun's time / the world's", "median", "least", "most", "at least 0.95"], rows)


def members(results):
    """What a killed member and a joining one cost the others."""
    data = results.get("members")
    if not data:
        return ""
    kill, join = data["kill"], data["join"]
    rows = [[f"all of {data['processes'] - 1} survivors have named the killed one, s",
             "1", spread_of(kill["named_s"])],
            ["after that, all have the next version, s", "1", spread_of(kill["arrived_s"])],
            ["1 GiB: what the trainer sends for a server that joins, bytes", "0",
             spread_of(join["trainer_bytes"], 0)],
            ["versions meanwhile: their time over that of others", "1.1",
             spread_of(join["slower"])]]
    return table(["", "goal, at most", "measured"], rows, left=1)


def where(results):
    return heads.where(results, ("wires", "worlds", "members"))
