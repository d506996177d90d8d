#!/usr/bin/env python3
"""The examples in --help run when they are pasted, and what names no command gets the help of all.

  help_test.py MPIRUN SLUICE_BENCH SLUICE_SIM
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from bench_run import job_limit

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMANDS = {"sluice-bench": ["reshard", "shards", "stream", "checkpoint", "doctor", "report"],
            "sluice-sim": ["peak", "scale", "deadlock"]}


def run(command, **more):
    done = job_limit.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         cwd=ROOT, **more)
    return done.returncode, done.stdout


def example_of(text):
    found = re.match(r"Example, in the repository's folder:\n((?:  .*\n)+)\n", text)
    assert found, text
    return found[1]


def examples_run(mpirun, programs, folder):
    for name, program in programs.items():
        for command in [[], *([one] for one in COMMANDS[name])]:
            code, text = run([program, *command, "--help"])
            assert code == 0, (code, text)
            assert "\nExit codes: 0 all is well; " in text, text
            is_short(text, run([program, *command, "--help-all"]))
            # Folders first: the repository may be below /tmp, too.
            script = example_of(text).replace("/tmp/", folder + "/")
            script = script.replace("scripts/mpirun.sh", mpirun)
            for each, path in programs.items():
                script = script.replace("build/bin/" + each, path)
            assert program in script, script
            code, output = run(["sh", "-ec", script])
            found = [1] if command == ["doctor"] else []  # something is missing here
            if code == 1 and command == ["report"]:
                assert "pip install 'matplotlib>=3.7' jinja2" in output, output
                continue
            assert code in [0, *found], (script, code, output)


def is_short(text, all_flags):
    """Fits a screen; what it leaves out is in --help-all."""
    assert max(map(len, text.splitlines())) <= 100 and " in [" not in text, text
    flags = re.findall(r"^  (-\S+)", text, re.M)
    assert len(flags) <= 21, flags
    if "--help-all" in text:
        code, more = all_flags
        assert code == 0 and max(map(len, more.splitlines())) <= 100, (code, more)
        known = re.findall(r"^  (-\S+)", more, re.M)
        assert set(flags) < set(known), (flags, known)


def no_command_means_help(programs):
    # A launcher's variables would make sluice-bench one process of many.
    alone = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI"))}
    for name, program in programs.items():
        for arguments in ([], ["wash"], ["--wash"]):
            code, text = run([program, *arguments], env=alone)
            assert code == 2, (arguments, code, text)
            for command in COMMANDS[name]:
                assert re.search(rf"^  {command} ", text, re.M), (command, text)
            if arguments:
                assert text.startswith(f'{name}: "{arguments[0]}" is no command\n'), text


def main():
    mpirun, bench, sim = sys.argv[1:]
    programs = {"sluice-bench": bench, "sluice-sim": sim}
    no_command_means_help(programs)
    with tempfile.TemporaryDirectory(prefix="sluice-help-") as folder:
        examples_run(mpirun, programs, folder)


if __name__ == "__main__":
    main()
