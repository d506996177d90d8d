"""`python -m sluice.doctor`: what it finds, and what it ends with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sluice
from ranks import LIMIT_SECONDS
from sluice import doctor


def run(*flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "sluice.doctor", *flags], text=True,
                          capture_output=True, timeout=LIMIT_SECONDS, check=False,
                          env={**os.environ, **environment})


def found(*flags: str, **environment: str) -> dict[str, dict[str, Any]]:
    done = run("--json", *flags, **environment)
    assert done.returncode == 0, done.stderr
    return {one["check"]: one for one in json.loads(done.stdout)}


def test_every_check_has_a_value_and_problems_a_remedy() -> None:
    done = run()
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 100 or "/" in done.stdout
    checks = found()
    for name in ("sluice", "other sluice", "python", "torch", "numpy", "cuda", "wires", "copies",
                 "memfd", "/dev/shm", "memlock", "open files", "io_uring", "world"):
        assert checks[name]["value"]
        assert (checks[name]["state"] == "ok") == (checks[name]["todo"] == "")
        assert f" {name} " in done.stdout
    assert sluice.__version__ in checks["sluice"]["value"]
    problems = sum(one["todo"] != "" for one in checks.values())
    assert f"{problems or 'No'} problem" in done.stdout.splitlines()[-1] + done.stdout
    assert run("--strict").returncode == (1 if problems else 0)


def test_a_world_beyond_loopback_wants_a_token() -> None:
    open_world = found(SLUICE_WORLD="tcp://10.0.0.7:4711", SLUICE_TOKEN="")["world"]
    assert "10.0.0.7:4711" in open_world["value"] and "SLUICE_TOKEN" in open_world["todo"]
    assert run("--strict", SLUICE_WORLD="tcp://10.0.0.7:4711", SLUICE_TOKEN="").returncode == 1
    kept = found(SLUICE_WORLD="tcp://10.0.0.7:4711", SLUICE_TOKEN="x")["world"]
    assert kept["todo"] == "" and "prove" in kept["value"]
    near = found(SLUICE_WORLD="tcp://127.0.0.1:4711", SLUICE_TOKEN="")["world"]
    assert near["todo"] == "" and "this host alone" in near["value"]


def test_a_strangers_package_is_named(tmp_path: Path) -> None:
    assert found()["other sluice"]["todo"] == ""
    stranger = tmp_path / "sluice-0.3.1.dist-info"
    stranger.mkdir()
    (stranger / "METADATA").write_text("Metadata-Version: 2.1\nName: sluice\nVersion: 0.3.1\n")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    other = found(PYTHONPATH=path)["other sluice"]
    assert "0.3.1" in other["value"] and "pip uninstall sluice" in other["todo"]


def test_bad_flags(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        doctor.main(["--nonsense"])
    assert ended.value.code == 2 and capsys.readouterr().err.count("\n") == 1
