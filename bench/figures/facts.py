"""The facts about the machine and the programs that a figure needs to be read; none names it."""
import json
import os
import platform
import re
import subprocess


def machine(bench):
    return {"cpus": os.cpu_count(), "cpu": _cpu_model(), "memory_gib": _memory_gib(),
            "kernel": platform.release(), "sluice": _sluice(bench),
            "fio": _version(["fio", "--version"]), "curl": _version(["curl", "--version"]),
            "nginx": _version(["nginx", "-v"])}


def _cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        return re.search(r"model name\s*: (.*)", info.read()).group(1)


def _memory_gib():
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30), 1)


def _sluice(bench):
    """The smallest run says what it was built with."""
    command, file = bench.command("generator", items=1, item_bytes=4096)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    results = json.loads(file.read_text(encoding="utf-8"))
    file.unlink()
    return f"{results['version']} ({results['built_with']}; {results['config']['mpi']})"


def _version(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=True)
    except FileNotFoundError:
        return "not installed"
    return re.search(r"\d+(\.\d+)+", done.stdout).group(0)
