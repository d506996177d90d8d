"""What a program's --help says, as CLI11 and bench/job/help.cc print it, taken apart."""
import dataclasses
import os
import re
import subprocess

# "  -n,--iters INT   timed iterations".
_OPTION = re.compile(r" {2}(?P<names>-[^\s,]+(?:,-[^\s,]+)*)(?: (?P<value>\S.*?))??"
                     r"(?:\s{2,}(?P<text>\S.*))?$")
_ENTRY = re.compile(r"  (?P<name>[a-z][a-z-]*)\s{2,}(?P<text>\S.*)$")


@dataclasses.dataclass
class Option:
    """One option. `value`: what it takes, "" for nothing."""
    names: list
    value: str
    text: str

    def shown_value(self):
        """The value for a reader: choices with bars."""
        return "|".join(self.choices()) or self.value

    def choices(self):
        """The values that --help lists, or none."""
        braces = re.search(r"\{([\w,.-]+)\}", self.value)
        if braces:
            return braces[1].split(",")
        if re.fullmatch(r"[\w-]+(\|[\w-]+)+", self.value):
            return self.value.split("|")
        return []


@dataclasses.dataclass
class Page:
    """A program's, or one command's. `groups`: {heading: options}; `commands`: {name: text}."""
    example: list
    about: str
    usage: str
    groups: dict
    commands: dict
    footer: str

    def options(self):
        return [option for options in self.groups.values() for option in options]


def _entries(lines):
    """(heading, options, commands, lines used) of what follows the usage."""
    groups, commands, heading, last, used = {}, {}, "", None, 0
    for at, line in enumerate(lines):
        option, entry = _OPTION.match(line), _ENTRY.match(line)
        if option:
            names = [name.strip() for name in option["names"].split(",")]
            last = Option(names, (option["value"] or "").strip(), option["text"] or "")
            groups.setdefault(heading, []).append(last)
        elif entry and heading.lower() == "subcommands":
            last = entry["name"]
            commands[last] = entry["text"]
        elif re.match(r" {8,}\S", line) and last is not None:
            if isinstance(last, Option):
                last.text = f"{last.text} {line.strip()}".strip()
            else:
                commands[last] += " " + line.strip()
        else:
            last = None
            if re.match(r"\S.*:$", line):
                heading = line[:-1]
            continue
        used = at + 1
    return groups, commands, used


def parse(text):
    """The page of `text`. ValueError if it does not look like one."""
    example, found, rest = text.partition("\n\n")
    lines = rest.splitlines()
    starts = [at for at, line in enumerate(lines) if line.startswith("Usage:")]
    if not found or not example.startswith("Example") or not starts:
        raise ValueError("no example, or no usage, in:\n" + text)
    usage = starts[0]
    groups, commands, used = _entries(lines[usage + 1:])
    if not groups:
        raise ValueError("no options in:\n" + text)
    return Page(example=[line[2:] for line in example.splitlines()[1:]],
                about=" ".join(lines[:usage]).strip(),
                usage=lines[usage].partition(":")[2].strip(), groups=groups, commands=commands,
                footer="\n".join(lines[usage + 1 + used:]).strip())


def output_of(program, *arguments):
    """What `program` prints. A launcher's variables would make it one process of many."""
    alone = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI"))}
    return subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, check=True,
                          timeout=60, env=alone).stdout


def page_of(program, *command):
    """The page of a program or of its command, with all flags."""
    page = parse(output_of(program, *command, "--help"))
    if any("--help-all" in option.names for option in page.options()):
        page = parse(output_of(program, *command, "--help-all"))
    return page


def pages(program):
    """(the program's page, {command: its page})."""
    main = page_of(program)
    return main, {name: page_of(program, name) for name in main.commands}
