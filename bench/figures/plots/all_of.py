"""Draws the plots of all pages for which there are results."""
from pages import book
from plots import cases, first_item, grid, latency, meshes, pairs, sizes, slots, squares, tails
from plots import waves

DRAW = {"docs/images/peaks.svg": meshes.draw_peaks, "docs/images/budgets.svg": meshes.draw_budgets,
        "docs/images/cases.svg": cases.draw, "docs/images/sizes.svg": sizes.draw,
        "docs/images/squares.svg": squares.draw,
        "docs/images/latency.svg": latency.draw,
        "docs/images/waves.svg": waves.draw, "docs/images/slots.svg": slots.draw,
        "docs/figures/streaming-grid.svg": grid.draw,
        "docs/figures/streaming-tails.svg": tails.draw,
        "docs/figures/streaming-disk.svg": pairs.draw_disk,
        "docs/figures/streaming-http.svg": pairs.draw_http,
        "docs/figures/streaming-first-item.svg": first_item.draw}


def draw(root, results):
    """The names of what was drawn."""
    for name, shows in book.PLOTS.items():
        data = shows(results)
        if data:
            DRAW[name](data, root / name)
            yield name
