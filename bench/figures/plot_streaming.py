#!/usr/bin/env python3
"""Draws what streaming.py has measured: SVG plots and streaming.md, tables with goals.

  bench/figures/plot_streaming.py bench/results/streaming.json docs/figures

Parts that are not in the file are left out. Needs matplotlib.
"""
import argparse
import json
import pathlib

import tables
from plots import first_item, grid, pairs, tails

PLOTS = {"grid": grid.draw, "tails": tails.draw, "disk": pairs.draw_disk, "http": pairs.draw_http,
         "first_item": first_item.draw}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path, help="the JSON")
    parser.add_argument("folder", type=pathlib.Path, help="for plots and tables")
    arguments = parser.parse_args()
    parts = json.loads(arguments.results.read_text(encoding="utf-8"))
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PLOTS.items():
        if name in parts:
            draw(parts[name], arguments.folder / f"streaming-{name.replace('_', '-')}.svg")
    (arguments.folder / "streaming.md").write_text(tables.text(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
