"""Values of a state dict that are no tensors, in checkpoints; and which names a load asks for."""

from __future__ import annotations

import copy
import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sluice
from ranks import error_of, run_ranks
from sluice._values import decoded, encoded

#: Each kind of value that JSON alone would change or refuse, too.
VALUES: dict[str, Any] = {
    "step": 3, "big": 1 << 80, "lr": 0.1 + 0.2, "inf": float("inf"), "yes": True, "one": 1.0,
    "none": None, "text": "é\udcff\0", "list": [1, [2.5, None]], "tuple": (0.9, (0.999,)),
    "empty": [], "groups": [{"betas": (0.9, 0.999), "params": [0, 1], "fused": None}],
    "keys": [{0: "a", "0": "b"}, {"!tuple": [1]}, {"!dict": 2}],
    "deep": {"a": {1: "x"}},
}


def state(**more: Any) -> dict[str, Any]:
    return {"w": np.arange(4, dtype=np.float32), **copy.deepcopy(VALUES), **more}


def blank(value: Any = 0) -> dict[str, Any]:
    """The same names with other values."""
    return {"w": np.zeros(4, np.float32), **{name: value for name in VALUES if name != "deep"},
            "deep": {"a": {1: value}}}


def kinds(value: Any) -> Any:
    """The value with its types, which == ignores."""
    if isinstance(value, (list, tuple)):
        return type(value), [kinds(each) for each in value]
    if isinstance(value, dict):
        return [(kinds(key), kinds(each)) for key, each in value.items()]
    return type(value), value


@pytest.mark.parametrize("name", VALUES)
def test_json_gives_equal_values(name: str) -> None:
    again = decoded(json.loads(json.dumps(encoded(VALUES[name]))))
    assert kinds(again) == kinds(VALUES[name])


def in_itself() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@pytest.mark.parametrize("value, words", [
    (in_itself(), "nested too deeply"), ({"a": [in_itself()]}, "nested too deeply"),
    (10 ** 5000, "digits")], ids=["list", "dict", "number"])
def test_what_json_cannot_hold(session: sluice.Session, tmp_path: Path, value: Any,
                               words: str) -> None:
    for use in session.save, session.load:
        with pytest.raises(sluice.InvalidSpec, match=f"'odd' cannot be kept: .*{words}"):
            use(tmp_path, state(odd=value), progress=False)


def test_a_kind_of_dict_in_a_list(session: sluice.Session, tmp_path: Path) -> None:
    session.save(tmp_path, state(odd=[OrderedDict(a=1)]), progress=False)
    found = state(odd=None)
    session.load(tmp_path, found, progress=False)
    assert found["odd"] == [{"a": 1}]


@pytest.mark.parametrize("shard_bytes_max", [1 << 30, 16])
@pytest.mark.parametrize("before", [0, None])
def test_save_and_load(session: sluice.Session, tmp_path: Path, shard_bytes_max: int,
                       before: Any) -> None:
    session.save(tmp_path, state(v=np.ones(4, np.float32)), shard_bytes_max=shard_bytes_max,
                 progress=False)
    assert (tmp_path / "model.safetensors.index.json").exists() == (shard_bytes_max == 16)
    found = blank(before)
    session.load(tmp_path, found, progress=False)
    assert found["w"].tolist() == [0, 1, 2, 3]
    assert kinds({name: found[name] for name in VALUES}) == kinds(VALUES)


def test_a_tensor_in_a_list(session: sluice.Session, tmp_path: Path) -> None:
    session.save(tmp_path, {"groups": [{"lr": np.array(0.5), "params": [0]}, {"lr": 2}]},
                 progress=False)
    found: Any = {"groups": [{"lr": np.zeros(()), "params": []}, {"lr": 0}]}
    session.load(tmp_path, found, strict=True, progress=False)
    assert found["groups"][0]["lr"] == 0.5
    assert found["groups"][0]["params"] == [0] and found["groups"][1] == {"lr": 2}


@pytest.mark.parametrize("wrong", [{1, 2}, object(), [np.zeros(1), {3}], {"a": ...}])
def test_other_objects_are_refused(session: sluice.Session, tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(sluice.InvalidSpec, match="'wrong"):
        session.save(tmp_path, state(wrong=wrong), progress=False)
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_has_a_tensor(session: sluice.Session, tmp_path: Path) -> None:
    with pytest.raises(sluice.InvalidSpec, match="has a tensor at least"):
        session.save(tmp_path, {"step": 3}, progress=False)


def test_strict(session: sluice.Session, tmp_path: Path) -> None:
    saved = {"a": np.ones(2, np.float32), "b": np.ones(2, np.float32), "step": 3, "lr": 0.5}
    session.save(tmp_path, saved, progress=False)

    def load(strict: bool | None, **given: Any) -> Any:
        stats = session.load(tmp_path, given, strict=strict, progress=False)
        return stats.get("missing"), stats.get("unexpected"), given

    some = {"a": np.zeros(2, np.float32), "step": 0}
    assert load(None, **some)[2]["step"] == 3
    assert load(True, **some, b=np.zeros(2, np.float32), lr=None)[:2] == ([], [])
    for words, more in (("the state lacks 'b', 'lr' of the checkpoint", {}),
                        ("the checkpoint lacks 'c'; the state lacks 'b'", {"c": 1, "lr": 1})):
        for given in (some | more,):
            with pytest.raises(sluice.InvalidSpec) as error:
                load(True, **given)
            assert words in str(error.value)
    with pytest.raises(sluice.InvalidSpec, match="the checkpoint lacks 'other'") as error:
        load(None, **some, other=1)
    assert error.value.tensor == "other"
    with pytest.raises(sluice.InvalidSpec, match="'step' is a tensor on one side alone"):
        load(True, step=np.zeros(2, np.float32))
    left = np.full(2, 7, np.float32)
    missing, unexpected, given = load(False, a=np.zeros(2, np.float32), c=left, d=5)
    assert (missing, unexpected) == (["c", "d"], ["b", "lr", "step"])
    assert given["a"].tolist() == [1, 1] and left.tolist() == [7, 7] and given["d"] == 5
    assert load(False, c=left)[:2] == (["c"], ["a", "b", "lr", "step"])


def test_nothing_is_put_into_tuples(session: sluice.Session, tmp_path: Path) -> None:
    given = {"pair": (np.ones(2, np.float32), 3)}
    session.save(tmp_path, given, progress=False)
    with pytest.raises(sluice.InvalidSpec, match="'pair.1' is in a tuple"):
        session.load(tmp_path, given, progress=False)


def test_texts_of_others_are_no_values(session: sluice.Session, tmp_path: Path) -> None:
    session.save(tmp_path, {"w": np.ones(2, np.float32), "step": 1}, shard_bytes_max=8,
                 progress=False)
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes().replace(b'{\\"step\\": 1}', b'[\\"step\\", 1]'))
    with pytest.raises(sluice.InvalidSpec, match="is not from a save"):
        session.load(tmp_path, {"w": np.ones(2, np.float32), "step": 1}, progress=False)


def rank_disagrees(session: sluice.Session, folder: str) -> Any:
    rank = session.rank
    mine = np.full(2, 5, np.float32)

    def save(**more: Any) -> Any:
        return error_of(lambda: session.save(folder, {"w": mine, **more}, progress=False))

    errors = [save(step=rank), save(step=1 if rank else True), save(step=1.0 if rank else 1),
              save(v=mine if rank else 4)]
    # Those of one rank alone, and None for a tensor of another one.
    own = {f"of {rank}": rank, "v": mine if rank else None}
    session.save(folder, {"w": mine, "step": 7, **own}, progress=False)
    found: dict[str, Any] = {"w": np.zeros(2, np.float32), "step": 0, f"of {1 - rank}": None,
                             "v": None if rank else np.zeros(2, np.float32)}
    session.load(folder, found, progress=False)
    return [errors, found["step"], found[f"of {1 - rank}"],
            None if found["v"] is None else found["v"].tolist()]


def test_ranks_agree(tmp_path: Path) -> None:
    for rank, (errors, step, of_other, v) in enumerate(run_ranks(2, rank_disagrees,
                                                                str(tmp_path))):
        assert [error["types"][0] for error in errors] == ["Disagreement"] * 4
        texts = [error["text"] for error in errors]
        assert "'step' is 0 on rank 0, and 1 on rank 1" in texts[0]
        assert "'step' is True on rank 0, and 1 on rank 1" in texts[1]
        assert "'step' is 1 on rank 0, and 1.0 on rank 1" in texts[2]
        assert "'v' is a tensor on rank 1, and 4 on rank 0" in texts[3]
        assert step == 7 and of_other == 1 - rank and v == (None if rank else [5, 5])
