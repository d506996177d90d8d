"""A transfer into what a loader was captured to do: two trainers, two servers, one tensor whole."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
sluice = pytest.importorskip("sluice")

from ranks import run_ranks  # noqa: E402

ROWS, COLUMNS = 10, 6


def values(name: str, step: int) -> Any:
    shape = {"q": (8, COLUMNS), "k": (4, COLUMNS), "embed": (ROWS, COLUMNS), "o": (COLUMNS, 8),
             "scaled": (3,)}[name]
    first = {"q": 0, "k": 100, "embed": 200, "o": 300, "scaled": 400}[name] + 1000 * step
    return np.arange(first, first + np.prod(shape), dtype=np.float32).reshape(shape)


def load_into(params: dict[str, Any], server: int, weights: Any) -> None:
    for name, loaded in weights:
        if name == "q":
            np.copyto(params["qk"][:4], loaded.narrow(0, 4 * server, 4))
        elif name == "k":
            np.copyto(params["qk"][4:], loaded[2 * server:2 * server + 2])
        elif name == "embed":  # 10 rows, padded to 12
            have = min(ROWS, 6 * server + 6) - 6 * server
            np.copyto(params["embed"][:have], loaded.narrow(0, 6 * server, have))
        elif name == "o":
            np.copyto(params["o"], loaded.t()[4 * server:4 * server + 4])
        elif name == "scaled":
            np.copyto(params["scaled"], np.asarray(loaded) * 2)


class Whole:
    """A tensor with values, with the methods that this loader uses."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def narrow(self, dim: int, start: int, length: int) -> Any:
        return self.array.take(range(start, start + length), axis=dim)

    def t(self) -> Any:
        return self.array.T

    def __getitem__(self, key: Any) -> Any:
        return self.array[key]

    def __array__(self, *args: Any, **more: Any) -> Any:
        return self.array


def rank_moves(session: Any, names: list[str]) -> Any:
    if session.rank < 2:
        layout = sluice.Layout([0, 1], "S(0)")
        held = {}
        for name in names:
            ranges = layout.owned_ranges(values(name, 0).shape, session.rank)[0]
            held[name] = (ranges[0] if ranges else (0, 0))
        parts = {name: values(name, 0)[a:b].copy() for name, (a, b) in held.items()}
        transfer = session.transfer(src=[
            sluice.Tensor(name, values(name, 0).shape, "f32", layout, part)
            for name, part in parts.items()])
    else:
        server = session.rank - 2
        params = {"qk": np.full((6, COLUMNS), -1, np.float32),
                  "embed": np.full((6, COLUMNS), -1, np.float32),
                  "o": np.full((4, COLUMNS), -1, np.float64),
                  "scaled": np.full((3,), -1, np.float32)}

        def load(weights: Any) -> None:
            # What was received whole has memory, and is no recording.
            load_into(params, server, ((name, _with_values(w)) for name, w in weights))

        captured = sluice.capture(load, {n: (values(n, 0).shape, "f32") for n in names}, params)
        # Without PyTorch all fall back if one does.
        assert list(captured.fallback) == (names if "scaled" in names else []), captured.fallback
        transfer = session.transfer(dst=captured)
    for step in range(1, 4):
        if session.rank < 2:
            for name, (a, b) in held.items():
                parts[name][...] = values(name, step)[a:b]
        transfer.start().wait(120)
        if session.rank >= 2:
            expected = {key: np.full_like(value, -1) for key, value in params.items()}
            load_into(expected, server, [(name, Whole(values(name, step))) for name in names])
            for key, value in params.items():
                assert (value == expected[key]).all(), (step, key, value, expected[key])
    transfer.drop()
    return "fine"


def _with_values(tensor: Any) -> Any:
    if not hasattr(tensor, "ptr"):
        return tensor
    import ctypes
    memory = (ctypes.c_float * int(np.prod(tensor.shape))).from_address(tensor.ptr)
    return Whole(np.frombuffer(memory, np.float32).reshape(tensor.shape))


@pytest.mark.parametrize("more", [[], ["scaled"]])
def test_a_transfer_writes_where_the_loader_writes(more: list[str]) -> None:
    assert run_ranks(4, rank_moves, ["q", "k", "embed", "o", *more]) == ["fine"] * 4


def test_a_loader_that_fails_is_heard_of_by_who_waits() -> None:
    param = np.zeros(4, np.float32)
    fails = False

    def load(weights: Any) -> None:
        for _, weight in weights:
            if fails:
                raise ValueError("the loader fails")
            weight.max()

    with sluice.Session.from_exchange(0, 1, lambda payload: [payload]) as session:
        captured = sluice.capture(load, {"w": ((4,), "f32")}, {"p": param})
        assert list(captured.fallback) == ["w"]
        fails = True
        source, target = {"x": np.ones(4, np.float32)}, {"x": np.zeros(4, np.float32)}
        transfer = session.transfer({"w": np.ones(4, np.float32)}, captured)
        other = session.transfer(source, target)
        run = transfer.start()
        while not run.done:
            session.poll()
        other.run()  # which finds the run that is over
        assert target["x"].all()
        for _ in range(2):
            with pytest.raises(ValueError, match="the loader fails"):
                run.wait()
        with pytest.raises(ValueError, match="the loader fails"):
            transfer.run()
