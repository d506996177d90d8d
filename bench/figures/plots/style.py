"""How all plots look, on light pages and dark ones, and how they are written: the same for the same
numbers."""
import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  after the choice of how to draw
from matplotlib.ticker import FuncFormatter, NullFormatter  # noqa: E402

import fingerprint  # noqa: E402

# Okabe and Ito's, told apart by the colour-blind as well. A dark page swallows the missing ones.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "^", "D", "v", "P")
GREY = "#808080"  # as far from white as from black: text, axes and lines of reference

plt.rcParams.update({
    "svg.hashsalt": "sluice", "svg.fonttype": "none", "font.family": "sans-serif",
    "font.size": 10, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "axes.grid.axis": "y",
    "grid.color": GREY, "grid.alpha": 0.25, "text.color": GREY, "axes.labelcolor": GREY,
    "axes.edgecolor": GREY, "xtick.color": GREY, "ytick.color": GREY, "axes.titlecolor": GREY,
    "axes.facecolor": "none", "figure.facecolor": "none", "savefig.facecolor": "none",
    "savefig.transparent": True,
    "legend.frameon": False, "lines.linewidth": 1.5, "figure.constrained_layout.use": True})


def panels(count, width=4.6, height=3.4, **more):
    """A figure of panels next to each other, and the panels."""
    figure, axes = plt.subplots(1, count, figsize=(width * count, height), squeeze=False, **more)
    return figure, axes[0]


def grid(count, columns, width=4.6, height=3.1, **more):
    """The same in rows of so many columns; those that are too many are empty."""
    rows = -(-count // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(width * columns, height * rows),
                                squeeze=False, **more)
    every = [axis for row in axes for axis in row]
    for axis in every[count:]:
        axis.set_axis_off()
    return figure, every[:count]


def legend(figure, axis, **more):
    """Beside the panels, the goal last."""
    handles, labels = axis.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda place: labels[place].startswith("goal"))
    figure.legend([handles[place] for place in order], [labels[place] for place in order],
                  loc="outside right upper", **more)


def whiskers(spreads):
    """For yerr or xerr: from the quartiles to the median."""
    return [[s["median"] - s["q1"] for s in spreads], [s["q3"] - s["median"] for s in spreads]]


def medians(spreads):
    return [s["median"] for s in spreads]


def line(axis, x, spreads, number, label):
    """Medians joined by a line, with quartiles."""
    axis.errorbar(x, medians(spreads), yerr=whiskers(spreads), color=COLORS[number],
                  marker=MARKERS[number], markersize=5, capsize=2, elinewidth=1, label=label)


def goal(axis, value, text, along="x"):
    """A line at the goal."""
    draw = axis.axhline if along == "x" else axis.axvline
    draw(value, color=GREY, linestyle="--", linewidth=1, label=text, zorder=1)


def label_end(axis, x, y, text, number):
    """Names a line where it ends."""
    axis.annotate(text, (x, y), textcoords="offset points", xytext=(2, 7), ha="right",
                  color=COLORS[number], fontsize=9)


def powers_of_two(axis, values):
    axis.set_xscale("log", base=2)
    axis.set_xticks(values, [str(value) for value in values])
    axis.minorticks_off()


def log_ticks(axis, ticks, name=lambda value: f"{value:,.0f}"):
    """Of one axis with a logarithmic scale: these ticks, with these names."""
    axis.set_ticks(ticks)
    axis.set_major_formatter(FuncFormatter(lambda value, _: name(value)))
    axis.set_minor_formatter(NullFormatter())


def save(figure, path, data=None):
    metadata = {"Date": None, "Creator": None}
    if data is not None:
        metadata["Description"] = fingerprint.note(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata=metadata)
    plt.close(figure)
