"""One picture of the rows of a file of results: lines, or points where x has names."""
import os
import re

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  after the choice of how to draw
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: E402

import table  # noqa: E402

# Okabe and Ito's, told apart by the colour-blind as well. A dark page swallows the missing ones.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "^", "D", "v", "P")
GREY = "#808080"  # as far from white as from black: text, axes and lines of reference

plt.rcParams.update({
    "svg.hashsalt": "sluice", "svg.fonttype": "none", "font.family": "sans-serif",
    "font.size": 10, "text.parse_math": False, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "axes.grid.axis": "y",
    "grid.color": GREY, "grid.alpha": 0.25, "text.color": GREY, "axes.labelcolor": GREY,
    "axes.edgecolor": GREY, "xtick.color": GREY, "ytick.color": GREY, "axes.titlecolor": GREY,
    "axes.facecolor": "none", "figure.facecolor": "none", "savefig.facecolor": "none",
    "legend.frameon": False, "lines.linewidth": 1.5, "figure.constrained_layout.use": True})


def _points(rows, x, y):
    """(x, median, below, above) of the rows that have both."""
    for row in rows:
        value = row.get(y)
        if row.get(x) is None or value is None:
            continue
        median = value["median"] if table.is_spread(value) else value
        q1, q3 = table.quartiles(value) if table.is_spread(value) else (value, value)
        yield row[x], median, median - q1, q3 - median


def draw(rows, path, x, ys, by="", panel="", log=""):
    """`ys`: a line for each, and for each value of `by`. `log`: which axes are logarithmic."""
    panels = list(dict.fromkeys(row.get(panel) for row in rows))
    shared = os.path.commonprefix(ys).rpartition(".")[0] if len(ys) > 1 else ys[0]
    figure, axes = plt.subplots(1, len(panels), squeeze=False, sharey=True,
                                figsize=(4.6 * len(panels) + 2, 4))
    for axis, name in zip(axes[0], panels):
        here = [row for row in rows if row.get(panel) == name]
        order = list(dict.fromkeys(row[x] for row in here if row.get(x) is not None))
        named = any(isinstance(value, str) for value in order)
        number = 0
        for y in ys:
            for value in dict.fromkeys(row.get(by) for row in here):
                points = list(_points([row for row in here if row.get(by) == value], x, y))
                if not points:
                    continue
                own = y[len(shared):].strip(".")  # of the name
                label = ", ".join(str(word) for word in (own, value) if word not in ("", None))
                axis.errorbar([order.index(p[0]) if named else p[0] for p in points],
                              [p[1] for p in points],
                              yerr=[[max(0, p[side]) for p in points] for side in (2, 3)],
                              color=COLORS[number % 6], marker=MARKERS[number % 6], markersize=4,
                              linestyle="none" if named else "-", elinewidth=1,
                              label=label or y)
                number += 1
        if named:
            axis.set_xticks(range(len(order)), order, rotation=90, fontsize=8)
        axis.set_title("" if name is None else f"{panel} {name}")
        axis.set_xlabel(x)
        for letter in log:
            getattr(axis, f"set_{letter}scale")("log")
            ticks = getattr(axis, f"{letter}axis")
            ticks.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ticks.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            ticks.set_minor_formatter(NullFormatter())
    axes[0][0].set_ylabel(shared)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside right upper")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    path.write_text(compact(path.read_text(encoding="utf-8")), encoding="utf-8")


def compact(svg):
    """The same picture without a line per point: some 60 KB at most, and one line."""
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"(\d\.\d\d)\d+", r"\1", re.sub(r"\s*\n\s*", " ", svg))
    return re.sub(r"> +<", "><", svg).strip() + "\n"
