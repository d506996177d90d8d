"""How all plots look, and how they are written: small files, the same for the same numbers."""
import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  after the choice of how to draw

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # told apart by the colour-blind as well
MARKERS = ("o", "s", "^", "D")

plt.rcParams.update({
    "svg.hashsalt": "sluice", "svg.fonttype": "none", "font.family": "sans-serif",
    "font.size": 10, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "axes.grid.axis": "y", "grid.color": "#dddddd",
    "legend.frameon": False, "lines.linewidth": 1.5, "figure.constrained_layout.use": True})


def panels(count, width=4.6, height=3.4, **more):
    """A figure of panels next to each other, and the panels."""
    figure, axes = plt.subplots(1, count, figsize=(width * count, height), squeeze=False, **more)
    return figure, axes[0]


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
    draw(value, color="#555555", linestyle="--", linewidth=1, label=text, zorder=1)


def powers_of_two(axis, values):
    axis.set_xscale("log", base=2)
    axis.set_xticks(values, [str(value) for value in values])
    axis.minorticks_off()


def save(figure, path):
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)
