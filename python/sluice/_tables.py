"""Results as notebooks show them: tables of HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any


def table(rows: Iterable[Iterable[Any]], header: Iterable[str] = ()) -> str:
    """The rows as HTML. Numbers have separators between thousands."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    lines = [f"<tr>{head}</tr>"] if head else []
    for row in rows:
        lines.append("<tr>" + "".join(f"<td>{escape(_text(cell))}</td>" for cell in row) + "</tr>")
    return f"<table>{''.join(lines)}</table>"


def _text(cell: Any) -> str:
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    return f"{cell:,.6g}" if isinstance(cell, float) else str(cell)


class Stats(dict[str, Any]):
    """Numbers by name: a dict, which notebooks show as a table."""

    def _repr_html_(self) -> str:
        return table(self.items())


class Report(str):
    """A text, which notebooks show as a table of the wires to other ranks."""

    wires: list[Mapping[str, Any]]

    def _repr_html_(self) -> str:
        if not self.wires:
            return f"<p>{escape(self)}</p>"
        names = list(self.wires[0])
        return table(([wire.get(name, "") for name in names] for wire in self.wires), names)
