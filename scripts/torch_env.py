#!/usr/bin/env python3
"""Makes a virtual environment with PyTorch, and without the gigabytes that only GPUs need.

usage: torch_env.py FOLDER [PACKAGE...]    prints what it installs; nothing if all is there

PyTorch from PyPI wants 4 GB of CUDA libraries. Without an NVIDIA driver on this machine, only the
three small ones are installed whose functions PyTorch calls while it starts. The others it only
links: libraries take their place that have the same names and end the process when called. Where
that cannot be had, or SLUICE_TORCH=full is set, all is installed: 3 GB to fetch, 5 GB on disk.

SLUICE_TORCH_VERSION names another version. pip may be told where builds for CPUs are
(PIP_EXTRA_INDEX_URL); these need no CUDA libraries at all. PACKAGE: more packages, as pip names
them, without what they depend on.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

VERSION = "2.15.0"
LEAN_BYTES, FULL_BYTES = 3 << 30, 10 << 30  # downloads are on the disk together with the rest
PIP = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir",
       "--no-compile"]
# Of what PyTorch requires: the rest of CUDA, and what compiles kernels or extensions.
ONLY_GPUS = re.compile(r"(nvidia|cuda|triton|setuptools)\b")
SMALL = re.compile(r"nvidia-(cuda-runtime|cuda-cupti|cufile)(-cu\d+)?\b")
TOOLKIT = re.compile(r"(cuda-toolkit)\[[^]]*\](.*)")
STARTS = ("import torch, torch.distributed.tensor; torch.ones(2).sum(); "
          "assert torch.distributed.is_gloo_available()")
# Loaded when a GPU is there, and never without.
LATER = ("libcaffe2_nvrtc.so", "libtorch_cuda_linalg.so")


class Failure(Exception):
    pass


def call(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command[:6]))} ...\nended with {done.returncode}:\n"
                      f"{done.stdout[-2000:]}")
    return done.stdout


class Environment:
    """Python packages in a folder of their own."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).absolute()
        self.python = str(self.folder / "bin" / "python")
        if not os.path.exists(self.python):
            self.clear()

    def clear(self):
        call([sys.executable, "-m", "venv", "--clear", str(self.folder)])

    def starts(self):
        """Whether PyTorch is there, and starts."""
        return subprocess.run([self.python, "-c", STARTS], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0

    def install(self, *packages):
        call([self.python, *PIP, *packages])

    def ask(self, code):
        return json.loads(call([self.python, "-c", "import importlib.metadata as m, json, sysconfig"
                                f"; print(json.dumps({code}))"]))

    def lacks(self, packages):
        names = [re.match(r"[\w.-]+", package).group(0) for package in packages]
        have = self.ask("sorted(d.name for d in m.distributions())")
        have = {name.lower().replace("_", "-") for name in have}
        return [package for package, name in zip(packages, names)
                if name.lower().replace("_", "-") not in have]

    @property
    def site(self):
        return pathlib.Path(self.ask("sysconfig.get_path('purelib')"))


def need_space(folder, least):
    free = shutil.disk_usage(folder).free
    if free < least:
        raise Failure(f"PyTorch takes {least / 2**30:.0f} GiB of disk while it is installed, and "
                      f"{folder} has {free / 2**30:.1f} GiB")


def required(environment):
    """What PyTorch needs without a GPU, as pip names it."""
    packages = []
    for line in environment.ask("m.requires('torch')"):
        line, _, marker = (part.strip() for part in line.partition(";"))
        toolkit = TOOLKIT.match(line)
        if "extra ==" in marker:
            continue
        if toolkit:
            packages.append(f"{toolkit[1]}[cudart,cupti,cufile]{toolkit[2]}")
        elif SMALL.match(line) or not ONLY_GPUS.match(line):
            packages.append(line)
    return packages


class Linked:
    """What the libraries of PyTorch link that is not there."""

    def __init__(self, site):
        self.missing, self.by_version, self.plain, self.library_of = set(), {}, set(), {}
        there = {path.name for path in site.rglob("*.so*")}
        for library in sorted((site / "torch/lib").glob("*.so")):
            if library.name not in LATER:
                self._read(call(["readelf", "-W", "--dynamic", "--dyn-syms", "--version-info",
                                 str(library)], env={**os.environ, "LC_ALL": "C"}), there)

    def _read(self, text, there):
        needed = re.findall(r"\(NEEDED\).*\[(lib(?:cu|nv|nccl)[^\]]*)\]", text)
        self.missing.update(set(needed) - there)
        library = None
        for line in text.splitlines():
            file = re.search(r"Version: 1\s+File: (\S+)\s+Cnt", line)
            version = re.search(r"Name: (\S+)\s+Flags: \S+\s+Version: \d+", line)
            if file:
                library = file[1]
            elif version and library:
                self.library_of[version[1]] = library
        for name, version in re.findall(r" UND (\w+)@(\S+)(?: \(\d+\))?$", text, re.M):
            self.by_version.setdefault(version, set()).add(name)
        self.plain.update(re.findall(r" UND (\w+)$", text, re.M))

    def names(self, library):
        """{version: names of functions} of a missing library; None: without a version."""
        versions = [one for one, owner in self.library_of.items() if owner == library]
        if versions:
            return {version: sorted(self.by_version.get(version, ())) for version in versions}
        prefix = library[len("lib"):].split(".")[0]
        return {None: sorted(name for name in self.plain if name.startswith(prefix))}


HEAD = """#include <stdio.h>
#include <stdlib.h>
static void gone(const char* name) {
  fprintf(stderr, "%s was called: this PyTorch was installed without CUDA\\n", name);
  abort();
}
"""


def stand_in(folder, library, names):
    """A library that has these functions, all of which end the process."""
    code = HEAD + "".join(f'void {name}(void) {{ gone("{name}"); }}\n'
                          for functions in names.values() for name in functions)
    flags = ["-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{library}"]
    script = folder / "versions.map"
    if None not in names:
        script.write_text("".join(f"{version} {{ global: {'; '.join(functions) or '*'}; }};\n"
                                  for version, functions in names.items()), encoding="utf-8")
        flags.append(f"-Wl,--version-script={script}")
    try:
        call(["cc", *flags, "-o", str(folder / library), "-x", "c", "-"], input=code)
    finally:
        script.unlink(missing_ok=True)


def install_lean(environment, version):
    need_space(environment.folder, LEAN_BYTES)
    environment.install("--no-deps", f"torch=={version}")
    environment.install(*required(environment))
    linked = Linked(environment.site)
    for library in sorted(linked.missing):
        stand_in(environment.site / "torch/lib", library, linked.names(library))
    return environment.starts()


def install_torch(environment):
    version = os.environ.get("SLUICE_TORCH_VERSION", VERSION)
    if environment.starts():
        if environment.ask("m.version('torch')").partition("+")[0] == version:
            return
        environment.clear()
    begin = time.monotonic()
    print(f"installing torch {version}", flush=True)
    has_gpu = os.path.exists("/proc/driver/nvidia/version")
    if has_gpu or os.environ.get("SLUICE_TORCH") == "full" or not _try_lean(environment, version):
        environment.clear()  # of a try that did not work
        need_space(environment.folder, FULL_BYTES)
        environment.install(f"torch=={version}")
        if not environment.starts():
            raise Failure(f"torch {version} is installed in {environment.folder} and does not "
                          f"start:\n{call([environment.python, '-c', STARTS])}")
    print(f"torch {version} took {time.monotonic() - begin:.0f} s", flush=True)


def _try_lean(environment, version):
    try:
        if install_lean(environment, version):
            return True
        reason = "it does not start"
    except Failure as failure:
        reason = str(failure)
    print(f"PyTorch without CUDA libraries: {reason}; installing all of it", flush=True)
    return False


def make(folder, packages=()):
    """The environment in `folder`, with PyTorch and `packages`."""
    environment = Environment(folder)
    install_torch(environment)
    missing = environment.lacks(list(packages))
    if missing:
        print(f"installing {', '.join(missing)}", flush=True)
        # Of packages that want PyTorch, pip would bring all that PyTorch wants.
        environment.install("--no-deps", *missing)
    return environment


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("packages", nargs="*")
    options = parser.parse_args()
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        make(options.folder, options.packages)
    except (Failure, OSError) as error:
        sys.exit(f"torch_env.py: {error}")


if __name__ == "__main__":
    main()
