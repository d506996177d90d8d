"""Bandwidth against size, for each way between two ranks."""
from pages.markdown import size
from plots import style

NAMES = {"direct": "Sluice, direct", "mpi": "Sluice over MPI", "isend": "MPI_Isend"}
TITLES = {"private": "in your own memory", "shared": "in memory that Sluice allocated"}


def draw(data, path):
    """`data`: {memory: {way: [(bytes, median, q1, q3)]}}"""
    figure, axes = style.panels(len(data), sharey=True)
    for axis, (memory, ways) in zip(axes, data.items()):
        axis.set_title(TITLES[memory], fontsize=10, loc="left")
        axis.set_xscale("log", base=2)
        counts = set()
        for number, (way, points) in enumerate(ways.items()):
            spreads = [{"median": p[1], "q1": min(p[1:]), "q3": max(p[1:])} for p in points]
            style.line(axis, [p[0] for p in points], spreads, number, NAMES[way])
            counts |= {p[0] for p in points}
        style.log_ticks(axis.xaxis, [count for count in sorted(counts)
                                     if (count.bit_length() - 1) % 4 == 2], size)
        axis.set_xlabel("bytes moved")
        axis.set_yscale("log")
    axes[0].set_ylabel("GB/s")
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].legend(loc="lower right", fontsize=9)
    style.save(figure, path, data)
