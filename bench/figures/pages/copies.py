"""Copies of rows and casts of tensors over memcpy's rate, of copies.json."""
import re

from pages.markdown import size, spread_of, table

GAPS = {"1": "the source", "2": "the destination", "3": "both"}


def _named(results, pattern):
    data = results.get("copies")
    return [(re.match(pattern, run["name"]).groups(), run["ratio"])
            for run in (data["results"] if data else ()) if re.match(pattern, run["name"])]


def casts(results):
    """Of whole tensors: plain and streaming stores, on one core and on two."""
    found = _named(results, r"Cast/ratio_(\w+)/streaming:(\d)/threads:(\d)")
    cells = {key: ratio for key, ratio in found}
    names = list(dict.fromkeys(key[0] for key in cells))
    columns = [("0", "1"), ("1", "1"), ("0", "2"), ("1", "2")]
    rows = [[name.replace("_", " ")] + [_cell(cells.get((name, *column))) for column in columns]
            for name in names]
    return table(["rate / memcpy's", "plain", "streaming", "two cores: plain", "streaming"],
                 rows) if rows else ""


def rows(results):
    """Rows whose gaps are seven times as long as they are, streaming stores, one core."""
    found = _named(results, r"Rows/row_bytes:(\d+)/gaps:(\d)/streaming:1/threads:1")
    cells = {key: ratio for key, ratio in found}
    lengths = sorted({int(key[0]) for key in cells})
    lines = [[size(length)] + [_cell(cells.get((str(length), gap))) for gap in GAPS]
             for length in lengths]
    return table(["rate / memcpy's, row"] + [f"gaps in {name}" for name in GAPS.values()],
                 lines) if lines else ""


def _cell(entry):
    return spread_of(entry) if entry else "-"
