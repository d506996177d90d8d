#!/usr/bin/env python3
"""Shows files of results as tables, or draws one picture of them.

usage: report.py FILE... [--list NAME]
       report.py FILE... --x KEY --y KEY[,KEY...] [--by KEY] [--panel KEY] [--log x|y|xy] --out SVG

FILE: what measure.py, compare.py, or --json of any program here has written.
Each list of objects is a table; --list takes those whose name ends so. KEY: a column of a table.
A median stands with its quartiles in brackets. Pictures take matplotlib 3.7 or newer
(python3-matplotlib), and tables the standard library alone. Pages are written by people; which
figures they quote is in bench/summary.json.
"""
import argparse
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/figures"))

import table  # noqa: E402  after the folder is known


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--list", default="", metavar="NAME")
    parser.add_argument("--x", metavar="KEY")
    parser.add_argument("--y", type=lambda text: text.split(","), metavar="KEY[,KEY...]")
    parser.add_argument("--by", default="", metavar="KEY")
    parser.add_argument("--panel", default="", metavar="KEY")
    parser.add_argument("--log", default="", choices=("", "x", "y", "xy"))
    parser.add_argument("--out", type=pathlib.Path, metavar="SVG")
    options = parser.parse_args()
    if len({bool(options.x), bool(options.y), bool(options.out)}) > 1:
        parser.error("--x, --y and --out go together")
    return options


def draw(options, rows):
    for key in (options.x, *options.y, options.by, options.panel):
        if key and not any(key in row for row in rows):
            raise ValueError(f"no row has {key!r}; there are "
                             f"{', '.join(dict.fromkeys(key for row in rows for key in row))}")
    import plot  # which takes matplotlib
    plot.draw(rows, options.out, options.x, options.y, options.by, options.panel, options.log)


def main():
    options = parse_arguments()
    try:
        parts = [(path, json.loads(path.read_text(encoding="utf-8"))) for path in options.files]
        rows = [row for _, part in parts for name, found in table.lists(part)
                if name.endswith(options.list) for row in found]
        if not rows:
            raise ValueError(f"there is no list {options.list}".rstrip())
        if options.out:
            draw(options, rows)
            return
        for path, part in parts:
            print(f"# {path.name}\n\n" + "".join(f"* {line}\n" for line in table.head(part)))
            print(table.tables(part, options.list))
    except ImportError as error:
        sys.exit(f"report.py: {error}; pictures take python3-matplotlib")
    except (OSError, ValueError) as error:
        sys.exit(f"report.py: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
