"""Bytes per second of each way to read, a group of bars for each latency."""
from plots import style


def draw(data, path):
    """`data`: {latency in ms: {way: spread of bytes per second}}"""
    delays = [ms for ms in data if ms > 0]
    ways = list(dict.fromkeys(way for ms in delays for way in data[ms]))
    figure, (axis,) = style.panels(1, width=7.4, height=3.4)
    width = 0.8 / len(ways)
    for number, way in enumerate(ways):
        spreads = [{key: data[ms][way][key] * 1e-9 for key in ("median", "q1", "q3")}
                   for ms in delays]
        places = [place + (number - (len(ways) - 1) / 2) * width for place in range(len(delays))]
        axis.bar(places, style.medians(spreads), width * 0.9, color=style.COLORS[number],
                 yerr=style.whiskers(spreads), ecolor=style.GREY, capsize=2, label=way)
    axis.set_xticks(range(len(delays)), [f"{ms:g} ms" for ms in delays])
    axis.set_xlabel("latency of each read")
    axis.set_ylabel("GB/s")
    style.legend(figure, axis)
    style.save(figure, path, data)
