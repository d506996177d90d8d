#!/usr/bin/env python3
"""Shows files of results: as one HTML page, as tables, or as one picture.

usage: report.py FILE... -o PAGE.html [--title TEXT]
       report.py FILE... [--list NAME]
       report.py FILE... --x KEY --y KEY[,KEY...] [--by KEY] [--panel KEY] [--log x|y|xy] -o SVG

FILE: what --json of any program here, measure.py or compare.py has written; for a page also what
--trace has. A page is one file that any browser opens, without a server. It has the table, bars
beside the other ways, the gate over time (of results made with --trace, and of traces), and routes
(of --plan-only, and of traces). Pages take matplotlib 3.7 and Jinja2, pictures matplotlib, and
tables the standard library alone.

Tables are Markdown: each list of objects is one, and --list takes those whose name ends so. KEY: a
column of a table. A median stands with its quartiles in brackets. `sluice-bench report` starts this
program. Exit codes: 1 a file cannot be read or shown, 2 bad usage.
"""
import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "bench/figures")]  # installed, and in the tree

import table  # noqa: E402  after the folders are known

NEEDS = "pip install 'matplotlib>=3.7' jinja2"


def parse_arguments():
    parser = argparse.ArgumentParser(prog="report", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    parser.add_argument("-o", "--out", type=pathlib.Path, metavar="PAGE.html|SVG")
    parser.add_argument("--title", default="", metavar="TEXT")
    parser.add_argument("--list", default="", metavar="NAME")
    parser.add_argument("--x", metavar="KEY")
    parser.add_argument("--y", type=lambda text: text.split(","), metavar="KEY[,KEY...]")
    parser.add_argument("--by", default="", metavar="KEY")
    parser.add_argument("--panel", default="", metavar="KEY")
    parser.add_argument("--log", default="", choices=("", "x", "y", "xy"))
    options = parser.parse_args()
    if options.out and options.out.suffix in (".html", ".htm"):
        if options.x or options.y:
            parser.error("--x and --y are of pictures: -o FILE.svg")
    elif len({bool(options.x), bool(options.y), bool(options.out)}) > 1:
        parser.error("a page is -o FILE.html; a picture is -o FILE.svg with --x and --y")
    return options


def draw(options, rows):
    for key in (options.x, *options.y, options.by, options.panel):
        if key and not any(key in row for row in rows):
            raise ValueError(f"no row has {key!r}; there are "
                             f"{', '.join(dict.fromkeys(key for row in rows for key in row))}")
    import plot  # which takes matplotlib
    plot.draw(rows, options.out, options.x, options.y, options.by, options.panel, options.log)


def read(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (RecursionError, ValueError) as error:
        raise ValueError(f"{path} is no JSON: {error}") from error


def main():
    options = parse_arguments()
    try:
        parts = [(path, read(path)) for path in options.files]
        if options.out and not options.x:
            import page  # which takes matplotlib and Jinja2
            options.out.write_text(page.page([(path.name, part) for path, part in parts],
                                             options.title), encoding="utf-8")
            print(f"wrote {options.out}")
            return
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
        sys.exit(f"report: {error}. Pages and pictures need packages of Python: {NEEDS}")
    except (OSError, ValueError) as error:
        sys.exit(f"report: {error}")
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError) as error:
        names = ", ".join(str(path) for path in options.files)
        sys.exit(f"report: {names}: no file of results, or a damaged one ({error!r:.200})")


if __name__ == "__main__":
    main()
