"""T/T* over bytes in flight, a line for each latency, a panel for each source."""
from plots import style


def draw(part, path):
    rows = [row for row in part["summary"] if not row["ample"] and row["latency_ms"] > 0]
    sources = sorted({row["source"] for row in rows}, reverse=True)
    figure, axes = style.panels(len(sources), sharey=True)
    for axis, source in zip(axes, sources):
        _panel(axis, source, [row for row in rows if row["source"] == source])
    axes[0].set_ylabel("throughput / bound  (T / T*)")
    axes[0].set_ylim(0, max(1.1, axes[0].get_ylim()[1]))
    style.legend(figure, axes[0], title="latency")
    style.save(figure, path, part)


def _panel(axis, source, rows):
    windows = sorted({row["window_mib"] for row in rows})
    for number, latency_ms in enumerate(sorted({row["latency_ms"] for row in rows})):
        line = sorted((row for row in rows if row["latency_ms"] == latency_ms),
                      key=lambda row: row["window_mib"])
        style.line(axis, [row["window_mib"] for row in line],
                   [row["steady_ratio"] for row in line], number, f"{latency_ms:g} ms")
    style.powers_of_two(axis, windows)
    axis.axhline(1, color=style.GREY, linewidth=1, zorder=1)
    axis.set_xlabel("in flight, MiB")
    axis.set_title(f"{source}:")
