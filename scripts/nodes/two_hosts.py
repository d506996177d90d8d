"""Two hosts that are namespaces of this machine, with a link between them: for two_jobs.py,
two_nodes.py and wires.py. A host has a network of its own, and by default processes, a name and
shared memory. Files on disk are common to all.
"""
import contextlib
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import spawn

NAMES = ("host-a", "host-b")
ADDRESSES = ("10.78.0.1", "10.78.0.2")
DEVICE = "veth0"
NOBODY = "02:00:00:00:00:99"  # an Ethernet address that no device has
APART = {"uts": "-u", "ipc": "-i", "pid": "-p"}  # more namespaces, and the flags of nsenter


class NotAllowed(Exception):
    """This system does not let this user make namespaces, or lacks a program for it."""


def check_rate(text):
    """A rate as tc spells it, such as 10gbit."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?([kmgt]i?)?(bit|bps)", text):
        raise ValueError(f"a rate such as 10gbit, not '{text}'")
    return text


ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def uninterrupted():
    """Signals that end this process come later: between the start of another one and a note of it
    they would leave that one alone."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDINGS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def die_with_this():
    """What a new process does before its program, so as not to outlive this one."""
    return functools.partial(spawn.end_with, os.getpid())


class TwoHosts:
    """Made by its constructor, which raises NotAllowed. `end` ends the hosts, and all that runs on
    those with processes of their own. So does the end of this process.

    `apart`: of APART. `names_file`: in place of /etc/hosts; then /sys is the host's, too, where UCX
    finds its devices."""

    def __init__(self, rate=None, names=NAMES, addresses=ADDRESSES, apart=tuple(APART),
                 names_file=None):
        self.names, self.addresses, self.apart = names, addresses, apart
        self.names_file = names_file
        self.hosts = []  # processes of `unshare`
        self.firsts = []  # process ids of the first process of each
        if os.getuid() != 0:
            raise NotAllowed("making network namespaces takes root")
        for program in ("ip", "tc", "unshare", "nsenter"):
            if shutil.which(program) is None:
                raise NotAllowed(f"there is no program '{program}' here")
        try:
            if names_file is not None:
                pathlib.Path(names_file).write_text("".join(
                    f"{address} {name}\n" for address, name in
                    [("127.0.0.1", "localhost"), *zip(addresses, names)]))
            for name in names:
                self._start(name)
            self._link(rate)
        except BaseException:
            self.end()
            raise

    def _start(self, name):
        # The first process of a host sleeps.
        first = ["ip link set lo up", "echo up", "exec sleep infinity"]
        if self.names_file is not None:
            first[:0] = [f"mount --bind '{self.names_file}' /etc/hosts", "mount -t sysfs node /sys"]
        if "ipc" in self.apart:
            first.insert(0, "mount -t tmpfs -o size=50% tmpfs /dev/shm")
        if "uts" in self.apart:
            first.insert(0, f"hostname {name}")
        command = ["unshare", "--net", "--mount", *(f"--{kind}" for kind in self.apart), "--fork",
                   "--kill-child", *["--mount-proc"] * ("pid" in self.apart), "sh", "-c",
                   " && ".join(first)]
        with uninterrupted():
            host = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, preexec_fn=die_with_this())
            self.hosts.append(host)
        if host.stdout.readline() != "up\n":
            raise NotAllowed(f"this system does not let root make namespaces: "
                             f"{host.stderr.read().strip()}")
        children = pathlib.Path(f"/proc/{host.pid}/task/{host.pid}/children").read_text()
        self.firsts.append(children.split()[0])

    def _link(self, rate):
        self._run(["ip", "link", "add", DEVICE, "netns", self.firsts[0], "type", "veth", "peer",
                   "name", DEVICE, "netns", self.firsts[1]])
        for host, address in enumerate(self.addresses):
            if rate is not None:
                # A burst takes two of the segments that the kernel hands over as one.
                self._run(self.on(host, ["tc", "qdisc", "add", "dev", DEVICE, "root", "handle",
                                         "1:", "htb", "default", "1"]))
                self._run(self.on(host, ["tc", "class", "add", "dev", DEVICE, "parent", "1:",
                                         "classid", "1:1", "htb", "rate", rate, "burst", "128k",
                                         "cburst", "128k", "quantum", "65536"]))
            self._run(self.on(host, ["ip", "address", "add", f"{address}/24", "dev", DEVICE]))
            self._run(self.on(host, ["ip", "link", "set", DEVICE, "up"]))

    @staticmethod
    def _run(command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode != 0:
            raise NotAllowed(f"'{' '.join(command)}' fails: {done.stdout.strip()}")
        return done.stdout

    def on(self, host, command):
        """The command that runs `command` on host 0 or 1, in the folder of the caller."""
        return ["nsenter", *self.entry(host), f"--wd={os.getcwd()}", *command]

    def entry(self, host):
        """The arguments of nsenter."""
        return ["-t", self.firsts[host], "-n", "-m", *(APART[kind] for kind in self.apart)]

    def write_agent(self, folder):
        """What mpirun starts its daemon on a host with, in place of ssh: AGENT HOST COMMAND... Of
        hosts that see each other's processes."""
        cases = "".join(f'  {name}) set -- {" ".join(self.entry(host))} sh -c "$*" ;;\n'
                        for host, name in enumerate(self.names))
        agent = pathlib.Path(folder, "agent")
        agent.write_text(f'#!/bin/sh\nhost=$1\nshift\ncase $host in\n{cases}esac\n'
                         'exec nsenter "$@"\n')
        agent.chmod(0o755)
        return str(agent)

    def _neighbours(self, *change):
        for host, other in enumerate(reversed(self.addresses)):
            self._run(self.on(host, ["ip", "neigh", change[0], other, *change[1:], "dev", DEVICE]))

    def cut(self):
        """From now on no packet arrives, in both directions, and nobody is told: frames go to an
        Ethernet address that no device has."""
        self._neighbours("replace", "lladdr", NOBODY, "nud", "permanent")

    def heal(self):
        self._neighbours("del")

    def end(self):
        for host in self.hosts:
            host.kill()  # its child, the first process of the host, dies with it
            host.wait()
            host.stdout.close()
            host.stderr.close()
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and any(map(_runs, self.firsts)):
            time.sleep(0.01)


def _runs(pid):
    return pathlib.Path("/proc", pid).exists()
