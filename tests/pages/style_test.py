#!/usr/bin/env python3
"""Pages are short, their sentences too, and docs/README.md lists all of them.

usage: style_test.py REPOSITORY
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
WORDS_MAX = 30
# {page: most lines}; the others have PAGE_LINES.
LINES = {"README.md": 130, "docs/gate.md": 400, "docs/architecture.md": 400, "CHANGELOG.md": 10000}
PAGE_LINES = 250


def pages():
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in found}


def paragraphs(text):
    """The prose of a page: no code, tables, headings or comments; an item of a list for itself."""
    text = re.sub(r"```.*?```|<!--.*?-->", "\n\n", text, flags=re.DOTALL)
    found = [""]
    for line in text.splitlines():
        if re.match(r"\s*$|    |\||#", line):
            found.append("")
        elif re.match(r"\s*([*-]|\d+\.)\s", line):
            found.append(re.sub(r"^\s*([*-]|\d+\.)\s+", "", line))
        else:
            found[-1] += " " + line.strip()
    return [each for each in found if each.strip()]


def long_sentences(text, words_max=WORDS_MAX):
    """Sentences of a page with more words than that. Code and links count as one word."""
    found = []
    for paragraph in paragraphs(text):
        plain = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "Code", paragraph))
        for sentence in re.split(r"(?<=[.!?:;])\**\s+(?=[A-Z\"(*\[])| · ", plain):
            if len(re.findall(r"\w[\w'./-]*", sentence)) > words_max:
                found.append(sentence.strip())
    return found


class Style(unittest.TestCase):
    def test_pages_are_short(self):
        for name, text in pages().items():
            with self.subTest(page=name):
                self.assertLessEqual(len(text.splitlines()), LINES.get(name, PAGE_LINES))

    def test_sentences_are_short(self):
        for name, text in pages().items():
            with self.subTest(page=name):
                self.assertEqual(long_sentences(text), [])

    def test_the_index_has_all_pages(self):
        index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
        for path in sorted((ROOT / "docs").rglob("*.md")):
            name = path.relative_to(ROOT / "docs").as_posix()
            if name != "README.md":
                self.assertIn(f"({name})", index)

    def test_links_lead_somewhere(self):
        for name, text in pages().items():
            for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", text):
                with self.subTest(page=name):
                    self.assertTrue((ROOT / name).parent.joinpath(target).exists(), target)

    def test_headings_that_are_linked_exist(self):
        every = pages()
        for name, text in every.items():
            for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", text):
                page = name if not target else str(
                    (ROOT / name).parent.joinpath(target).resolve().relative_to(ROOT))
                if page not in every:
                    continue
                titles = re.findall(r"^#+ (.+)$", every[page], re.M)
                anchors = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
                           for title in titles]
                with self.subTest(page=name):
                    self.assertIn(anchor, anchors)


class Controls(unittest.TestCase):
    """A page that breaks a rule is found."""

    def test_a_long_sentence(self):
        text = "Short one. " + "word " * 31 + "end.\n\n    " + "code " * 40 + "\n\n* Short.\n"
        self.assertEqual(len(long_sentences(text)), 1)
        self.assertEqual(long_sentences("word " * 29 + "end.\n"), [])


if __name__ == "__main__":
    unittest.main()
