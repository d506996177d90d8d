"""The faults of scripts/mutants.py: reads the lists of scripts/mutants, and checks them."""
import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
LISTS = ROOT / "scripts/mutants"
PRODUCT = ("src/", "include/", "python/sluice/", "python/src/")
FIELDS = ("file", "harm", "tests", "pytest")
HEAD = re.compile(r"^== (\w+)$", re.MULTILINE)
FIELD = re.compile(r"^(\w+): (.*(?:\n  .*)*)", re.MULTILINE)
BODY = re.compile(r"(?P<fields>.*?\n)--- old\n(?P<old>.*?)\n--- new\n(?:(?P<new>.*)\n)?---\s*",
                  re.DOTALL)


class ListError(Exception):
    """The list is wrong, or one of its faults cannot be built or tried."""


@dataclasses.dataclass
class Fault:
    name: str
    area: str
    old: str
    new: str
    file: str = ""
    harm: str = ""  # what goes wrong for a user
    tests: str = ""  # names of ctest
    pytest: str = ""  # arguments of pytest, as in python/tests


def read_faults():
    """The faults of all lists. Each fits the tree."""
    faults = []
    for path in sorted(LISTS.glob("*.txt")):
        parts = HEAD.split(path.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2]):
            body = BODY.fullmatch(text.lstrip("\n"))
            if not body:
                raise ListError(f"{path.name}: {name} has another form")
            fields = {key: " ".join(value.split()) for key, value in FIELD.findall(body["fields"])}
            if not set(fields) <= set(FIELDS):
                raise ListError(f"{path.name}: {name} has a field that nobody knows")
            faults.append(Fault(name, path.stem, body["old"], body["new"] or "", **fields))
    for fault in faults:
        check(fault, faults)
    return faults


def check(fault, faults):
    def fail(what):
        raise ListError(f"{fault.area}.txt: {fault.name}: {what}")

    if sum(other.name == fault.name for other in faults) > 1:
        fail("the name is there twice")
    if not fault.file.startswith(PRODUCT) or not fault.harm or not (fault.tests or fault.pytest):
        fail("it needs a file of the product, a harm, and tests")
    if not (ROOT / fault.file).is_file():
        fail(f"there is no {fault.file}")
    count = (ROOT / fault.file).read_text(encoding="utf-8").count(fault.old)
    if count != 1:
        fail(f"the old text is {count} times in {fault.file}")
    if fault.old == fault.new:
        fail("nothing changes")
    for node in re.findall(r"((?:torch/)?test_\w+\.py)(?:::(test_\w+))?", fault.pytest):
        path = ROOT / "python/tests" / node[0]
        if not path.is_file() or f"def {node[1]}" not in path.read_text(encoding="utf-8"):
            fail(f"there is no {'::'.join(filter(None, node))}")
