"""What slow reads leave of the throughput, with hedges and without."""
import goals
from plots import style


def draw(part, path):
    rows = part["summary"]
    sources = list(dict.fromkeys(row["source"] for row in rows))
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    figure, (axis,) = style.panels(1, width=5.6)
    width = 0.8 / len(settings)
    for number, setting in enumerate(settings):
        spreads = [row["ratio"] for row in rows if row["setting"] == setting]
        places = [place + (number - (len(settings) - 1) / 2) * width
                  for place in range(len(sources))]
        axis.bar(places, style.medians(spreads), width * 0.9, color=style.COLORS[number],
                 yerr=style.whiskers(spreads), ecolor=style.GREY, capsize=2, label=setting)
    style.goal(axis, goals.HEDGED, "goal, hedged")
    axis.set_xticks(range(len(sources)), [f"{source}:" for source in sources])
    axis.set_ylabel("throughput / untailed")
    style.legend(figure, axis)
    style.save(figure, path, part)
