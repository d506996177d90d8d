#!/usr/bin/env python3
"""Pages say what bench/results says, and a page that does not is found.

usage: pages_test.py REPOSITORY
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
HEAD = {"machine", "date", "commit", "command", "rounds"}
BLOCK = re.compile(r"<!-- ([\w ]+) -->\n.*?<!-- end \1 -->", re.DOTALL)
# A figure in prose that a result may contradict one day.
FIGURE = re.compile(r"\d+\.\d+|\b\d+(?:\.\d+)? ?(?:%|ms\b|us\b|[GM]B/s|times\b)")


def report(root, *flags):
    """Runs report.py where there is no matplotlib."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "matplotlib.py").write_text("raise ImportError('not here')\n",
                                                         encoding="utf-8")
        return subprocess.run([sys.executable, str(root / "scripts/report.py"), *flags],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, env={**os.environ, "PYTHONPATH": folder})


class Repository(unittest.TestCase):
    """What is there now."""

    def test_pages_are_what_the_results_say(self):
        done = report(ROOT, "--check")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_no_figure_stands_outside_of_blocks(self):
        text = BLOCK.sub("", (ROOT / "docs/performance.md").read_text(encoding="utf-8"))
        for line in text.splitlines():
            if not line.startswith("    "):
                prose = re.sub(r"`[^`]*`|\([^)]*\)", "", line)
                self.assertIsNone(FIGURE.search(prose), f"a figure of no result: {line}")

    def test_pages_are_short(self):
        for page, most in (("performance.md", 150), ("large-meshes.md", 250),
                           ("streaming.md", 250)):
            lines = (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines()
            self.assertLessEqual(len(lines), most, page)

    def test_results_say_where_they_are_from(self):
        for path in sorted((ROOT / "bench/results").glob("*.json")):
            if path.name == "streaming.json":  # each of its parts does
                continue
            found = json.loads(path.read_text(encoding="utf-8"))
            head = found.get("head", found)
            self.assertLessEqual(HEAD, set(head), path.name)
            self.assertFalse(head.get("quick"), f"{path.name} is of a quick run")


class Changed(unittest.TestCase):
    """A copy in which one thing is changed."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for part in ("docs", "bench/figures", "bench/results"):
            shutil.copytree(ROOT / part, self.root / part,
                            ignore=shutil.ignore_patterns("__pycache__"))
        (self.root / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/report.py", self.root / "scripts")
        shutil.copy(ROOT / "README.md", self.root)
        self.assertEqual(self.check().returncode, 0, self.check().stdout)

    def check(self):
        return report(self.root, "--check")

    def edit(self, name, change):
        path = self.root / name
        old = path.read_text(encoding="utf-8")
        new = change(old)
        self.assertNotEqual(old, new, f"nothing to change in {name}")
        path.write_text(new, encoding="utf-8")

    def assert_found(self, *words):
        done = self.check()
        self.assertEqual(done.returncode, 1, done.stdout)
        for word in words:
            self.assertIn(word, done.stdout)

    def test_a_digit_in_a_page(self):
        self.edit("docs/large-meshes.md", lambda text: text.replace("| 904 |", "| 804 |"))
        self.assert_found("docs/large-meshes.md", "'models'", "804", "904")

    def test_a_result(self):
        self.edit("bench/results/large-meshes/deepseek-v3.json",
                  lambda text: text.replace('"max": 904', '"max": 905'))
        self.assert_found("'models'", "budgets.svg was drawn from other results")
        done = report(self.root, "--no-plots")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("| 905 |", (self.root / "docs/large-meshes.md").read_text(encoding="utf-8"))

    def test_a_block_that_is_gone(self):
        self.edit("docs/performance.md",
                  lambda text: text.replace("<!-- end loses -->", ""))
        self.assert_found("docs/performance.md has no block 'loses'")

    def test_a_picture_that_is_gone(self):
        (self.root / "docs/images/peaks.svg").unlink()
        self.assert_found("peaks.svg is not there", "large-meshes.md shows images/peaks.svg")

    def test_a_result_that_is_gone(self):
        """Its rows are left out: a page that still has them is found."""
        (self.root / "bench/results/streaming.json").unlink()
        self.assert_found("docs/streaming.md", "'streaming'")

    def test_plots_without_matplotlib_say_what_is_missing(self):
        done = report(self.root)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("python3-matplotlib", done.stdout)


if __name__ == "__main__":
    unittest.main()
