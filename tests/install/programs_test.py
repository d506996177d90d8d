#!/usr/bin/env python3
"""Installed programs: they find models by name, have manual pages, and complete in bash.

  programs_test.py PREFIX VERSION HAS_MANUAL
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts/build/manual"))
import help_page  # noqa: E402

PROGRAMS = ["sluice-bench", "sluice-sim"]


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=300, check=False, cwd="/", **more)
    return done.returncode, done.stdout


def help_is_read():
    text = ("Example, in the repository's folder:\n  run it\n\nMoves.\nUsage: p c [OPTIONS]\n\n"
            "Options:\n  -h,--help                   Print this\n\n\nKnobs:\n"
            "  -n,--iters INT              how\n                              often [3]\n"
            "  --plan {relay,naive}        which\n\nMore:\n  p c \\\n    --plan relay\n")
    page = help_page.parse(text)
    assert page.example == ["run it"] and page.about == "Moves.", page
    _, iters, plan = page.options()
    assert iters.names == ["-n", "--iters"] and iters.text == "how often [3]", page
    assert iters.shown_value() == "INT", page
    assert plan.names == ["--plan"] and plan.shown_value() == "relay|naive", page
    assert page.footer == "More:\n  p c \\\n    --plan relay", page


def names_are_found(prefix, version):
    bench, sim = (str(prefix / "bin" / name) for name in PROGRAMS)
    for program in (bench, sim):
        code, text = run(program, "--version")
        assert code == 0 and f" {version}" in text, text
    model = ["--model", "llama-3-8b", "--system", "llama-3-8b-fsdp4-tp2dp2", "--layers", "2"]
    code, text = run(bench, "reshard", "--plan-only", *model)
    assert code == 0 and "llama-3-8b/llama-3-8b-fsdp4-tp2dp2" in text, text
    code, text = run(bench, "reshard", "--plan-only", "--cases", "recipes")
    assert code == 0, text
    code, text = run(sim, "peak", *model, "--budget-buckets", "4")
    assert code == 0, text
    code, text = run(bench, "reshard", "--plan-only", "--model", "llama-9", *model[2:])
    assert code == 2 and f"{prefix}/share/sluice/models/llama-9.json" in text, text


def manual_is_whole(prefix, name, version):
    page = prefix / "share" / "man" / "man1" / f"{name}.1"
    source = page.read_text(encoding="utf-8")
    assert f'"sluice {version}"' in source, source
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES"):
        assert f"\n.SH {heading}\n" in source, heading
    opened, closed = (len(re.findall(rf"^\.{each}$", source, re.M)) for each in ("nf", "fi"))
    assert opened == closed > 0
    shown = source.replace("\\-", "-")
    if shutil.which("groff"):
        # -ww has it complain of everything; without -z it prints the page, as man does.
        done = subprocess.run(["groff", "-man", "-Tascii", "-P-c", "-ww", str(page)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              env=dict(os.environ, LC_ALL="C"))
        assert done.returncode == 0 and not done.stderr, done.stderr
        shown = re.sub(r".\x08|\x1b\[[0-9;]*m", "", done.stdout)
    main, commands = help_page.pages(str(prefix / "bin" / name))
    for command, each in {"": main, **commands}.items():
        assert command.upper() in shown, command
        for option in each.options():
            for option_name in option.names:
                assert option_name in shown, (command, option_name)


def completed(prefix, name, *words):
    """What bash offers for the last of `words`."""
    script = (f'PATH={prefix}/bin:$PATH\n. "{prefix}/share/bash-completion/completions/{name}"\n'
              f'COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))\n_{name.replace("-", "_")}\n'
              'printf "%s\\n" "${COMPREPLY[@]}"')
    code, text = run("bash", "--norc", "-u", "-c", script, "bash", name, *words)
    assert code == 0, text
    return text.split()


def completion_knows_all(prefix, name):
    main, commands = help_page.pages(str(prefix / "bin" / name))
    assert commands and set(completed(prefix, name, "")) == set(commands)
    assert "--version" in completed(prefix, name, "--")
    for command, page in commands.items():
        assert completed(prefix, name, command[:-1]) == [command]
        offered = completed(prefix, name, command, "--")
        assert set(offered) == {each for option in page.options() for each in option.names
                                if each.startswith("--")}, (command, offered)
        assert len(offered) >= 3, offered


def completion_knows_values(prefix):
    def bench(*words):
        return completed(prefix, "sluice-bench", "reshard", *words)
    assert bench("--shape", "8", "--max-in") == ["--max-in-flight"]
    assert set(bench("--check", "")) == {"none", "sample", "all"}
    assert set(bench("--preset", "etha-3")) == {
        "etha-3-no_partial", "etha-3-replicate_dp", "etha-3-partial_dp"}
    assert bench("--model", "llama-3-8") == ["llama-3-8b"]
    assert bench("--collective", "all") == ["all-gather", "all-reduce", "all-to-all"]
    assert {"bf16", "f32", "bool"} <= set(bench("-d", ""))
    assert "llama-3-8b-fsdp8-tp8" in bench("--system", "")
    assert bench("--json", "") == []  # bash offers files
    assert completed(prefix, "sluice-sim", "scale", "--plan", "n") == ["naive"]


def main():
    prefix, version, has_manual = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    help_is_read()
    names_are_found(prefix, version)
    if has_manual in ("0", "OFF", "FALSE"):
        return
    for name in PROGRAMS:
        manual_is_whole(prefix, name, version)
        completion_knows_all(prefix, name)
    completion_knows_values(prefix)
    manual_is_whole(prefix, "sluice-store", version)


if __name__ == "__main__":
    main()
