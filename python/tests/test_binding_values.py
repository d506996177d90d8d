"""What the binding takes and gives: types, layouts, options, checksums, errors."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from local_ranks import entry, on_ranks, view, whole_on

from sluice import _sluice


def test_dtypes_have_names_and_sizes() -> None:
    sizes = {name: _sluice.dtype_bytes(name) for name in _sluice.dtypes()}
    assert sizes["bf16"] == 2 and sizes["f8e4m3"] == 1 and sizes["c128"] == 16
    assert len(sizes) == 22
    with pytest.raises(Exception, match="f99"):
        _sluice.dtype_bytes("f99")
    with pytest.raises(TypeError, match="dtype"):
        _sluice.dtype_bytes(3)


def test_layouts() -> None:
    layout = _sluice.Layout([2, 2], [3, 1, 0, 2], ["S(0)", "SS(1,2)"], [1, 0])
    assert layout.ranks == [3, 1, 0, 2] and layout.sizes == [2, 2]
    assert layout.placements == ["S(0)", "SS(1,2)"] and layout.order == [1, 0]
    assert layout.local_shape((4, 8), 3) == (2, 4)
    assert layout.owned_ranges((4, 8), 3) == [[(0, 2)], [(0, 2), (4, 6)]]
    same = _sluice.Layout([2, 2], [3, 1, 0, 2], ["S(0)", "SS(1,2)"], [1, 0])
    assert layout == same and hash(layout) == hash(same) and layout != "layout"
    assert layout != _sluice.Layout([2, 2], [3, 1, 0, 2], ["S(0)", "R"])
    assert repr(layout) == "Layout([2, 2], [3, 1, 0, 2], ['S(0)', 'SS(1,2)'], [1, 0])"
    assert _sluice.Layout([2], [4, 5], ["R"]).is_first_copy(4)
    assert not _sluice.Layout([2], [4, 5], ["R"]).is_first_copy(5)
    with pytest.raises(Exception, match="more than once"):
        _sluice.Layout([2], [1, 1], ["R"])
    with pytest.raises(Exception, match="placements"):
        _sluice.Layout([2], [0, 1], ["R", "R"])
    with pytest.raises(Exception, match="T"):
        _sluice.Layout([2], [0, 1], ["T(0)"])
    with pytest.raises(Exception, match="overlap"):
        _sluice.Layout.boxes(0, [((0,), (4,)), ((3,), (4,))])


def test_options_that_nobody_knows_are_refused() -> None:
    fabrics = _sluice.local_fabrics(1)
    with pytest.raises(ValueError, match="bucket_byte") as refused:
        fabrics[0].session({"bucket_byte": 1})
    assert "bucket_bytes" in str(refused.value)
    with pytest.raises(ValueError, match="'coalesce' is 'yes'; it has to be bool"):
        fabrics[0].session({"coalesce": "yes"})
    with pytest.raises(ValueError, match="'timeout' is 'soon'; it has to be int or float"):
        fabrics[0].session({"timeout": "soon"})
    session = fabrics[0].session({"timeout": 120, "patience": None, "budget_buckets": None,
                                  "budget_bytes": 1 << 20})
    assert session.slots > 0
    session.close()
    with pytest.raises(Exception, match="has a session"):
        fabrics[0].session({})


@pytest.mark.parametrize("bad", [
    (1, 2),
    ("w", (2,), "u8", "R", None),
    ("w", "2", "u8", None, None),
    ("w", (2,), "u8", _sluice.Layout([1], [0], ["R"]), (0, (2,))),
    ("w", (2,), "u8", _sluice.Layout([1], [0], ["R"]), (0, (2,), (1, 1), "u8", 1, 0)),
    ("w", (2,), "u8", _sluice.Layout([1], [0], ["R"]), (0, (2,), None, "u8", 9, 0)),
    ("w", (2,), "u8", _sluice.Layout([1], [0], ["R"]), ("x", (2,), None, "u8", 1, 0)),
    ("w", (2,), "u8", _sluice.Layout([1], [0], ["R"]), None, "first"),
])
def test_entries_that_are_none_raise_before_anything_is_called(native: Any, bad: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        native.connect([bad], [])
    assert native.connect([], []).start().wait(120)


SHAPE = (6, 5, 7)


def checksum(data: Any, dtype: str, layout: Any) -> int:
    """Over one copy of each element, of parts cut from the whole tensor's elements as bytes."""
    total = 0
    for rank in filter(layout.is_first_copy, layout.ranks):
        owned = [[i for begin, end in ranges for i in range(begin, end)]
                 for ranges in layout.owned_ranges(SHAPE, rank)]
        part = bytearray(data[np.ix_(*owned)].tobytes())
        local = layout.local_shape(SHAPE, rank)
        total += _sluice.checksum(SHAPE, dtype, layout, rank, view(part, local, dtype))
    return total % 2**64


@pytest.mark.parametrize("dtype", ["u8", "bf16", "f32", "f64", "c128"])
def test_checksums_do_not_depend_on_layouts(dtype: str) -> None:
    data = np.random.default_rng(3).integers(0, 256, (*SHAPE, _sluice.dtype_bytes(dtype)), np.uint8)
    layouts = [_sluice.Layout([1], [0], ["R"]), _sluice.Layout([3], [2, 0, 1], ["R"]),
               _sluice.Layout([4], [0, 1, 2, 3], ["S(2)"]),
               _sluice.Layout([2, 2], [0, 1, 2, 3], ["R", "S(1)"]),
               _sluice.Layout([2, 3], [0, 1, 2, 3, 4, 5], ["SS(0,2)", "S(0)"])]
    sums = {checksum(data, dtype, layout) for layout in layouts}
    assert len(sums) == 1
    data[2, 3, 4, 0] ^= 1
    assert checksum(data, dtype, layouts[2]) not in sums
    data[2, 3, 4, 0] ^= 1
    data[0, 0, :2] = data[0, 0, 1::-1].copy()  # two elements change places
    assert checksum(data, dtype, layouts[0]) not in sums


def test_checksums_of_boxes_and_strides() -> None:
    data = bytearray(range(48))
    whole = _sluice.checksum((6, 8), "u8", _sluice.Layout([1], [0], ["R"]), 0, view(data, (6, 8)))
    address = view(data, (6, 8))[0]
    boxes = _sluice.Layout.boxes(2, [((0, 0), (6, 3)), ((0, 3), (6, 5))])
    views = [(address, (6, 3), (8, 1), "u8", 1, 0), (address + 3, (6, 5), (8, 1), "u8", 1, 0)]
    assert _sluice.checksum((6, 8), "u8", boxes, 2, views) == whole
    with pytest.raises(Exception, match="reduced"):
        _sluice.checksum((6, 8), "u8", _sluice.Layout([1], [0], ["P(sum)"]), 0, view(data, (6, 8)))
    with pytest.raises(Exception, match="shape"):
        _sluice.checksum((6, 8), "u8", _sluice.Layout([1], [0], ["R"]), 0, view(data, (8, 6)))
    with pytest.raises(Exception, match="f16"):
        _sluice.checksum((6, 8), "u8", _sluice.Layout([1], [0], ["R"]), 0,
                         view(data, (6, 8), "f16"))


def test_a_trace_says_what_a_run_did(native: Any, tmp_path: Any) -> None:
    def work(session: Any, rank: int) -> bytes:
        data = bytearray(1 << 16)
        session.connect([entry("x", (1 << 16,), whole_on(0), data)] if rank == 0 else [],
                        [entry("x", (1 << 16,), whole_on(1), data)] if rank == 1 else []
                        ).start().wait(120)
        session.write_trace(tmp_path / f"{rank}.json")
        record = session.trace()
        session.clear_trace()
        assert len(session.trace()) < len(record)
        counters = session.counters()
        assert counters["buckets_finished"] > 0
        session.reset_counters()
        assert session.counters()["buckets_finished"] == 0
        return record

    records = on_ranks(2, work, trace_events=1000)
    joined = json.loads(_sluice.chrome_trace([(record, 0, f"node {rank}")
                                              for rank, record in enumerate(records)]))
    assert {event["pid"] for event in joined["traceEvents"]} == {1, 2}
    for rank in range(2):
        alone = json.loads((tmp_path / f"{rank}.json").read_text())
        assert {event["pid"] for event in alone["traceEvents"]} == {rank + 1}
    with pytest.raises(Exception, match="log|trace"):
        _sluice.chrome_trace([(b"nonsense", 0, "")])
    pytest.raises(Exception, native.trace)


def test_addresses_of_this_host() -> None:
    addresses = _sluice.host_addresses()
    assert addresses
    assert addresses == ["127.0.0.1"] or not any(one.startswith("127.") for one in addresses)
