"""A dot for each other way in each of the 24 redistributions; a tick for the bound."""
from pages.cases import MEMORIES
from plots import style


def draw(data, path):
    """`data`: {memory: cases as pages/cases.py has them}"""
    shown = [(words, data[memory]) for memory, words in MEMORIES if data.get(memory)]
    names = [case["name"].removeprefix("etha-") for case in shown[0][1]]
    ways = sorted({way for _, cases in shown for case in cases for way in case["ways"]})
    figure, axes = style.panels(len(shown), width=4.8, height=6.4, sharey=True)
    for axis, (words, cases) in zip(axes, shown):
        axis.set_title(words, fontsize=10, loc="left")
        for place, case in enumerate(cases):
            for way, entry in case["ways"].items():
                number = ways.index(way) % len(style.COLORS)
                axis.plot(entry["median"], place, linestyle="", color=style.COLORS[number],
                          marker=style.MARKERS[number], markersize=5,
                          label=way if place == 0 else None)
            axis.plot(case["bound"]["median"], place, linestyle="", color=style.GREY, marker="|",
                      markersize=11, markeredgewidth=2, label="bound" if place == 0 else None)
        axis.axvline(1, color=style.GREY, linewidth=1.2)
        axis.set_xscale("log", base=2)
        low = min([0.9] + [case["bound"]["median"] for case in cases])
        high = max(entry["median"] for case in cases for entry in case["ways"].values())
        style.log_ticks(axis.xaxis, [tick for tick in (0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4, 8, 16, 32)
                                     if low / 1.2 <= tick <= 1.3 * high],
                        lambda value: f"{value:g}")
        axis.set_xlim(low / 1.2, high * 1.3)
        axis.grid(True, axis="both")
        axis.set_xlabel("time / Sluice's")
    axes[0].set_yticks(range(len(names)), names, fontsize=8)
    axes[0].invert_yaxis()
    labels = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            labels.setdefault(label, handle)
    figure.legend(labels.values(), labels.keys(), loc="outside lower center", fontsize=9,
                  ncols=min(4, len(labels)))
    style.save(figure, path, data)
