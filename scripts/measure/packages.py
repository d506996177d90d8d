"""Python packages of competitors, in an environment of their own."""
import os
import subprocess
import sys

from rounds import ROOT, call, say


def options(parser, name):
    parser.add_argument("--venv", default=ROOT / f"build/{name}", metavar="DIR",
                        help=f"Python packages go there, and stay [build/{name}]")


class Environment:
    def __init__(self, folder):
        self.python = os.path.join(folder, "bin", "python")
        if not os.path.exists(self.python):
            call([sys.executable, "-m", "venv", folder])

    def install(self, packages):
        """Why they cannot be had; nothing if they are there."""
        names = ",".join(packages)
        have = [self.python, "-c", "import importlib.metadata as m, sys; "
                "[m.version(name) for name in sys.argv[1].split(',')]", names]
        if subprocess.run(have, stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return ""
        say(f"installing {names}")
        done = subprocess.run([self.python, "-m", "pip", "install", "--quiet",
                               "--disable-pip-version-check", "--no-cache-dir", *packages],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode == 0:
            return ""
        said = done.stdout.strip().splitlines()
        return f"pip cannot install {names}: {said[-1] if said else done.returncode}"
