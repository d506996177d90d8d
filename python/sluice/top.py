"""Shows who is in a world and what moves there: `python -m sluice.top tcp://HOST:PORT`.

It looks at the store, is no member, and changes nothing. Members tell the store after a run, at
most once a second, which version they have and how fast it came.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from typing import Any

from . import __version__, _sluice
from ._errors import Error
from ._program import Parser, failed
from ._texts import listed

_ALL = "\x1b[2J"  # erases the screen
_HOME = "\x1b[H"  # to the first line
_REST = "\x1b[K"  # erases the rest of a line
_BELOW = "\x1b[J"  # and of the screen
_KEYS = ("version", "runs", "sent", "received", "seconds", "at")  # of what members say
_MOST = 1e19


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds from 0.1 to 3600")
    return value


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(
        prog="sluice-top", allow_abbrev=False,
        description="Shows the members of a world, its epoch, versions and rates, and who is "
                    "waited for. Redraws a terminal until Ctrl-C; elsewhere it prints lines.",
        epilog="The token is that of SLUICE_TOKEN or SLUICE_TOKEN_FILE, too. Exit codes: 0 all is "
               "well; 1 the store cannot be reached; 2 bad usage")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument("url", nargs="?", default=os.environ.get("SLUICE_WORLD", ""),
                        metavar="tcp://HOST:PORT", help="where the store is [SLUICE_WORLD]")
    parser.add_argument("--name", default=os.environ.get("SLUICE_WORLD_NAME") or "sluice",
                        help="of the world at that store [SLUICE_WORLD_NAME, or sluice]")
    parser.add_argument("--token-file", default="", metavar="FILE",
                        help="file with the secret of the members")
    parser.add_argument("--interval", type=_seconds, default=1.0, metavar="SECONDS",
                        help="between two looks [%(default)s]")
    parser.add_argument("--once", action="store_true", help="look once, print all, and end")
    flags = parser.parse_args(arguments)
    if not flags.url:
        parser.error("say where the store is: sluice.top tcp://HOST:PORT, or SLUICE_WORLD")
    return flags


def status_of(says: str) -> dict[str, float]:
    """What a member has said, as far as it makes sense: whoever has the token may say anything."""
    try:
        said = json.loads(says)
    except ValueError:
        return {}
    if not isinstance(said, dict):
        return {}
    return {key: float(said[key]) for key in _KEYS
            if type(said.get(key)) in (int, float) and -_MOST < said[key] < _MOST}


def _rate(status: dict[str, float], *what: str) -> float | None:
    """GB/s of the last run: the most of what was sent or received."""
    seconds = status.get("seconds", 0.0)
    moved = [status[key] for key in what if key in status]
    return max(moved) / seconds / 1e9 if seconds > 0 and moved else None


def _plain(text: str) -> str:
    """Without what moves a terminal's cursor."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def rows_of(look: dict[str, Any], now: float) -> list[tuple[str, ...]]:
    """A line of cells for each member, then one for each that has not come."""
    rows = [("member", "host", "process", "version", "runs", "GB/s", "last run", "")]
    lost = set()
    for member in look["members"]:
        name = f"{member['role']} {member['rank']}"
        status = status_of(member["says"])
        rate = _rate(status, "sent", "received")
        state = ""
        if not member["alive"]:
            lost.add(name)
            state = "lost, waited for"
        elif member["waits_in"]:
            epoch = member["waits_in"].rpartition("epoch-")[2]
            state = f"waits for epoch {epoch}" if epoch.isdigit() else "waits for the others"
        elif not member["in_epoch"] and look["epoch"]:
            state = "in no epoch yet"
        rows.append((
            name, member["host"], str(member["pid"]),
            f"{status['version']:.0f}" if "version" in status else "-",
            f"{status['runs']:.0f}" if "runs" in status else "-",
            "-" if rate is None else f"{rate:.3g}",
            f"{max(0.0, now - status['at']):.0f} s ago" if "at" in status else "-", state))
    rows += [(name, "-", "-", "-", "-", "-", "-", "has not come, waited for")
             for name in look["missing"] if name not in lost]
    return [tuple(_plain(cell) for cell in row) for row in rows]


def summary_of(look: dict[str, Any]) -> str:
    """One line: members, epoch, version, rate, and who is waited for."""
    statuses = [status_of(member["says"]) for member in look["members"] if member["alive"]]
    versions = [status["version"] for status in statuses if "version" in status]
    rates = [rate for status in statuses if (rate := _rate(status, "received")) is not None]
    alive = sum(bool(member["alive"]) for member in look["members"])
    parts = [f"{alive} member{'' if alive == 1 else 's'}", f"epoch {look['epoch']}" if look["epoch"] else "no epoch yet"]
    if versions:
        parts.append(f"version {max(versions):.0f}")
        if min(versions) < max(versions):
            parts.append(f"oldest {min(versions):.0f}")
    if rates:
        parts.append(f"{sum(rates):.3g} GB/s received")
    if look["missing"]:
        parts.append("waited for: " + listed(look["missing"], 8))
    return _plain(", ".join(parts))


def text_of(look: dict[str, Any], title: str, now: float) -> str:
    """All of it, as lines."""
    rows = rows_of(look, now)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [f"{_plain(title)}  {time.strftime('%H:%M:%S', time.localtime(now))}",
             summary_of(look), ""]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
              for row in rows]
    return "\n".join(lines) + "\n"


def _redraw(text: str) -> None:
    """Over what the terminal shows, as far as there is room."""
    columns, height = shutil.get_terminal_size()
    lines = [line[:columns - 1] for line in text.split("\n")[:max(1, height - 1)]]
    sys.stdout.write(_HOME + "".join(f"{line}{_REST}\n" for line in lines) + _BELOW)
    sys.stdout.flush()


def _watch(flags: argparse.Namespace) -> int:
    token = "" if flags.token_file else os.environ.get("SLUICE_TOKEN", "")
    token_file = flags.token_file or ("" if token else os.environ.get("SLUICE_TOKEN_FILE", ""))
    title = f"{flags.name} at {flags.url}"
    live = sys.stdout.isatty() and not flags.once
    client: _sluice.StoreClient | None = None
    met = False
    while True:
        now = time.time()
        try:
            client = client or _sluice.StoreClient.connect(flags.url, token=token,
                                                           token_file=token_file, timeout=10.0)
            look = client.look(flags.name)
            text, line = text_of(look, title, now), summary_of(look)
            if flags.once:
                print(text, end="")
                return 0
            if live and not met:
                sys.stdout.write(_ALL)
            met = True
        except Error as error:
            if not met:
                raise
            client = None  # it may be another store's turn
            line = _plain(f"trying again: {error}")
            text = f"{_plain(title)}\n{line}\n"
        if live:
            _redraw(text)
        else:
            print(f"{time.strftime('%H:%M:%S', time.localtime(now))} {line}", flush=True)
        time.sleep(flags.interval)


def main(arguments: Sequence[str] | None = None) -> int:
    """Looks until Ctrl-C, or once. Returns the exit code; bad flags raise SystemExit."""
    flags = _parse(arguments)
    try:
        return _watch(flags)
    except (KeyboardInterrupt, BrokenPipeError):
        return 0
    except Error as error:
        return failed("sluice-top", error)


if __name__ == "__main__":
    sys.exit(main())
