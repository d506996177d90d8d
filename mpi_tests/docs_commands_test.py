#!/usr/bin/env python3
"""Every command of README.md and docs/*.md runs, and prints what the page shows.

  docs_commands_test.py MPIRUN SLUICE_BENCH SLUICE_SIM

Numbers are made smaller by SMALLER. Those of README.md run each day, and those of a fifth of the
other pages; all do where SLUICE_TEST_THOROUGH is set. What takes more than this machine and a
minute (NOT_RUN) is only read: its script is there, and knows each option that the page names.
"""
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import docs_commands
from bench_run import job_limit
from few import few

ROOT = pathlib.Path(__file__).resolve().parent.parent

# (pattern, replacement): the same in small. The first that matches a spot counts.
SMALLER = [
    (r"--scale 4\b", "--scale 64 --layers 4"),
    (r"--bucket-bytes 8M", "--bucket-bytes 4K"),
    (r"--shape (?:4096,4096|1024,1024)", "--shape 256,256"),
    (r"--ranks 32:512:2", "--ranks 8:32:2"),
    (r"--peers 256 --ranks 65536", "--peers 16 --ranks 256"),
    (r"--iters 10000", "--iters 200"),
    (r"--items 256 --item-bytes 1M", "--items 32 --item-bytes 64K"),
    (r"--items 32 --item-bytes 8M", "--items 8 --item-bytes 1M"),
    (r"--latency-ms \d+", "--latency-ms 5"),
    (r"--model llama-3-70b\b", "--model llama-3-70b --layers 2 --scale 8"),
    (r"--model deepseek-v3\b", "--model deepseek-v3 --layers 4"),
    (r"--tensors 48", "--tensors 4"),
]

# (pattern of what a command begins with, why it does not run here).
NOT_RUN = [
    (r"scripts/(test|smpi|packages|build|check|build/model)\.sh", "builds, or installs packages"),
    (r"scripts/measure/(compare|measure)\.py", "installs, and takes hours"),
    (r"scripts/measure/large_meshes\.sh", "takes half an hour"),
    (r"scripts/two_nodes\.sh", "takes root; two_nodes_test.py runs it"),
    (r"scripts/gpu_", "takes a GPU; gpu_check_test.py runs it"),
    (r"scripts/measure/check_simulation\.py", "takes SimGrid, or hours"),
    (r"tools/report/report\.py|build/bin/sluice-bench report",
     "takes results, and matplotlib; report_test.py runs it"),
    (r"scripts/chaos/chaos(_epochs)?\.py", "takes minutes; tests/chaos runs some of it"),
    (r"(\w+=\S+ )*(mpirun|torchrun|srun|sbatch|docker|apptainer)\b",
     "takes a cluster, or is another project's"),
    (r"(sysctl|setarch|tar|curl|git|ctest|man)\b",
     "is another project's"),
    (r"(cmake|cc)\b|scripts/spawn\.sh -n 4 \./weight_sync", "install_test.cmake does it"),
    (r"pip install \./python", "builds the library; scripts/build/wheel.sh builds a wheel of it"),
    (r"(export|cd)\b", "belongs to another command"),
]

# What may end with another code than 0.
GOOD_CODES = {"sluice-bench doctor": (0, 1),  # 1: it has found something
              "sluice-bench checkpoint": (0, 77)}  # 77: the file system keeps pages

# Options of other programs than ours that pages name on their own.
FOREIGN = re.compile(r"--(mca|hostfile|host|map-by|rank-by|bind-to|report-bindings|oversubscribe|"
                     r"mpi|cpu-bind|ntasks-per-node|gpus-per-task|cap-add|shm-size|network|pid|"
                     r"containall|hostname|ipc|security-opt|ulimit|prefix|test-dir|sharens|"
                     r"enable-recovery|allow-run-as-root|tag-output|privileged|userns|"
                     r"weight-transfer-config)$")


class Here:
    """A folder that looks like the repository with its programs built."""

    def __init__(self, folder, mpirun, bench, sim):
        self.folder = pathlib.Path(folder)
        self.programs = {"sluice-bench": bench, "sluice-sim": sim}
        for name in ("bench", "docs", "examples", "tests", "mpi_tests"):
            (self.folder / name).symlink_to(ROOT / name)
        # Scripts are run as the page says, but for the launcher's.
        (self.folder / "scripts").mkdir()
        for script in (ROOT / "scripts").iterdir():
            (self.folder / "scripts" / script.name).symlink_to(
                mpirun if script.name == "mpirun.sh" else script)
        # Models are found beside the programs.
        (self.folder / "build").symlink_to(pathlib.Path(bench).parent.parent)
        self.tmp = self.folder / "tmp"
        self.tmp.mkdir()
        self.helps = {}
        self.ran = 0

    def help_of(self, program):
        """All that --help of a program's commands says, or the text of a script."""
        if program not in self.helps:
            name = pathlib.Path(program).name
            if name in self.programs:
                path = self.programs[name]
                text = self.output([path, "--help"])
                for command in re.findall(r"^  ([a-z]+) {2,}", text, re.M):
                    short = self.output([path, command, "--help"])
                    more = "--help-all" in short
                    text += self.output([path, command, "--help-all"]) if more else short
            else:
                path = ROOT / program
                assert path.is_file(), f"there is no {program}"
                beside = path.parent.glob("*.py") if path.parent.name == "measure" else ()
                text = "".join(one.read_text(encoding="utf-8") for one in (path, *beside))
            self.helps[program] = text
        return self.helps[program]

    def output(self, command):
        return job_limit.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

    def run(self, text, number):
        """(exit code, output) of a command."""
        of_mpi = self.folder / f"ompi-{number}"
        of_mpi.mkdir()
        done = job_limit.run(["bash", "-c", text.replace("/tmp/", f"{self.tmp}/")],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace", cwd=self.folder,
                             env=dict(os.environ, OMPI_MCA_orte_tmpdir_base=str(of_mpi)))
        return done.returncode, done.stdout


def demo():
    """What scripts/run.sh runs in the end."""
    script = (ROOT / "scripts" / "run.sh").read_text(encoding="utf-8")
    return script[script.rindex("\nscripts/mpirun.sh"):].replace("\\\n", "").strip()


def smaller(text):
    if text == "scripts/run.sh":
        text = demo()
    for pattern, replacement in SMALLER:
        text = re.sub(pattern, replacement, text)
    return text


def why_not(text):
    """Why a command is not run; None if it is."""
    for word in shlex.split(text):
        if re.fullmatch(r"[A-Z][A-Z_]*|\.\.\.|…", word):
            return "has placeholders"
    return next((why for pattern, why in NOT_RUN if re.match(pattern, text)), None)


def unknown_options(here, text):
    """What is wrong with the scripts, programs and options that a command names, or None."""
    programs = re.findall(r"(?<![\w/.-])(scripts/[\w/]+\.(?:sh|py)|"
                          r"(?:build/bin/)?sluice-(?:bench|sim)\b(?![.-]))", text)
    ours = [one for one in programs if one != "scripts/mpirun.sh"]
    try:
        known = "".join(map(here.help_of, ours))
    except AssertionError as error:
        return str(error)
    if not ours and not text.startswith("--"):
        return None  # another project's
    for option in docs_commands.options(text):
        if FOREIGN.match(option) or (option == "-np" and "mpirun" in text):
            continue
        among = known if ours else here.anything
        if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", among):
            return f"{option} is no option of {' or '.join(ours) or 'anything here'}"
    return None


def complaint(here, command, number=0, runs=True):
    """What is wrong with a command of a page, or None."""
    wrong = unknown_options(here, command.text)
    if wrong:
        return f"{command.where()}\n  {wrong}"
    text = smaller(command.text)
    if why_not(text):
        return None
    here.ran += runs
    if not re.match(r"(scripts|build/bin)/|(mkdir|rm) ", text):
        return f"{command.where()}\n  neither runs nor is listed in NOT_RUN"
    if not runs:
        return None
    code, output = here.run(text, number)
    good = next((codes for words, codes in GOOD_CODES.items() if words in text), (0,))
    if code not in good:
        return f"{command.where()}\n  ended with {code}: {text}\n{output}"
    missing = docs_commands.not_printed(command.shown, output)
    if missing is not None:
        return f"{command.where()}\n  does not print \"{missing}\":\n{output}"
    return None


def control(here):
    """What is wrong is found."""
    page = ("Text\n\n    scripts/nothing.sh\n    build/bin/sluice-sim peak --budgets 1\n"
            "    build/bin/sluice-sim peak --preset nothing\n    build/bin/sluice-sim \\\n"
            "      --version   # says\n\nIt prints:\n\n    sluice-sim 9.9\n    and a poem\n")
    found = docs_commands.commands("page", page)
    assert [each.line for each in found] == [3, 4, 5, 6], found
    assert found[3].text == "build/bin/sluice-sim --version", found
    assert found[3].shown == ["sluice-sim 9.9", "and a poem"], found
    for command, expected in zip(found, ["there is no scripts/nothing.sh", "--budgets is no option",
                                         "ended with 2", 'does not print "and a poem"']):
        assert expected in (complaint(here, command) or ""), (command, expected)
        if command.text.endswith("nothing"):
            (here.folder / "ompi-0").rmdir()


def main():
    mpirun, bench, sim = sys.argv[1:]
    others = sorted((ROOT / "docs").glob("*.md"))
    pages, running = [ROOT / "README.md", *others], [ROOT / "README.md", *few(others)]
    with tempfile.TemporaryDirectory(prefix="sluice-docs-") as folder:
        here = Here(folder, mpirun, bench, sim)
        here.anything = "".join(map(here.help_of, here.programs)) + "".join(
            path.read_text(encoding="utf-8") for path in sorted((ROOT / "scripts").rglob("*"))
            if path.suffix in (".py", ".sh"))
        control(here)
        complaints, jobs = [], []
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for page in pages:
                text = page.read_text(encoding="utf-8")
                name = str(page.relative_to(ROOT))
                found = docs_commands.commands(name, text)
                # One page's commands build on each other; pages go side by side.
                jobs.append(pool.submit(
                    lambda found=found, name=name, runs=page in running: [
                        complaint(here, each, f"{name.replace('/', '-')}-{each.line}", runs)
                        for each in found]))
                complaints += [f"{span.where()}\n  {wrong}"
                               for span in docs_commands.spans(name, text)
                               if (wrong := unknown_options(here, span.text))]
            for job in jobs:
                complaints += [each for each in job.result() if each]
    assert here.ran > 4, f"only {here.ran} commands were found"
    if complaints:
        sys.exit("\n".join(complaints))


if __name__ == "__main__":
    main()
