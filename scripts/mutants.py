#!/usr/bin/env python3
"""Plants faults in the library, one at a time, and shows that its quick tests catch each of them.

  mutants.py [--work DIR] [--no-control] [NAME...]
  mutants.py --list [NAME...]

Faults are in scripts/mutants/*.txt, a file for each area, in the form that the head of engine.txt
shows. NAME: a fault, an area, or a pattern such as 'tcp_*'; without any, all are tried. They are
planted in a copy of the tree, and never in the tree itself. There each source is compiled by
itself, with little optimization, so that a fault is built soon.

Before the faults, the tests that are to catch them have to pass. A fault is caught where a test
fails, or does not end before its own limit. What does not build is no fault, but an error of the
list. Ends with 1 if a fault has survived, or could not be tried. Whole runs take hours.
"""
import argparse
import fnmatch
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys

from mutants_list import ROOT, ListError, read_faults

# What GoogleTest says of a case, and of one during which the process ended.
FAILED = re.compile(r"\[  FAILED  \] (\w\S*)")
BEGUN = re.compile(r"\[ RUN      \] (\S+)")
PYTEST_FAILED = re.compile(r"^(?:FAILED|ERROR) \S*?(test_\w+\.py(?:::\S+)?)", re.MULTILINE)
CTEST_FAILED = re.compile(r"Test +#\d+: (\S+) .*?\*\*\*(\w+)")
TEST_LINE = re.compile(r'^add_test\((?:\[=\[(.*?)\]=\]|"?([^\s"]+)"?) (.*)\)$', re.MULTILINE)
PACKAGES = ("pytest", "pytest-xdist", "numpy", "ml_dtypes", "nanobind>=3.1,<4",
            "nanobind-backend>=1.0,<2")
FAST_BUILD = ("-DSLUICE_UNITY=OFF", "-DSLUICE_CUDA=OFF", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG")
TEST_LIMIT_S = 300  # of tests of ctest that have none of their own
PYTEST_LIMIT_S = 600  # that of scripts/test_python.sh


class Work:
    """A copy of the tree, its builds, and what runs there."""

    def __init__(self, folder):
        self.folder = folder
        self.source = folder / "source"
        self.build = self.source / "build"
        self.module = folder / "python"
        self.package = folder / "package"
        self._programs = None

    def copy(self):
        """Brings the copy up to date. What is equal keeps its time, and is not built anew."""
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                                check=True, capture_output=True).stdout.decode().split("\0")
        wanted = {name for name in listed if name and (ROOT / name).is_file()}
        for name in wanted:
            own, other = ROOT / name, self.source / name
            if not other.is_file() or own.read_bytes() != other.read_bytes():
                other.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(own, other)
                shutil.copymode(own, other)
        for path in list(self.source.rglob("*")):
            name = path.relative_to(self.source)
            if path.is_file() and name.parts[0] != "build" and str(name) not in wanted:
                path.unlink()

    def make(self, faults):
        """Builds all that the tests of these faults need."""
        targets = sorted({target for fault in faults for target in self.targets(fault)})
        if targets:
            self.compile(self.build, *targets)
        if any(fault.pytest for fault in faults):
            self.make_package(any(fault.pytest.startswith("torch/") for fault in faults))

    def targets(self, fault):
        if fault.tests and self._programs is None:
            self.run("cmake", "--preset", "release", *FAST_BUILD)
            self._programs = self.find_programs()
        for test in fault.tests.split():
            if test not in self._programs:
                raise ListError(f"{fault.name}: there is no test {test}")
            yield from self._programs[test]

    def find_programs(self):
        """The programs of each test. `ctest --show-only` names only those that are built."""
        found = {}
        for path in self.build.rglob("CTestTestfile.cmake"):
            for match in TEST_LINE.finditer(path.read_text(encoding="utf-8")):
                named = re.findall(rf"{re.escape(str(self.build / 'bin'))}/([\w.-]+)", match[3])
                found[match[1] or match[2]] = named
        return found

    def make_package(self, with_torch=False):
        """An importable package, with a module of the copy's sources."""
        python = self.folder / "venv/bin/python"
        if with_torch and not (self.folder / "venv/torch").exists():
            self.run(sys.executable, "scripts/torch_env.py", str(self.folder / "venv"))
            (self.folder / "venv/torch").touch()
        if not (self.folder / "venv/complete").exists():
            self.run(sys.executable, "-m", "venv", str(self.folder / "venv"))
            self.run(str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install",
                     *PACKAGES)
            (self.folder / "venv/complete").touch()
        if not (self.module / "CMakeCache.txt").exists():
            self.run("cmake", "-S", "python", "-B", str(self.module), "-G", "Ninja",
                     f"-DPython_EXECUTABLE={python}")
        self.compile(self.module, "_sluice")
        shutil.rmtree(self.package, ignore_errors=True)
        shutil.copytree(self.source / "python/sluice", self.package / "sluice",
                        ignore=shutil.ignore_patterns("_sluice*.so", "__pycache__"))
        for module in self.module.glob("_sluice*.so"):
            shutil.copy(module, self.package / "sluice")

    def compile(self, folder, *targets):
        self.run("cmake", "--build", str(folder), "--parallel", str(os.cpu_count() or 1),
                 "--target", *targets)

    def run(self, *command):
        code, output = self.ask(*command)
        if code != 0:
            raise ListError(f"{shlex.join(command[:3])} fails:\n{output[-4000:]}")
        return output

    def ask(self, *command):
        """The exit code of a command, and what it has said."""
        done = subprocess.run(command, cwd=self.source, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        return done.returncode, done.stdout

    def test(self, tests, pytest):
        """Which test fails first, and in which case; empty if none does."""
        if tests:
            names = "|".join(re.escape(test) for test in tests)
            try:
                code, output = self.ask(
                    "ctest", "--test-dir", str(self.build), "-R", f"^({names})$", "-j", "3",
                    "--timeout", str(TEST_LIMIT_S), "--output-on-failure", "--stop-on-failure",
                    "--no-tests=error")
            finally:
                self.end_programs()
            if code != 0:
                return of_ctest(output)
        return self.test_python(pytest) if pytest else ""

    def end_programs(self):
        """Ends what tests have left. On Ctrl-C, ctest leaves a test that hangs."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(process / "exe").startswith(f"{self.build}/bin/"):
                    os.kill(int(process.name), signal.SIGKILL)
            except OSError:
                pass  # it has ended, or is another user's

    def test_python(self, pytest):
        environment = {**os.environ, "PYTHONPATH": str(self.package),
                       "PYTHONDONTWRITEBYTECODE": "1"}
        tests = self.source / "python/tests"
        command = [str(self.folder / "venv/bin/python"), "-m", "pytest", "-q", "-x", "-p",
                   "no:cacheprovider", "--rootdir", str(tests), *shlex.split(pytest)]
        with subprocess.Popen(command, cwd=tests, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace",
                              start_new_session=True) as process:
            try:
                output, _ = process.communicate(timeout=PYTEST_LIMIT_S)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    return f"{pytest} by its limit"
                raise
        if process.returncode == 0:
            return ""
        if process.returncode in (2, 3, 4, 5):  # of pytest: it has not run the tests
            raise ListError(f"pytest {pytest}:\n{output[-4000:]}")
        failed = PYTEST_FAILED.search(output)
        return failed[1] if failed else f"{pytest} (ended by {process.returncode})"


def of_ctest(output):
    """The first test that has failed, and in which case."""
    failed = CTEST_FAILED.search(output)
    if not failed or failed[2] == "Not":  # run
        raise ListError(f"ctest has not run the tests:\n{output[-4000:]}")
    case = FAILED.search(output, failed.end())
    begun = BEGUN.findall(output, failed.end())
    name = case[1].rstrip(",") if case else begun[-1] if begun else ""
    text = failed[1] + (f" (case {name})" if name else "")
    return f"{text} by its limit" if failed[2] == "Timeout" else text


def attempt(work, fault):
    """What becomes of a fault, as a text."""
    path = work.source / fault.file
    whole = path.read_text(encoding="utf-8")
    try:
        path.write_text(whole.replace(fault.old, fault.new), encoding="utf-8")
        work.make([fault])
        return work.test(fault.tests.split(), fault.pytest)
    finally:
        path.write_text(whole, encoding="utf-8")


def control(work, faults):
    """Whether the tests pass as they are. Then only a fault can be what makes one fail."""
    work.make(faults)
    tests = sorted({test for fault in faults for test in fault.tests.split()})
    failed = work.test(tests, "")
    for pytest in sorted({fault.pytest for fault in faults} - {""}):
        failed = failed or work.test_python(pytest)
    if failed:
        sys.exit(f"failed without any fault: {failed}")
    print("all tests pass without a fault", flush=True)


def show(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    for row in rows:
        print(f"{row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]}")


def main():
    parser = argparse.ArgumentParser(prog="mutants.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults, areas or patterns")
    parser.add_argument("--list", action="store_true",
                        help="check that all faults fit the tree, and list them")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build-mutants", metavar="DIR",
                        help="where the copy and its builds are kept [build-mutants]")
    parser.add_argument("--no-control", action="store_true",
                        help="do not run the tests without a fault before")
    options = parser.parse_args()
    faults = read_faults()
    if options.names:
        faults = [fault for fault in faults
                  if any(fnmatch.fnmatch(fault.name, name) or fault.area == name
                         for name in options.names)]
    if not faults:
        sys.exit("mutants.py: there is no such fault")
    faults.sort(key=lambda fault: fault.file)  # the next one builds the file before it once more
    if options.list:
        show([("fault", "area", "to be caught by"),
              *((fault.name, fault.area, f"{fault.tests} {fault.pytest}".strip())
                for fault in faults)])
        return
    work = Work(options.work.resolve())
    work.copy()
    if not options.no_control:
        control(work, faults)
    rows, good = [("fault", "area", "caught by")], True
    for fault in faults:
        try:
            caught = attempt(work, fault)
            word = f"caught by {caught}" if caught else f"SURVIVED: {fault.harm}"
        except ListError as error:
            caught, word = "", f"ERROR of the list: {error}"
        print(f"{fault.name}: {word}", flush=True)
        good = good and bool(caught)
        rows.append((fault.name, fault.area, caught or word.split(":")[0]))
    print()
    show(rows)
    if not good:
        sys.exit(1)


if __name__ == "__main__":
    try:
        main()
    except ListError as error:
        sys.exit(f"mutants.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
