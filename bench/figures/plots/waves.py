"""Items per second of each way, a panel for each consumer, a group of bars for each latency."""
from pages.waves import NAMES
from plots import style

COLORS = dict(zip(NAMES.values(), (style.COLORS[1], style.COLORS[3], style.COLORS[4],
                                   style.COLORS[5], "#8c6d31", "#6b4c9a", style.COLORS[0],
                                   style.GREY)))


def draw(data, path):
    """`data`: panels as pages/waves.py has them"""
    figure, axes = style.panels(len(data), width=5.2, height=3.6)
    for axis, panel in zip(axes, data):
        _panel(axis, panel)
    axes[0].set_ylabel("items per second")
    handles = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    labels = [name for name in NAMES.values() if name in handles]
    figure.legend([handles[label] for label in labels], labels, loc="outside lower center",
                  ncols=4, fontsize=9)
    style.save(figure, path, data)


def _panel(axis, panel):
    latencies = list(panel["latencies"])
    ways = [name for name in NAMES.values()
            if any(name in panel["latencies"][ms] for ms in latencies)]
    width = 0.84 / len(ways)
    for number, way in enumerate(ways):
        there = [place for place, ms in enumerate(latencies) if way in panel["latencies"][ms]]
        spreads = [panel["latencies"][latencies[place]][way] for place in there]
        axis.bar([place + (number - (len(ways) - 1) / 2) * width for place in there],
                 style.medians(spreads), width * 0.9, color=COLORS[way],
                 yerr=style.whiskers(spreads), ecolor=style.GREY, capsize=2, label=way)
    axis.set_title(panel["title"], fontsize=10, loc="left")
    axis.set_xticks(range(len(latencies)), [f"{ms} ms" for ms in latencies])
    axis.set_xlabel("latency of each read")
