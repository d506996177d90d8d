"""`python -m sluice.store`, by the test of the program sluice-store: both have one behaviour."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

_TEST = Path(__file__).resolve().parents[2] / "tests/world/store/program_test.py"


def test_module_is_the_program(tmp_path: Path) -> None:
    program = tmp_path / "sluice-store"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m sluice.store "$@"\n')
    program.chmod(0o700)
    done = subprocess.run([sys.executable, str(_TEST), str(program)], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr
