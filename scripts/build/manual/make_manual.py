#!/usr/bin/env python3
"""Writes a program's manual page, out of its --help.

  make_manual.py PROGRAM VERSION FILE
"""
import pathlib
import sys

import help_page


def escaped(text):
    """`text` as troff prints it unchanged."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return text.replace("~", "\\(ti").replace("^", "\\(ha")


def line(text):
    """A line of text; a dot or a quote in front would be a request."""
    text = escaped(text)
    return "\\&" + text if text.startswith(".") else text


def verbatim(lines):
    return [".PP", ".nf", ".RS 4", *map(line, lines), ".RE", ".fi"]


def options(page):
    out = []
    for heading, group in page.groups.items():
        if len(page.groups) > 1:
            out += [".PP", f"\\fI{escaped(heading)}\\fR"]
        for option in group:
            names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in option.names)
            value = f" \\fI{escaped(option.shown_value())}\\fR" if option.value else ""
            out += [".TP", names + value, line(option.text)]
    return out


def footer(page):
    """What follows the options, without the exit codes, which are the same everywhere."""
    return page.footer.partition("Exit codes:")[0].rstrip()


def exit_status(main):
    codes = " ".join(main.footer.partition("Exit codes:")[2].split())
    out = [".SH EXIT STATUS"]
    for code in codes.split("; "):
        number, _, words = code.partition(" ")
        out += [".TP", escaped(number), line(words)]
    return out


def manual(name, version, main, commands):
    out = [f'.\\" Made out of {name} --help.',
           f'.TH {escaped(name.upper())} 1 "" "sluice {version}" "User Commands"',
           ".SH NAME", f"{escaped(name)} \\- {escaped(main.about.rstrip('.'))}",
           ".SH SYNOPSIS", f".B {escaped(name)}",
           "\\fICOMMAND\\fR [\\fIOPTION\\fR]..." if commands else "[\\fIOPTION\\fR]...",
           ".SH DESCRIPTION", line(main.about)]
    if commands:
        out += [".PP", "Commands are:"]
    elif footer(main):
        out += [".PP", line(" ".join(footer(main).split()))]
    for command, text in main.commands.items():
        out += [".TP", f"\\fB{escaped(command)}\\fR", line(text)]
    out += [".SH OPTIONS", *options(main)]
    for command, page in commands.items():
        out += [f".SH {escaped(command.upper())}", line(page.about), *options(page)]
        if footer(page):
            out += verbatim(footer(page).splitlines())
        out += [".PP", "Example:", *verbatim(page.example)]
    out += exit_status(main)
    if commands:
        out += [".SH FILES", ".TP",
                "\\fIshare/sluice/models\\fR, \\fIsystems\\fR, \\fIcases\\fR",
                "Files that \\fB\\-\\-model\\fR, \\fB\\-\\-system\\fR and \\fB\\-\\-cases\\fR "
                "find by name, beside the program\\(aqs own folder."]
    out += [".SH EXAMPLES", *verbatim(main.example)]
    others = [other for other in ("sluice-bench", "sluice-sim") if other != name]
    return "\n".join([*out, ".SH SEE ALSO", f".BR {escaped(others[0])} (1)"]) + "\n"


def main():
    program, version, path = sys.argv[1:]
    name = pathlib.Path(program).name
    pathlib.Path(path).write_text(manual(name, version, *help_page.pages(program)),
                                  encoding="utf-8")


if __name__ == "__main__":
    main()
