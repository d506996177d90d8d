#!/usr/bin/env python3
"""Tests tools/report/report.py: pages and tables of results that are made up, and its errors.

usage: report_test.py REPOSITORY
"""
import html.parser
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
SPREAD = {"median": 2.0, "q1": 1.25, "q3": 12345.6}
MADE = {"head": {"date": "2026-01-01", "command": "a | b"}, "kind": "made",
        "parts": {"summary": [{"way": "x", "same": 1, "time": {"ours": SPREAD}},
                              {"way": "y", "same": 1, "time": {"ours": SPREAD}, "bytes": 4096}]}}


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "matplotlib.py").write_text("raise ImportError('not here')\n",
                                                   encoding="utf-8")
        self.file = self.folder / "made.json"
        self.file.write_text(json.dumps(MADE), encoding="utf-8")

    def report(self, *flags):
        return subprocess.run(
            [sys.executable, str(ROOT / "tools/report/report.py"), *map(str, flags)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(self.folder)})

    def test_a_table(self):
        done = self.report(self.file)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("* command: a | b\n", done.stdout)
        self.assertIn("## parts.summary\n\nsame 1, time.ours 2 (1.250-12,346)\n\n"
                      "| way | bytes |\n|---|---|\n| x |  |\n| y | 4,096 |", done.stdout)

    def test_a_list_that_is_not_there(self):
        done = self.report(self.file, "--list", "other")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("no list other", done.stdout)

    def test_a_column_that_is_not_there(self):
        done = self.report(self.file, "--x", "way", "--y", "speed", "--out", self.folder / "a.svg")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("no row has 'speed'; there are way, same, time.ours, bytes", done.stdout)

    def test_pictures_without_matplotlib_say_what_is_missing(self):
        done = self.report(self.file, "--x", "way", "--y", "time.ours", "--out",
                           self.folder / "a.svg")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("pip install 'matplotlib>=3.7' jinja2", done.stdout)

    def test_a_page_without_packages_says_so_in_one_line(self):
        done = self.report(self.file, "-o", self.folder / "a.html")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(done.stdout.count("\n"), 1, done.stdout)
        self.assertIn("pip install 'matplotlib>=3.7' jinja2", done.stdout)
        self.assertFalse((self.folder / "a.html").exists())

    def test_what_is_no_json_is_named(self):
        self.file.write_text("no", encoding="utf-8")
        done = self.report(self.file)
        self.assertEqual((done.returncode, done.stdout.count("\n")), (1, 1), done.stdout)
        self.assertIn("made.json is no JSON", done.stdout)


class Picture(unittest.TestCase):
    def test_it_is_drawn(self):
        sys.path.insert(0, str(ROOT / "bench/figures"))
        try:
            import plot
        except ImportError as error:
            self.skipTest(f"pictures take matplotlib: {error}")
        import table
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "made.svg")
            (_, rows), = table.lists(MADE)
            plot.draw(rows, path, "way", ["time.ours"])
            self.assertEqual(path.read_text(encoding="utf-8").count("\n"), 1)


def measured(budget, median):
    return {"case": f"inline/budget-{budget}", "payload_bytes": 786432, "wrong": 0,
            "time_us": {"min": 1.5, "median": median, "max": 9e3}, "gb_per_s": 0.125,
            "peak": {"buckets": 7 - budget, "bytes": 1 << 20}, "limit": {"buckets": budget},
            "peak_without_budget": {"buckets": 7, "bytes": 3 << 20}, "wait_share": 0.25,
            "baselines": {"isend": {"time_us": 2 * median, "ratio": 2.0, "wrong": 0}},
            "gate": {"rank": 1, "us": [0.0, 5.0, 9.0], "buckets": [1, 7 - budget, 0],
                     "bytes": [64, 1 << 20, 0]}}


def span(pid, stage, ts, **args):
    return {"ph": "X", "cat": "bucket", "pid": pid, "tid": 1, "name": stage, "ts": ts, "dur": 2.0,
            "args": {"run": 4, "bytes": 4096, "stage": stage, **args}}


RESULTS = {"version": "9.8.7", "built_with": "a compiler", "config": {"world": 2, "hosts": 1},
           "results": [measured(0, 1234.5), measured(2, 2345.75)],
           "errors": [{"case": "other", "message": "<b>is lost</b>"}]}
PLAN = {"version": "9.8.7", "config": {}, "errors": [],
        "results": [{"case": "inline", "node_bytes": 512, "hops_max": 2, "routes": [
            {"src": 0, "dst": 1, "bytes": 100, "hop": 0},
            {"src": 0, "dst": 1, "bytes": 28, "hop": 1},
            {"src": 1, "dst": 2, "bytes": 64, "hop": 1}]}]}
TRACE = {"traceEvents": [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "rank 0 (trainer 0)"}},
    {"ph": "C", "pid": 1, "name": "buckets in flight", "ts": 10.0, "args": {"buckets": 3}},
    {"ph": "C", "pid": 1, "name": "bytes in flight", "ts": 10.0, "args": {"bytes": 4096}},
    span(1, "move", 9.0, tensor="early", tensors=1),
    span(2, "move", 11.0, tensor="late", tensors=1, **{"from": 0}),
    span(1, "move", 99.0, tensor="of a later run", tensors=1, run=5)]}


class Cells(html.parser.HTMLParser):
    """The values of a page's tables, by what they are, and its words."""

    def __init__(self, text):
        super().__init__()
        self.values, self.words, self.tags = [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        if "data-value" in attributes:
            self.values.append((attributes["data-key"], attributes["data-value"]))

    def handle_data(self, data):
        self.words += data


class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        try:
            import jinja2, matplotlib  # noqa: E401, F401
        except ImportError as error:
            self.skipTest(f"pages take matplotlib and Jinja2: {error}")

    def page(self, **files):
        paths = []
        for name, part in files.items():
            paths.append(self.folder / f"{name}.json")
            paths[-1].write_text(json.dumps(part), encoding="utf-8")
        self.out = self.folder / "page.html"
        return subprocess.run(
            [sys.executable, str(ROOT / "tools/report/report.py"), *map(str, paths), "-o",
             str(self.out)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False)

    def shown(self):
        """The page as a browser has it, where there is one; else as it was written."""
        text = self.out.read_text(encoding="utf-8")
        browser = shutil.which("chromium") or shutil.which("google-chrome")
        if browser is None:
            return Cells(text)
        opened = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
             f"--user-data-dir={self.folder / 'browser'}", self.out.as_uri()],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        return Cells(opened.stdout)

    def test_its_numbers_are_the_files(self):
        done = self.page(results=RESULTS, plan=PLAN, trace=TRACE)
        self.assertEqual(done.returncode, 0, done.stdout)
        cells = self.shown()
        for row in RESULTS["results"]:
            for key, value in (("case", row["case"]), ("time_us.median", row["time_us"]["median"]),
                               ("payload_bytes", 786432), ("gb_per_s", 0.125), ("wrong", 0),
                               ("baselines.isend.time_us", row["baselines"]["isend"]["time_us"]),
                               ("peak.bytes", 1 << 20), ("limit.buckets", row["limit"]["buckets"]),
                               ("wait_share", 0.25), ("peak_without_budget.bytes", 3 << 20)):
                self.assertIn((key, str(value)), cells.values)
        for route, moved in (("0-1", 128), ("1-2", 64), ("0-1", 4096)):
            at = [i for i, cell in enumerate(cells.values) if cell == ("route", route)]
            self.assertIn(("bytes", str(moved)), [cells.values[i + 1] for i in at])
        tensors = [value for key, value in cells.values if key == "tensor"]
        self.assertEqual(tensors, ["late", "early"])
        for words in ("Sluice 9.8.7", "other: <b>is lost</b>", "The gate over time", "buckets",
                      "Time of a run", "Who sends what to whom", "1.234 ms", "isend"):
            self.assertIn(words, cells.words)
        # Times of a run, staging, two gates, two of routes.
        self.assertEqual(cells.tags.count("svg"), 6)

    def test_nothing_is_fetched_and_text_takes_the_pages_colour(self):
        self.assertEqual(self.page(results=RESULTS).returncode, 0)
        text = self.out.read_text(encoding="utf-8")
        for outside in ("<script", "<link", "src=", "@import", "url(http"):
            self.assertNotIn(outside, text)
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertIn("currentColor", text)
        self.assertNotIn("#010203", text)

    def test_what_has_no_rows_is_refused(self):
        for part in ({"a": 1}, [], {"traceEvents": []}):
            done = self.page(empty=part)
            self.assertEqual((done.returncode, done.stdout.count("\n")), (1, 1), done.stdout)
            self.assertIn("empty.json", done.stdout)


if __name__ == "__main__":
    unittest.main()
