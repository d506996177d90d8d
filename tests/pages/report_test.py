#!/usr/bin/env python3
"""Tests scripts/measure/report.py: tables of results that are made up, and its errors.

usage: report_test.py REPOSITORY
"""
import json
import os
import pathlib
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
            [sys.executable, str(ROOT / "scripts/measure/report.py"), *map(str, flags)],
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
        self.assertIn("python3-matplotlib", done.stdout)


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


if __name__ == "__main__":
    unittest.main()
