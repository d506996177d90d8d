"""Serves the store where the members of a world meet: `python -m sluice.store --port 4711`.

The program has the flags, the output and the exit codes of `sluice-store`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import signal
import sys
from collections.abc import Sequence

from . import __version__, _sluice
from ._errors import Error
from ._program import Parser, failed
from ._texts import is_utf8

_CONNECTIONS = 4096  # most systems let a process have fewer files at first


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 to 65535")
    return int(text)


def _text(text: str) -> str:
    if not is_utf8(text):
        raise argparse.ArgumentTypeError(f"{text!a} is not UTF-8")
    return text


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(
        prog="sluice-store", allow_abbrev=False,
        description="Serves the store where the members of a world meet, until SIGINT or SIGTERM. "
                    "It prints one line when it listens: listening on tcp://HOST:PORT",
        epilog="Exit codes: 0 all is well; 1 a failure; 2 bad usage")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument("--bind", type=_text, default="127.0.0.1", metavar="HOST",
                        help="address or name of this host to listen at; '' for all its "
                             "interfaces; others than 127.0.0.1 take a token [%(default)s]")
    parser.add_argument("--port", type=_port, default=0, metavar="PORT",
                        help="port to listen at [0: any free one]")
    parser.add_argument("--token-file", type=_text, default="", metavar="FILE",
                        help="file with the secret that members must know, which is never sent")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until SIGINT or SIGTERM. Returns the exit code; bad flags raise SystemExit."""
    flags = _parse(arguments)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _CONNECTIONS if hard == resource.RLIM_INFINITY else min(hard, _CONNECTIONS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    # The store's thread must not hear of signals, so they are blocked before it is there.
    ends = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        server = _sluice.StoreServer(flags.bind, flags.port, token_file=flags.token_file)
        with contextlib.suppress(OSError):  # members may come where nobody reads this
            os.write(1, f"listening on {server.address}\n".encode())
        signal.sigwait(ends)
        server.close()
    except Error as error:
        return failed("sluice-store", error)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return 0


if __name__ == "__main__":
    sys.exit(main())
