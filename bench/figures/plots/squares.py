"""Bandwidth against size for square tensors: a panel per number of tensors and wire."""
from pages.markdown import size
from pages.squares import WAYS
from plots import style

NAMES = {"direct": "Sluice, direct", "mpi": "Sluice over MPI", "isend": "MPI_Isend per chunk",
         "isend-packed": "MPI_Isend, packed", "serial": "one chunk at a time",
         "alltoallw": "MPI_Alltoallw"}
RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)  # GB/s


def draw(data, path):
    """`data`: {title: {way: [(bytes, median, q1, q3)]}}"""
    rates = [p[1] for ways in data.values() for points in ways.values() for p in points]
    low, high = min(rates), max(rates)
    figure, rows = style.grid(len(data), 2, sharey=True)
    for axis, (title, ways) in zip(rows, data.items()):
        axis.set_title(title, fontsize=10, loc="left")
        axis.set_xscale("log", base=2)
        counts = set()
        for way, points in ways.items():
            spreads = [{"median": p[1], "q1": min(p[1:]), "q3": max(p[1:])} for p in points]
            style.line(axis, [p[0] for p in points], spreads, WAYS.index(way), NAMES[way])
            counts |= {p[0] for p in points}
        style.log_ticks(axis.xaxis, sorted(counts), size)
        axis.tick_params(axis="x", labelsize=8)
        axis.set_xlabel("bytes moved")
        axis.set_yscale("log")
        style.log_ticks(axis.yaxis, [tick for tick in RATES if low / 1.3 <= tick <= high * 1.3],
                        lambda rate: f"{rate:g}")
        axis.set_ylabel("GB/s")
    labels = {}
    for axis in rows:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            labels.setdefault(label, handle)
    figure.legend(labels.values(), labels.keys(), loc="outside lower center", fontsize=9, ncols=3)
    style.save(figure, path, data)
