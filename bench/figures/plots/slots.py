"""Throughput of a stream against its slots, a line for each latency; what they allow beside it."""
import bound
from plots import style


def draw(data, path):
    """`data`: {base, item_bytes, lines} as pages/waves.py has them, in GB/s"""
    figure, (axis,) = style.panels(1, width=6.4, height=3.6)
    lines = data["lines"]
    slots = sorted({point["slots"] for point in lines})
    for number, latency_ms in enumerate(sorted({point["latency_ms"] for point in lines})):
        points = sorted((point for point in lines if point["latency_ms"] == latency_ms),
                        key=lambda point: point["slots"])
        axis.plot(slots, [1e-9 * bound.throughput(
            1e9 * data["base"]["median"], count * data["item_bytes"], latency_ms * 1e-3,
            data["item_bytes"]) for count in slots], color=style.GREY, linewidth=1, zorder=1)
        style.line(axis, [point["slots"] for point in points], points, number,
                   f"{latency_ms:g} ms")
    style.goal(axis, data["base"]["median"], "without latency")
    style.powers_of_two(axis, slots)
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter("{x:g}")
    axis.set_xlabel("slots of 1 MiB; grey: what they allow")
    axis.set_ylabel("GB/s")
    style.legend(figure, axis, title="latency")
    style.save(figure, path, data)
