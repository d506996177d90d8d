"""How late the first item is, over the window, a line for each latency."""
from matplotlib.ticker import LogLocator, NullFormatter

import goals
from plots import style


def draw(part, path):
    rows = part["summary"]
    groups = list(dict.fromkeys((row["source"], row["ranks"]) for row in rows))
    figure, axes = style.panels(len(groups), width=3.2, sharey=True)
    for axis, group in zip(axes, groups):
        _panel(axis, group, [row for row in rows if (row["source"], row["ranks"]) == group])
    axes[0].set_ylabel("first item / (latency + its transfer)")
    axes[0].set_yscale("log")
    axes[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].yaxis.set_minor_formatter(NullFormatter())
    style.legend(figure, axes[0], title="latency")
    style.save(figure, path, part)


def _panel(axis, group, rows):
    slots = sorted({row["slots"] for row in rows})
    for number, latency_ms in enumerate(sorted({row["latency_ms"] for row in rows})):
        line = sorted((row for row in rows if row["latency_ms"] == latency_ms),
                      key=lambda row: row["slots"])
        style.line(axis, [row["slots"] for row in line], [row["ratio"] for row in line], number,
                   f"{latency_ms:g} ms")
    style.goal(axis, goals.FIRST_ITEM, "goal")
    style.powers_of_two(axis, slots)
    axis.set_xlabel("slots of 1 MiB")
    axis.set_title(f"{group[0]}: {group[1]} rank{'s' if group[1] > 1 else ''}")
