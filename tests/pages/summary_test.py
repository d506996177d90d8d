#!/usr/bin/env python3
"""Pages quote the figures of bench/summary.json, and a page that does not is found.

usage: summary_test.py REPOSITORY
"""
import json
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
RUN = {"command", "machine", "commit", "date", "rounds"}
# A median with its quartiles or its range, which only a measurement gives.
SPREAD = re.compile(r"\d[\d.,]* \(\d[\d.,]*-\d[\d.,]*\)")
OLD = "docs/notes.md"  # figures of former machines and programs, as they were written then
PICTURE_BYTES, PICTURE_LINES = 60_000, 100
CAST_BYTES, CAST_LINES = 300_000, 300  # of cast.svg, which moves


def pages():
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
            for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))}


def paragraphs(text):
    """Rows of tables and items of lists by themselves, and other prose by paragraphs."""
    found = [""]
    for line in text.splitlines():
        if not line.strip() or re.match(r"\||#|\s*[*-] |    ", line):
            found.append("")
        found[-1] += " " + line.strip()
    return found


def holds(text, value):
    """Whether the text has the value, and not as a part of a longer number."""
    return re.search(rf"(?<![\d.,]){re.escape(value)}(?![\d]|[.,]\d)", text) is not None


def faults(summary, texts):
    """What pages and summary say otherwise than each other; a sentence each."""
    known = {name: "" for name in texts}
    used = set()
    for figure in summary["figures"]:
        used.add(figure["run"])
        for page in figure["pages"]:
            known[page] = known.get(page, "") + "\n" + "\n".join(figure["values"])
            if not any(all(holds(part, value) for value in figure["values"])
                       for part in paragraphs(texts.get(page, ""))):
                yield f"{page} does not say {figure['values']} of '{figure['what']}'"
    for name in used ^ set(summary["runs"]):
        yield f"the run '{name}' is not told, or no figure is of it"
    for page, text in texts.items():
        for value in SPREAD.findall(text) if page != OLD else ():
            if value not in known[page]:
                yield f"{page} says {value}, which is no figure of the summary"


class Repository(unittest.TestCase):
    """The pages and the summary as they are."""

    def setUp(self):
        self.summary = json.loads((ROOT / "bench/summary.json").read_text(encoding="utf-8"))

    def test_pages_and_summary_say_the_same(self):
        self.assertEqual(list(faults(self.summary, pages())), [])

    def test_runs_say_where_they_are_from(self):
        for name, run in self.summary["runs"].items():
            self.assertEqual(set(run), RUN, name)
            self.assertIn(run["machine"], self.summary["machines"], name)
            self.assertRegex(run["date"], r"^\d{4}-\d\d-\d\d$", name)

    def test_pictures_are_small_and_shown(self):
        shown = "\n".join(pages().values())
        for path in (ROOT / "docs/images").iterdir():
            data = path.read_bytes()
            is_cast = path.name == "cast.svg"
            self.assertLessEqual(len(data), CAST_BYTES if is_cast else PICTURE_BYTES, path.name)
            if path.suffix == ".svg":
                self.assertLessEqual(data.count(b"\n"), CAST_LINES if is_cast else PICTURE_LINES,
                                     path.name)
            self.assertIn(f"images/{path.name}", shown)


class Controls(unittest.TestCase):
    """What is wrong is found."""

    PAGE = "docs/a.md"
    SUMMARY = {"runs": {"one": {}}, "figures": [
        {"run": "one", "what": "a", "values": ["1.5 (1.2-1.9)", "904"], "pages": [PAGE]}]}

    def found(self, text, **changes):
        return list(faults({**self.SUMMARY, **changes}, {self.PAGE: text}))

    def test_the_same(self):
        self.assertEqual(self.found("| a | 1.5 (1.2-1.9) | 904 |\n"), [])
        self.assertEqual(self.found("Takes 1.5 (1.2-1.9) ms,\nwith 904 of them.\n"), [])

    def test_another_digit(self):
        self.assertEqual(len(self.found("| a | 1.5 (1.2-1.9) | 9,904 |\n")), 1)
        self.assertEqual(len(self.found("| a | 1.5 (1.2-1.8) | 904 |\n")), 2)

    def test_values_of_two_rows(self):
        self.assertEqual(len(self.found("| a | 1.5 (1.2-1.9) |\n| b | 904 |\n")), 1)

    def test_a_figure_of_nowhere(self):
        self.assertEqual(len(self.found("* 1.5 (1.2-1.9) of 904\n* and 3 (2-4)\n")), 1)

    def test_a_run_that_nobody_knows(self):
        self.assertEqual(len(self.found("1.5 (1.2-1.9), 904", runs={"one": {}, "two": {}})), 1)
        self.assertEqual(len(self.found("1.5 (1.2-1.9), 904", runs={})), 1)


if __name__ == "__main__":
    unittest.main()
