"""What users see of objects: in a prompt, in a notebook, in a traceback, in dir()."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sluice

VALUE = 123454321.0  # found in no other text


def test_reprs_of_a_session(session: sluice.Session) -> None:
    assert repr(session) == "<sluice.Session, rank 0 of 1>"
    session.close()
    assert repr(session) == "<sluice.Session, rank 0 of 1, closed>"


def test_reprs_of_a_stream(session: sluice.Session, tmp_path: Path) -> None:
    np.save(tmp_path / "items.npy", np.zeros((10, 2), np.float32))
    with session.stream(tmp_path, format="npy", batch_items=4) as stream:
        assert repr(stream) == "<sluice.Stream of 10 items, 4 a batch, 0 taken>"
        next(stream)
        assert repr(stream) == "<sluice.Stream of 10 items, 4 a batch, 4 taken>"
    assert repr(stream) == "<sluice.Stream, closed>"


def test_no_repr_prints_data(session: sluice.Session) -> None:
    array = np.full(3, VALUE, np.float32)
    tensor = sluice.Tensor("w", (3,), "f32", None, array)
    captured = sluice.capture(lambda pairs: [array.__setitem__(slice(None), tensor)
                                             for _, tensor in pairs],
                              [("w", (3,), "f32")], {"w": array})
    shown = [tensor, sluice.into({"w": array}, views={"w": {"v": array}}), captured,
             captured.copies, sluice.Boxes([sluice.Box((0,), (3,), array)], (3,)),
             session.transfer([tensor], {"w": np.zeros(3, np.float32)})]
    for one in shown:
        assert str(int(VALUE))[:6] not in repr(one).replace(",", "") and "array(" not in repr(one)


def cells(text: str) -> list[str]:
    return [cell.partition("</t")[0] for cell in text.replace("<th>", "<td>").split("<td>")[1:]]


def test_tables_of_notebooks(session: sluice.Session, tmp_path: Path) -> None:
    source, target = np.full(3000, VALUE, np.float32), np.zeros(3000, np.float32)
    transfer: Any = session.transfer({"w": source}, {"w": target})
    transfer.run()
    shown = cells(transfer.stats._repr_html_())
    assert shown[::2] == list(transfer.stats) and "12,000" in shown
    saved: Any = session.save(tmp_path, {"w": source}, progress=False)
    assert "12,000" in cells(saved._repr_html_())
    report: Any = session.report()
    assert str(report) in report._repr_html_()
    report.wires = [{"rank": 1, "wire": "<tcp>"}]
    assert cells(report._repr_html_()) == ["rank", "wire", "1", "&lt;tcp&gt;"]


def test_codes_have_names() -> None:
    error = sluice.PeerLost("gone")
    assert error.code == 14 and error.code is sluice.Code.UNAVAILABLE
    assert str(error.code) == "UNAVAILABLE"
    again = pickle.loads(pickle.dumps(sluice.InvalidSpec("bad", code=5)))
    assert again.code is sluice.Code.NOT_FOUND and type(again) is sluice.InvalidSpec


def test_exceptions_are_of_the_package() -> None:
    kinds = [getattr(sluice, name) for name in sluice.__all__]
    wrong = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, sluice.Error)
             and kind.__module__ != "sluice"]
    assert wrong == []


def test_dir_has_the_public_names() -> None:
    assert [name for name in dir(sluice) if not name.startswith("__")] == sorted(sluice.__all__)


@pytest.mark.parametrize("make, how", [
    (lambda: sluice.World("tcp://x:1"), "World.join"),
    (lambda: sluice.Session(), "Session.from_env"), (lambda: sluice.Session(2), "Session.local"),
])
def test_constructors_say_what_to_call(make: Any, how: str) -> None:
    with pytest.raises(TypeError) as error:
        make()
    assert how in str(error.value)


def test_every_public_name_is_described() -> None:
    kinds = {name: getattr(sluice, name) for name in sluice.__all__ if name != "NO_STREAM"}
    assert [name for name, value in kinds.items() if not (value.__doc__ or "").strip()] == []
    methods = {f"{name}.{own}": value for name, kind in kinds.items() if isinstance(kind, type)
               for own, value in vars(kind).items() if callable(value) and own[0] != "_"}
    assert "Session.load" in methods
    assert [name for name, value in methods.items() if not value.__doc__] == []
