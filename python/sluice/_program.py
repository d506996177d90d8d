"""What the programs of the package have in common: `python -m sluice.store` and others."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from ._errors import Code, Error


class Parser(argparse.ArgumentParser):
    """Says in one line which argument is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def failed(program: str, error: Error) -> int:
    """Prints the error. The exit code: 2 of bad usage, 1 of a failure."""
    print(f"{program}: {error}", file=sys.stderr)
    return 2 if error.code in (Code.INVALID_ARGUMENT, Code.NOT_FOUND) else 1
