"""`python -m sluice.top`: what it shows of a world, and that it is no member."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sluice
from ranks import LIMIT_SECONDS, SESSION_SECONDS, free_port, meet, run_ranks
from sluice import top

ROLES = {"server": 1, "trainer": 2}


def shown() -> str:
    """What one look prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert top.main(["--once"]) == 0
    return out.getvalue()


def rank_moves() -> Any:
    rank = int(os.environ["RANK"])
    role = "server" if rank == 0 else "trainer"
    with sluice.World.join(os.environ["SLUICE_WORLD"], role=role, rank=max(0, rank - 1),
                           size=ROLES[role], roles=ROLES) as world:
        with world.session(timeout=SESSION_SECONDS) as session:
            transfer = session.transfer({"w": bytearray(1000)} if rank == 1 else None,
                                        {"w": bytearray(1000)} if rank == 0 else None)
            transfer.run(17)
            text = ""
            if rank == 0:
                # The words are on their way: others' come over connections of their own.
                while len(re.findall(r" 17 +1 +", text)) < 3:
                    text = shown()
            members = [str(member) for member in world.members()]
            meet("the look")  # the server's is the store
            return [text, members]


def test_members_versions_and_rates() -> None:
    (text, members), (_, others), _ = run_ranks(3, rank_moves, session=False)
    assert len(members) == 3 and members == others, "a look is no member"
    lines = text.splitlines()
    assert lines[0].startswith("sluice at tcp://127.0.0.1:")
    assert lines[1].startswith("3 members, epoch 1, version 17, ")
    assert "GB/s received" in lines[1] and "waited for" not in lines[1]
    rows = [line.split() for line in lines[4:]]
    assert [row[:2] for row in rows] == [["server", "0"], ["trainer", "0"], ["trainer", "1"]]
    for row, member in zip(rows, members):
        assert f"process {row[3]} on {row[2]}" in member
        assert row[4:6] == ["17", "1"]
    # Trainer 1 has nothing that moves.
    assert float(rows[0][6]) > 0 and float(rows[1][6]) > 0 and float(rows[2][6]) == 0


def test_who_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"tcp://127.0.0.1:{free_port()}"
    with sluice.World.join(url, role="server", rank=0, size=1, roles=ROLES):
        assert top.main([url, "--once"]) == 0
    text = capsys.readouterr().out
    assert "1 member, no epoch yet, waited for: trainer 0, trainer 1\n" in text
    assert len(re.findall(r"trainer [01] .*has not come, waited for", text)) == 2


def test_lines_where_there_is_no_terminal_until_ctrl_c() -> None:
    url = f"tcp://127.0.0.1:{free_port()}"
    with sluice.World.join(url, role="server", rank=0, size=1, roles=ROLES):
        looking = subprocess.Popen(
            [sys.executable, "-m", "sluice.top", url, "--interval", "0.1"], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert looking.stdout is not None
        lines = [looking.stdout.readline() for _ in range(3)]
        looking.send_signal(signal.SIGINT)
        _, errors = looking.communicate(timeout=LIMIT_SECONDS)
    assert all(" 1 member, no epoch yet, waited for: trainer 0, " in line for line in lines)
    assert (looking.returncode, errors) == (0, "")


def test_a_terminal_is_redrawn_and_outlives_the_store() -> None:
    url = f"tcp://127.0.0.1:{free_port()}"
    master, slave = pty.openpty()
    with sluice.World.join(url, role="server", rank=0, size=1, roles=ROLES):
        looking = subprocess.Popen(
            [sys.executable, "-m", "sluice.top", url, "--interval", "0.1"], stdout=slave)
        os.close(slave)
        text = b""
        while text.count(b"\x1b[H") < 3:
            text += os.read(master, 4096)
    assert b"waited for: trainer 0, trainer 1" in text
    while b"trying again" not in text:
        text += os.read(master, 4096)
    looking.send_signal(signal.SIGINT)
    assert looking.wait(LIMIT_SECONDS) == 0
    os.close(master)


def test_a_world_of_another_name_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"tcp://127.0.0.1:{free_port()}"
    with sluice.World.join(url, role="server", rank=0, size=1, roles=ROLES):
        assert top.main([url, "--once", "--name", "other"]) == 0
    assert "0 members, no epoch yet\n" in capsys.readouterr().out


def test_a_token(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                 monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"tcp://127.0.0.1:{free_port()}"
    file = tmp_path / "token"
    file.write_text("secret")
    file.chmod(0o600)
    with sluice.World.join(url, role="server", rank=0, size=1, roles=ROLES, token="secret"):
        assert top.main([url, "--once"]) == 1
        assert "token" in capsys.readouterr().err
        assert top.main([url, "--once", "--token-file", str(file)]) == 0
        monkeypatch.setenv("SLUICE_TOKEN", "secret")
        assert top.main([url, "--once"]) == 0


@pytest.mark.parametrize("wrong", [["--interval", "0"], ["--interval", "x"], ["--nonsense"], []])
def test_bad_flags(wrong: list[str], monkeypatch: pytest.MonkeyPatch,
                   capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("SLUICE_WORLD", raising=False)
    with pytest.raises(SystemExit) as ended:
        top.main([*(["tcp://127.0.0.1:1"] if wrong else []), *wrong])
    assert ended.value.code == 2 and capsys.readouterr().err.count("\n") == 1


def test_a_bad_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert top.main(["nonsense", "--once"]) == 2
    assert "nonsense" in capsys.readouterr().err


def member(says: str, *, alive: bool = True, waits_in: str = "") -> dict[str, Any]:
    return {"role": "a", "rank": 0, "host": "h", "pid": 1, "alive": alive, "in_epoch": True,
            "waits_in": waits_in, "says": says}


@pytest.mark.parametrize("says", ["", "{", "[]", "3", '{"version": "x", "seconds": true}',
                                  '{"version": null}', '{"seconds": 0, "sent": 1}',
                                  '{"version": NaN}', '{"version": 1' + 400 * "0" + "}"])
def test_words_that_make_no_sense_are_left_out(says: str) -> None:
    look = {"epoch": 1, "members": [member(says)], "missing": []}
    assert top.rows_of(look, 0.0)[1][3] == "-"
    assert top.summary_of(look) == "1 member, epoch 1"


def test_nothing_moves_the_terminals_cursor() -> None:
    evil = member("", waits_in="")
    evil["host"] = "\x1b[2Jh\n"
    look = {"epoch": 0, "members": [evil], "missing": ["a \x07"]}
    text = top.text_of(look, "t\x1b", 0.0)
    assert "\x1b" not in text and "\x07" not in text and len(text.splitlines()) == 6


def test_states() -> None:
    lost = member("", alive=False)
    look = {"epoch": 2, "members": [lost], "missing": ["a 0"]}
    assert [row[-1] for row in top.rows_of(look, 0.0)[1:]] == ["lost, waited for"]
    waits = {"epoch": 2, "members": [member("", waits_in="epoch-3")], "missing": []}
    assert top.rows_of(waits, 0.0)[1][-1] == "waits for epoch 3"
    said = member('{"version": 4, "runs": 2, "sent": 0, "received": 3e9, "seconds": 2, "at": 90}')
    row = top.rows_of({"epoch": 2, "members": [said], "missing": []}, 100.0)[1]
    assert row[3:7] == ("4", "2", "1.5", "10 s ago")
