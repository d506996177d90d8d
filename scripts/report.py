#!/usr/bin/env python3
"""Writes the tables and plots of all pages out of bench/results.

usage: report.py [--results FOLDER]            every block and plot for which there are results
       report.py --check [--results FOLDER]    changes nothing; ends with 1 if a page says otherwise
       report.py --no-plots                    tables only, which takes the standard library alone
       report.py --json FILE... --page FILE    tables and plots of your own runs of sluice-sim

In a page, what stands between <!-- NAME --> and <!-- end NAME --> is replaced. Which page has which
blocks is in bench/figures/pages/book.py. Plots take matplotlib 3.7 or newer (python3-matplotlib).
scripts/measure.sh and scripts/large_meshes.sh measure; bench/figures/streaming.py does for streams.
"""
import argparse
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/figures"))

from pages import book, own  # noqa: E402  after the folder is known
from pages.results import Results  # noqa: E402


def check(results):
    faults = book.faults(ROOT, results)
    for fault in faults:
        print(f"report.py: {fault}", file=sys.stderr)
    if faults:
        print("report.py: run scripts/report.py, and look at what changes", file=sys.stderr)
        return 1
    pages = len(book.PAGES) + len(book.WHOLE)
    print(f"All blocks of {pages} pages are what {results.folder} says.")
    return 0


def write(results, plots):
    texts = {name: book.page_text(ROOT, name, results) for name in (*book.PAGES, *book.WHOLE)}
    for name, (old, new) in texts.items():
        if old is None:
            print(f"report.py: {name} is not there", file=sys.stderr)
        elif new != old:
            (ROOT / name).write_text(new, encoding="utf-8")
            print(name)
    if plots:
        from plots import all_of  # which takes matplotlib
        for name in all_of.draw(ROOT, results):
            print(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench/results")
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--no-plots", action="store_true", help="tables only")
    parser.add_argument("--json", nargs="+", type=pathlib.Path, help="files of sluice-sim's --json")
    parser.add_argument("--page", type=pathlib.Path, help="of your own runs")
    options = parser.parse_args()
    if bool(options.json) != bool(options.page):
        parser.error("--json and --page go together")
    if options.json and options.check:
        parser.error("--check is of the pages of this repository")
    try:
        if options.json:
            own.write(options.json, options.page)
            return 0
        results = Results(options.results)
        if options.check:
            return check(results)
        write(results, not options.no_plots)
    except ImportError as error:
        sys.exit(f"report.py: {error}; plots take python3-matplotlib, --no-plots does without")
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"report.py: {type(error).__name__}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
