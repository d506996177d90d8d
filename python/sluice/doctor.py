"""Says what this installation has, and what to do about what it lacks: `python -m sluice.doctor`.

`sluice-bench doctor` looks at all ranks of a job. This one looks at one process of a host, and
takes nothing but the package.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from urllib.parse import urlsplit

from . import __version__, _sluice
from ._program import Parser

_COLUMNS = 100
_INDENT = 20  # of values
_FILES_ENOUGH = 1024
_LOOPBACK = ("127.", "localhost", "[::1]", "::1")


@dataclass
class Finding:
    """One check. `todo` is empty if all is well."""

    check: str
    value: str
    todo: str = ""

    @property
    def state(self) -> str:
        return "check" if self.todo else "ok"


def _version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _packages() -> Iterator[Finding]:
    where = os.path.dirname(os.path.abspath(__file__))
    own = _version_of("sluice-mesh")
    yield Finding("sluice", f"{__version__}, in {where}" + (
        "" if own else " (not installed by pip: found on sys.path)"))
    stranger = _version_of("sluice")
    if stranger is None:
        yield Finding("other sluice", "none: no distribution is called `sluice`")
    else:
        yield Finding("other sluice", f"the distribution `sluice` {stranger} is installed, too: "
                      "somebody else's package, which has the same import name",
                      "pip uninstall sluice; pip install --force-reinstall sluice-mesh")
    if own and own != __version__:
        yield Finding("versions", f"pip says sluice-mesh {own}, and the module {__version__}",
                      "pip install --force-reinstall sluice-mesh, and look at PYTHONPATH")
    yield Finding("python", f"{platform.python_version()}, {platform.machine()}, "
                  f"{platform.libc_ver()[0]} {platform.libc_ver()[1]}")
    for name in ("torch", "numpy"):
        found = _version_of(name)
        yield Finding(name, found or "not installed, and not needed")


def _rdma_devices() -> list[str]:
    try:
        return os.listdir("/sys/class/infiniband")
    except OSError:
        return []


def _build(facts: dict[str, str]) -> Iterator[Finding]:
    gpus = os.path.isdir("/proc/driver/nvidia/gpus")
    if facts["cuda"]:
        yield Finding("cuda", "built in" + (", with NCCL" if facts["nccl"] else ", without NCCL"))
    elif gpus:
        yield Finding("cuda", "not built in, and this host has GPUs: tensors on them are refused",
                      "build the package with -DSLUICE_PYTHON_CUDA=ON (docs/gpus.md)")
    else:
        yield Finding("cuda", "not built in; this host shows no GPU")
    devices = _rdma_devices()
    todo = "install UCX 1.13 or later (Debian: libucx0)" if devices and facts["ucx_error"] else ""
    ucx = f"UCX {facts['ucx']}" if facts["ucx"] else f"no UCX: {facts['ucx_error']}"
    yield Finding("wires", f"memory of the node; TCP; RDMA devices: {len(devices)}; {ucx}", todo)


def _in_bytes(value: int) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            break
        value //= 1024
    else:
        unit = "TiB"
    return f"{value} {unit}"


def _limits(facts: dict[str, str]) -> Iterator[Finding]:
    yield Finding("copies", facts["copies_error"] or "ranks of one node may copy from each other",
                  facts["copies_todo"])
    yield Finding("memfd", facts["memfd_error"] or "memory can be shared between ranks",
                  "a seccomp filter that allows memfd_create and fcntl seals, and memory to spare"
                  if facts["memfd_error"] else "")
    try:
        shm = os.statvfs("/dev/shm")
        yield Finding("/dev/shm", f"{_in_bytes(shm.f_blocks * shm.f_frsize)} (MPI's and PyTorch's; "
                      "Sluice takes none)")
    except OSError:
        yield Finding("/dev/shm", "none, which MPI and PyTorch's loaders want (Sluice does not)")
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    rdma = _rdma_devices()
    limit = "no limit" if locked == resource.RLIM_INFINITY else _in_bytes(locked)
    if locked == resource.RLIM_INFINITY or not rdma:
        yield Finding("memlock", limit + ("" if rdma else ": only RDMA networks need it"))
    else:
        yield Finding("memlock", f"{limit} may be locked, and RDMA networks lock what they send",
                      "ulimit -l unlimited where ranks are started (limits.conf; "
                      "LimitMEMLOCK=infinity for slurmd; docker run --ulimit memlock=-1)")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = hard != resource.RLIM_INFINITY and hard < _FILES_ENOUGH
    yield Finding("open files", f"{soft}, up to {hard} if asked for",
                  f"ulimit -n {_FILES_ENOUGH} or more, where ranks are started" if few else "")
    yield Finding("io_uring", facts["uring_error"] or
                  "allowed: it reads files of data shards and checkpoints",
                  "sysctl kernel.io_uring_disabled=0; in containers a seccomp filter that allows "
                  "io_uring_setup, io_uring_enter and io_uring_register. Threads read until then"
                  if facts["uring_error"] else "")


def _world() -> Iterator[Finding]:
    """Where a session of this environment would listen, and who could reach it."""
    environment = os.environ
    token = environment.get("SLUICE_TOKEN") or environment.get("SLUICE_TOKEN_FILE")
    url = environment.get("SLUICE_WORLD", "")
    host = urlsplit(url).hostname if url else environment.get("MASTER_ADDR", "")
    proof = ("Whoever connects has to prove that it knows the token" if token else
             "Without a token it takes the loopback interface alone, and your own user and root")
    if not host:
        yield Finding("world", "the environment names none (SLUICE_WORLD, MASTER_ADDR): "
                      "`World.join(url)` says where its store listens. " + proof)
    else:
        near = host.startswith(_LOOPBACK)
        named = url or f"{host}, the port after MASTER_PORT {environment.get('MASTER_PORT', '?')}"
        todo = "" if near or token else (
            "set SLUICE_TOKEN on all members: export SLUICE_TOKEN=$(head -c 32 /dev/urandom | "
            "base64)")
        bind = environment.get("SLUICE_BIND")
        reach = "this host alone" if near else (
            f"whoever reaches {bind} (SLUICE_BIND)" if bind else
            "whoever reaches this host: SLUICE_BIND limits that")
        yield Finding("world", f"the store at {named}, and one port of each member. They are open "
                      f"to {reach}. {proof}", todo)
    if environment.get("SLUICE_WIRES") == "ucx" and "tcp" in environment.get("UCX_TLS", ""):
        yield Finding("ucx tcp", "SLUICE_WIRES and UCX_TLS ask for UCX's TCP, which asks for no "
                      "proof, and lets whoever reaches it write into the process",
                      "leave tcp out of UCX_TLS, unless the network is the job's own")


def findings() -> list[Finding]:
    """Everything, in the order in which it is shown."""
    facts = _sluice.facts()
    return [*_packages(), *_build(facts), *_limits(facts), *_world()]


def text_of(found: Sequence[Finding]) -> str:
    """A line for each, wrapped, with what to do below it; the count of problems at the end."""
    lines = []
    for one in found:
        body = [one.value] + ([f"-> {one.todo}"] if one.todo else [])
        for number, text in enumerate(body):
            head = f"{one.state:<6}{one.check:<{_INDENT - 6}}" if number == 0 else " " * _INDENT
            lines.append(textwrap.fill(text, _COLUMNS, initial_indent=head,
                                       subsequent_indent=" " * _INDENT,
                                       break_long_words=False, break_on_hyphens=False))
    problems = sum(bool(one.todo) for one in found)
    lines.append(f"{problems or 'No'} problem{'' if problems == 1 else 's'}. "
                 "docs/troubleshooting.md has more; `sluice-bench doctor` looks at all ranks.")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints what it finds. Returns the exit code; bad flags raise SystemExit."""
    parser = Parser(prog="sluice-doctor", allow_abbrev=False,
                    description="Says what this installation has, and what to do about what it "
                                "lacks.",
                    epilog="Exit codes: 0; with --strict 1 where something is to be done; 2 bad "
                           "usage")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument("--json", action="store_true", help="print a list of objects instead")
    parser.add_argument("--strict", action="store_true",
                        help="end with 1 if there is something to do")
    flags: argparse.Namespace = parser.parse_args(arguments)
    found = findings()
    print(json.dumps([{**asdict(one), "state": one.state} for one in found], indent=1)
          if flags.json else text_of(found), end="\n" if flags.json else "")
    return int(flags.strict and any(one.todo for one in found))


if __name__ == "__main__":
    sys.exit(main())
