"""Random tensors between random meshes of real processes, beside what DTensor itself makes."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

import sluice  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import DeviceMesh  # noqa: E402
from torch.distributed.tensor import (DTensor, Partial, Replicate, Shard,  # noqa: E402
                                      distribute_tensor)
from torch_ranks import gloo_session, run_job, same_bytes  # noqa: E402

DTYPES = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
          "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz", "int64", "int32", "int16",
          "int8", "uint64", "uint32", "uint16", "uint8", "bool", "complex64", "complex128"]
FLOATS = ["float64", "float32", "float16", "bfloat16"]


def meshes_of(size: int) -> list[DeviceMesh]:
    """Of all ranks and of some, in their order and in others."""
    ranks = torch.arange(size)
    found = [ranks, ranks.flip(0), ranks[1:], ranks[:-1].reshape(1, -1)]
    if size % 2 == 0:
        half = size // 2
        found += [ranks.reshape(2, half), ranks.reshape(half, 2).t().contiguous(),
                  ranks.reshape(2, 1, half), torch.tensor([[size - 1, 0], [1, 2]])]
    return [DeviceMesh("cpu", mesh) for mesh in found]


def random_bits(draw: random.Random, shape: tuple[int, ...], dtype: Any) -> Any:
    count = torch.Size(shape).numel()
    generator = torch.Generator().manual_seed(draw.randrange(1 << 30))
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    width = torch.empty((), dtype=dtype).element_size()
    data = torch.randint(0, 256, (count * width,), generator=generator, dtype=torch.uint8)
    return data.view(dtype).reshape(shape)


def random_placements(draw: random.Random, mesh: DeviceMesh, dims: int) -> list[Any]:
    choices: list[Any] = [Replicate(), *(Shard(dim) for dim in range(dims))]
    return [draw.choice(choices) for _ in range(mesh.ndim)]


def spread(whole: Any, mesh: DeviceMesh, placements: list[Any]) -> Any:
    # Bytes are cut in place of exotic elements: PyTorch cannot copy all of them.
    if whole.dim() and whole.element_size() == 1 and whole.dtype != torch.uint8:
        cut = distribute_tensor(whole.view(torch.uint8), mesh, placements, src_data_rank=None)
        return DTensor.from_local(cut.to_local().view(whole.dtype), mesh, placements,
                                  run_check=False, shape=whole.shape, stride=whole.stride())
    return distribute_tensor(whole, mesh, placements, src_data_rank=None)


class Case:
    """One tensor, its source and destination on this rank, and what the destination has to be."""

    def __init__(self, draw: random.Random, meshes: list[DeviceMesh], number: int) -> None:
        self.name = f"tensor {number}"
        self.text = self.name
        rank, size = dist.get_rank(), dist.get_world_size()
        shape = tuple(draw.randint(1, 9) for _ in range(draw.randint(0, 4)))
        dtype = DTYPES[draw.randrange(len(DTYPES))]
        target_dtype = dtype
        whole = random_bits(draw, shape, getattr(torch, dtype))
        kind = draw.choice(["spread", "spread", "spread", "cast", "partial", "plain"])
        mesh = draw.choice(meshes)
        placements = random_placements(draw, mesh, len(shape))
        self.source: Any = None
        if kind == "cast":
            dtype, target_dtype = draw.sample(FLOATS, 2)
            whole = torch.randn(shape, generator=torch.Generator().manual_seed(number),
                                dtype=torch.float64).to(getattr(torch, dtype))
        if kind == "partial":
            dtype = target_dtype = "float32"
            op = draw.choice(["sum", "max", "min"])
            placements[draw.randrange(len(placements))] = Partial(op)
            self.source, whole = self._partial(draw, shape, mesh, placements)
        elif kind == "plain":
            placements = ["whole"]
            giver = draw.randrange(size)
            self.source = whole.clone() if rank == giver else None
        else:
            self.source = spread(whole, mesh, placements)
        expected = whole.to(getattr(torch, target_dtype))
        if draw.random() < 0.25:  # a plain one, on some ranks, column by column
            takers = draw.sample(range(size), draw.randint(1, size))
            self.target = self.expected = None
            self.text += f": {dtype} {shape}, {kind}, {placements} to plain on {takers}"
            if rank in takers:
                self.target = torch.zeros(shape[::-1], dtype=expected.dtype).permute(
                    tuple(reversed(range(len(shape)))))
                self.expected = expected
            return
        other = draw.choice(meshes)
        wanted = random_placements(draw, other, len(shape))
        self.target = spread(torch.zeros_like(expected), other, wanted)
        self.expected = spread(expected, other, wanted).to_local()
        self.text += (f": {dtype} {shape}, {kind}, {mesh.mesh.tolist()} {placements} to "
                      f"{target_dtype} {other.mesh.tolist()} {wanted}")
        if other is mesh and kind == "spread" and dtype in FLOATS:
            by_torch = self.source.redistribute(placements=wanted).to_local()
            assert same_bytes(by_torch, self.expected), self.text

    @staticmethod
    def _partial(draw: random.Random, shape: tuple[int, ...], mesh: DeviceMesh,
                 placements: list[Any]) -> tuple[Any, Any]:
        """A source of whole numbers, whose sums are exact; and what it comes to."""
        seed = draw.randrange(1 << 30)
        cut = [Replicate() if isinstance(one, Partial) else one for one in placements]
        one_whole = torch.zeros(shape)
        reduced: Any = None
        mine: Any = torch.zeros(shape)
        # All that share a coordinate along the cut dimensions have parts of one whole.
        index = [i for i, one in enumerate(placements) if isinstance(one, Partial)][0]
        for part in range(mesh.mesh.shape[index]):
            numbers = torch.randint(-9, 10, shape, generator=torch.Generator().manual_seed(
                seed + part)).float()
            op = placements[index].reduce_op
            combine = {"sum": torch.add, "max": torch.maximum, "min": torch.minimum}[op]
            reduced = numbers if reduced is None else combine(reduced, numbers)
            coordinate = mesh.get_coordinate()
            if coordinate is not None and coordinate[index] == part:
                mine = numbers
        local = distribute_tensor(mine, mesh, cut, src_data_rank=None).to_local()
        source = DTensor.from_local(local, mesh, placements, run_check=False,
                                    shape=one_whole.shape, stride=one_whole.stride())
        return source, reduced

    def problem(self) -> str | None:
        if self.target is None:
            return None
        got = self.target.to_local() if isinstance(self.target, DTensor) else self.target
        # What a rank outside the mesh has, has no shape that is agreed on.
        if got.numel() == 0 and self.expected.numel() == 0 or same_bytes(got, self.expected):
            return None
        return f"{self.text}: got {got.tolist()}, expected {self.expected.tolist()}"

    def clear(self) -> None:
        if self.target is not None:
            local = self.target.to_local() if isinstance(self.target, DTensor) else self.target
            if local.numel():
                local.untyped_storage().fill_(0)


def rank_random(seed: int, rounds: int, tensors: int) -> list[str]:
    problems: list[str] = []
    with gloo_session() as session:
        meshes = meshes_of(session.size)
        for number in range(rounds):
            draw = random.Random(f"{seed}/{number}")
            cases = [Case(draw, meshes, i) for i in range(tensors)]
            source = {one.name: one.source for one in cases if one.source is not None}
            target = {one.name: one.target for one in cases if one.target is not None}
            where = f"seed {seed}, round {number}: "
            if number % 2:
                with session.transfer(source, target) as transfer:
                    for _ in range(2):
                        for one in cases:
                            one.clear()
                        transfer.run()
                        problems += [where + text for one in cases if (text := one.problem())]
            else:
                for _ in range(2):
                    for one in cases:
                        one.clear()
                    sluice.sync(source, target, session=session)
                    problems += [where + text for one in cases if (text := one.problem())]
    return problems[:20]


@pytest.mark.parametrize("size, seed", [(4, 1), (3, 2)])
def test_random_meshes_and_placements(size: int, seed: int) -> None:
    for problems in run_job(size, rank_random, seed, 20, 8):
        assert problems == []


def rank_every_dtype() -> list[str]:
    """Rows to columns, into replicas, and into a plain tensor, of each dtype."""
    wrong = []
    with gloo_session() as session:
        mesh = DeviceMesh("cpu", torch.arange(session.size))
        for dtype in [*DTYPES, "float4_e2m1fn_x2"]:
            kind = getattr(torch, dtype, None)
            if kind is None:
                continue
            whole = random_bits(random.Random(dtype), (7, 10), kind)
            source = {name: spread(whole, mesh, [Shard(0)]) for name in ("a", "b", "c")}
            zeros = torch.zeros(7, 10 * whole.element_size(), dtype=torch.uint8).view(kind)
            target = {"a": spread(zeros, mesh, [Shard(1)]),
                      "b": spread(zeros, mesh, [Replicate()]), "c": zeros.clone()}
            with session.transfer(source, target) as transfer:
                transfer.run()
                if transfer.checksums("src") != transfer.checksums("dst"):
                    wrong.append(f"{dtype}: checksums")
            for name, tensor in target.items():
                expected = whole
                if isinstance(tensor, DTensor):
                    expected = spread(whole, mesh, tensor.placements).to_local()
                    tensor = tensor.to_local()
                if not same_bytes(tensor, expected):
                    wrong.append(f"{dtype} {name}")
    return wrong


def test_every_dtype() -> None:
    for wrong in run_job(3, rank_every_dtype):
        assert wrong == []
