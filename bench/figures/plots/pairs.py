"""Ratios of runs in pairs: to fio, and to curl, with all rounds as dots."""
import goals
from plots import style
from tables import size_text


def draw_disk(part, path):
    figure, axes = style.panels(2, height=3)
    labels = [size_text(row["size"]) for row in part["summary"]]
    for axis, key, title in ((axes[0], "whole_ratio", "throughput / fio"),
                             (axes[1], "cpu_ratio_without_start", "processor time per GiB / fio")):
        _dots(axis, part, key, "size", labels)
        axis.axvline(1, color=style.GREY, linewidth=1, zorder=1)
        axis.set_xlabel(title)
    style.save(figure, path, part)


def draw_http(part, path):
    figure, (axis,) = style.panels(1, width=5.6, height=2.4)
    labels = [f"{row['connections']} connections" for row in part["summary"]]
    _dots(axis, part, "whole_ratio", "connections", labels)
    style.goal(axis, goals.CURL, "goal", along="y")
    axis.set_xlabel("throughput / curl")
    style.legend(figure, axis)
    style.save(figure, path, part)


def _dots(axis, part, key, group, labels):
    """Each pair as a dot; median and quartiles on top."""
    for place, row in enumerate(part["summary"]):
        values = [run[key] for run in part["runs"] if run[group] == row[group]]
        axis.scatter(values, [place] * len(values), s=14, color=style.GREY, alpha=0.6, zorder=2)
        axis.errorbar([row[key]["median"]], [place], xerr=style.whiskers([row[key]]),
                      color=style.COLORS[0], marker="o", markersize=7, capsize=4, zorder=3)
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(-0.6, len(labels) - 0.4)
    axis.grid(False)
    axis.set_xlim(0, 1.1 * max(1, *(run[key] for run in part["runs"])))
