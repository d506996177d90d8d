"""Real DTensors: the layouts that are read are where PyTorch has put the elements."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.4")
dist = pytest.importorskip("torch.distributed")
if not dist.is_available():
    pytest.skip("PyTorch without torch.distributed", allow_module_level=True)
fake_pg = pytest.importorskip("torch.testing._internal.distributed.fake_pg")

from torch.distributed.device_mesh import DeviceMesh, init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.tensor import (DTensor, Partial, Replicate, Shard,  # noqa: E402
                                      distribute_tensor)
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,  # noqa: E402
                                               parallelize_module)
from torch.distributed.tensor.placement_types import _StridedShard  # noqa: E402

import sluice  # noqa: E402
from local_ranks import on_ranks  # noqa: E402
from sluice import _dtensor  # noqa: E402
from sluice import _layouts as layouts  # noqa: E402
from sluice._errors import InvalidSpec, Unsupported  # noqa: E402
from sluice._state import DST, SRC, halves  # noqa: E402
from torch_ranks import run_job  # noqa: E402


@contextmanager
def job(rank: int, size: int) -> Iterator[None]:
    """This process as one rank of a job whose collectives do nothing."""
    dist.init_process_group("fake", store=fake_pg.FakeStore(), rank=rank, world_size=size)
    try:
        yield
    finally:
        dist.destroy_process_group()


def owned(full: Any, layout: layouts.Layout, rank: int) -> Any:
    for dim, ranges in enumerate(layout.owned_ranges(tuple(full.shape), rank)):
        indices = [i for first, last in ranges for i in range(first, last)]
        full = full.index_select(dim, torch.tensor(indices, dtype=torch.int64))
    return full


def check(tensor: Any, full: Any, rank: int) -> _dtensor.Read:
    read = _dtensor.read(tensor, "w", rank)
    assert read.shape == tuple(full.shape)
    here = owned(full, read.layout, rank)
    # An empty local tensor of FSDP has any shape.
    assert torch.equal(read.local, here) or read.local.numel() == here.numel() == 0, read.layout
    assert not read.local.requires_grad
    return read


def counted(*shape: int) -> Any:
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape)


def test_layouts_of_meshes_and_placements() -> None:
    with job(0, 6):
        mesh = init_device_mesh("cpu", (2, 3), mesh_dim_names=("dp", "tp"))
        layout = sluice.Layout(mesh, [Shard(0), Replicate()], order="tp,dp")
        assert layout == sluice.Layout([[0, 1, 2], [3, 4, 5]], "S(0),R", order=(1, 0))
        assert sluice.Layout(mesh["tp"], Shard(-1)) == sluice.Layout([0, 1, 2], "S(-1)")
        assert sluice.Layout([0, 1], Partial("avg")) == sluice.Layout([0, 1], "P(avg)")
        assert sluice.Layout([0, 1], _StridedShard(0, split_factor=2)) == (
            sluice.Layout([0, 1], "SS(0,2)"))


@pytest.mark.parametrize("seed", range(25))
def test_random_placements_on_random_meshes(seed: int) -> None:
    rng = random.Random(seed)
    sizes = tuple(rng.choice([1, 2, 3]) for _ in range(rng.randint(1, 3)))
    shape = tuple(rng.randint(1, 9) for _ in range(rng.randint(1, 3)))
    placements = [rng.choice([Replicate(), Shard(rng.randrange(-len(shape), len(shape)))])
                  for _ in sizes]
    size = torch.Size(sizes).numel()
    ranks = list(range(size))
    rng.shuffle(ranks)
    full = counted(*shape)
    for rank in range(size):
        with job(rank, size):
            mesh = DeviceMesh("cpu", torch.tensor(ranks).reshape(sizes))
            tensor = distribute_tensor(full, mesh, placements, src_data_rank=None)
            read = check(tensor, full, rank)
            assert read.layout.sizes == sizes and list(read.layout.ranks) == ranks


@pytest.mark.parametrize("mesh_sizes", [(2, 2), (2, 3), (3, 2), (4, 2), (2, 4)])
@pytest.mark.parametrize("rows", [1, 5, 7, 8, 12, 13])
def test_fsdp_over_tensor_parallelism(mesh_sizes: tuple[int, int], rows: int) -> None:
    """Column- and row-parallel linears under FSDP2, also where nothing divides."""
    size = mesh_sizes[0] * mesh_sizes[1]
    up, down = counted(rows, 6), counted(6, rows) + 1000
    orders = set()
    for rank in range(size):
        with job(rank, size):
            mesh = init_device_mesh("cpu", mesh_sizes, mesh_dim_names=("dp", "tp"))
            model = torch.nn.Sequential(torch.nn.Linear(6, rows, bias=False),
                                        torch.nn.Linear(rows, 6, bias=False))
            with torch.no_grad():
                model[0].weight.copy_(up)
                model[1].weight.copy_(down)
            parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(),
                                                   "1": RowwiseParallel()}, src_data_rank=None)
            fully_shard(model, mesh=mesh["dp"])
            tensors = model.state_dict()
            read = check(tensors["0.weight"], up, rank)
            orders.add(read.layout.order)
            assert read.layout.sizes == mesh_sizes
            assert [str(one) for one in read.layout.placements] == ["S(0)", "S(0)"]
            check(tensors["1.weight"], down, rank)
    assert orders == {(1, 0)}


def test_a_literal_strided_shard_stays_one() -> None:
    full = counted(8, 3)
    for rank in range(4):
        with job(rank, 4):
            mesh = init_device_mesh("cpu", (2, 2))
            placements = (_StridedShard(0, split_factor=2), Shard(0))
            local = counted(2, 3)
            tensor = DTensor.from_local(local, mesh, placements, run_check=False,
                                        shape=full.shape, stride=full.stride())
            by_order = _dtensor.read(tensor, "w", rank).layout
            assert by_order.order == (1, 0)
            tensor._spec.use_strided_shard_as_shard_order = False
            literal = _dtensor.read(tensor, "w", rank).layout
            assert [str(one) for one in literal.placements] == ["SS(0,2)", "S(0)"]
            assert literal.order == ()
            # Where it divides, both are the same elements.
            assert by_order.owned_ranges((8, 3), rank) == literal.owned_ranges((8, 3), rank)


def test_a_strided_shard_without_an_order_is_literal() -> None:
    full = counted(12)
    for rank in range(2):
        with job(rank, 2):
            mesh = init_device_mesh("cpu", (2,))
            placement = _StridedShard(0, split_factor=3)
            shards, _ = placement._split_tensor(full, 2, with_padding=False)
            tensor = DTensor.from_local(shards[rank], mesh, (placement,), run_check=False,
                                        shape=full.shape, stride=full.stride())
            read = check(tensor, full, rank)
            assert [str(one) for one in read.layout.placements] == ["SS(0,3)"]


def test_a_shard_order_is_the_visiting_order() -> None:
    for sizes, order in (((2, 3), (1, 0)), ((2, 2, 2), (2, 0, 1)), ((2, 2, 3), (1, 2, 0))):
        size = torch.Size(sizes).numel()
        full = counted(11, 2)
        for rank in range(size):
            with job(rank, size):
                mesh = init_device_mesh("cpu", sizes)
                tensor = distribute_tensor(full, mesh, [Shard(0)] * len(sizes),
                                           src_data_rank=None)
                entry = type(tensor._spec.shard_order[0])(0, order)
                expected = layouts.Layout.over(sizes, range(size), [layouts.Shard(0)] * len(sizes),
                                               order)
                local = owned(full, expected, rank)
                tensor = DTensor.from_local(local, mesh, [Shard(0)] * len(sizes), run_check=False,
                                            shape=full.shape, stride=full.stride())
                tensor._spec.shard_order = (entry,)
                assert check(tensor, full, rank).layout == expected


def test_the_orders_that_pytorch_reads_out_of_strided_shards() -> None:
    spec_of = pytest.importorskip("torch.distributed.tensor._dtensor_spec").DTensorSpec
    if not hasattr(spec_of, "_convert_shard_order_to_StridedShard"):
        pytest.skip("this PyTorch has no orders")
    with job(0, 24):
        mesh = init_device_mesh("cpu", (2, 3, 4))
        for order in itertools.permutations(range(3)):
            entry_of = pytest.importorskip(
                "torch.distributed.tensor._dtensor_spec").ShardOrderEntry
            strided = spec_of._convert_shard_order_to_StridedShard(
                (entry_of(0, order),), (Shard(0),) * 3, mesh)
            mine = [layouts.placement_of(one) for one in strided]
            decoded = _dtensor._decode((2, 3, 4), tuple(mine))
            assert decoded is not None
            assert (decoded[1] or (0, 1, 2)) == order


def test_slices_of_a_mesh_show_each_rank_its_own_ranks() -> None:
    full = counted(4, 4)
    for rank, expected in enumerate([(0, 1), (0, 1), (2, 3), (2, 3)]):
        with job(rank, 4):
            mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
            tensor = distribute_tensor(full, mesh["tp"], [Shard(1)], src_data_rank=None)
            assert check(tensor, full, rank).layout.ranks == expected


def test_ranks_of_the_job_become_those_of_the_session() -> None:
    with job(2, 4):
        mesh = DeviceMesh("cpu", torch.tensor([3, 2]))
        tensor = distribute_tensor(counted(4), mesh, [Shard(0)], src_data_rank=None)
        read = _dtensor.read(tensor, "w", 0, rank_of={2: 0, 3: 1}.__getitem__)
        assert read.layout.ranks == (1, 0)

        def refuse(rank: int) -> int:
            raise InvalidSpec(f"rank {rank} of the job is not in the session", ranks=(rank,))

        with pytest.raises(InvalidSpec, match="'w': rank 3 of the job") as error:
            _dtensor.read(tensor, "w", 0, rank_of=refuse)
        assert error.value.tensor == "w" and error.value.ranks == (3,)


def test_a_rank_outside_the_mesh_owns_nothing() -> None:
    for rank in range(3):
        with job(rank, 3):
            mesh = DeviceMesh("cpu", torch.tensor([0, 1]))
            tensor = distribute_tensor(counted(4, 2), mesh, [Shard(0)], src_data_rank=None)
            (entry,) = halves({"w": tensor}, SRC, rank=rank).entries
            assert entry.layout.ranks == (0, 1)
            assert entry.owns == (rank < 2) and (entry.native_view[0] == 0) == (rank == 2)
            assert not entry.lacks_memory


@pytest.mark.parametrize("op", ["sum", "avg", "max", "min", "product"])
def test_partial_sources(op: str) -> None:
    with job(1, 2):
        tensor = DTensor.from_local(counted(3), init_device_mesh("cpu", (2,)), [Partial(op)])
        read = _dtensor.read(tensor, "w", 1)
        assert [str(one) for one in read.layout.placements] == [f"P({op})"]
        assert read.layout.is_partial


def test_other_partial_placements_are_refused_by_name() -> None:
    masked = pytest.importorskip("torch.distributed.tensor.placement_types")._MaskPartial
    norms = pytest.importorskip("torch.distributed.tensor._ops._math_ops")._NormPartial
    with job(0, 2):
        mesh = init_device_mesh("cpu", (2,))
        for placement, text in ((masked("sum"), "_MaskPartial"), (norms(norm_type=2),
                                                                  "_NormPartial"),
                                (Partial("bor"), "Partial\\(bor\\)")):
            tensor = DTensor.from_local(counted(3), mesh, [placement], run_check=False)
            with pytest.raises(Unsupported, match=f"tensor 'w': .*{text}") as error:
                _dtensor.read(tensor, "w", 0)
            assert error.value.tensor == "w"


def test_a_local_tensor_of_another_shape_is_refused() -> None:
    with job(0, 2):
        mesh = init_device_mesh("cpu", (2,))
        tensor = DTensor.from_local(counted(3), mesh, [Shard(0)], run_check=False,
                                    shape=torch.Size([8]), stride=(1,))
        with pytest.raises(InvalidSpec, match=r"'w': its local tensor has shape \[3\].*\[4\]"):
            _dtensor.read(tensor, "w", 0)


def test_strides_and_dtypes_of_local_tensors_are_the_real_ones() -> None:
    with job(1, 2):
        mesh = init_device_mesh("cpu", (2,))
        local = counted(5, 3).t()  # (3, 5), column by column
        tensor = DTensor.from_local(local, mesh, [Shard(0)], run_check=False,
                                    shape=torch.Size([6, 5]), stride=(5, 1))
        (entry,) = halves({"w": tensor}, SRC, rank=1).entries
        assert entry.native_view == (local.data_ptr(), (3, 5), (1, 3), "f32", 1, 0)
        half = tensor.to(torch.bfloat16)
        assert halves({"w": half}, SRC, rank=1).entries[0].dtype == "bf16"


def test_tied_parameters_are_one_destination_on_ranks_that_own_nothing_too() -> None:
    for rank in range(4):
        with job(rank, 4):
            model = torch.nn.Sequential()
            model.add_module("embed", torch.nn.Embedding(3, 2))
            model.add_module("head", torch.nn.Linear(2, 3, bias=False))
            model.head.weight = model.embed.weight
            fully_shard(model, mesh=init_device_mesh("cpu", (4,)))
            half = halves(model.state_dict(), DST, rank=rank)
            assert [entry.name for entry in half.entries] == ["embed.weight"]
            assert half.aliases == {"head.weight": "embed.weight"}
            assert half.entries[0].owns == (rank < 3)
            sources = halves(model, SRC, rank=rank).entries
            assert [entry.name for entry in sources] == ["embed.weight", "head.weight"]


class Part:
    """What sluice reads of a DTensor: one of rows over four ranks."""

    def __init__(self, local: Any, shape: tuple[int, ...]) -> None:
        self._local, self.shape, self.dtype = local, torch.Size(shape), local.dtype
        self.placements = [Shard(0)]
        self.device_mesh = type("Mesh", (), {"mesh": torch.arange(4)})()

    def to_local(self) -> Any:
        return self._local


def test_parts_of_one_buffer_are_no_tied_tensors_where_they_are_empty(tmp_path: Path) -> None:
    wanted = {name: torch.arange(24.0).view(3, 8) + more for name, more in (("a", 0), ("b", 100))}

    def work(native: Any, rank: int) -> list[Any]:
        session = sluice.Session(native)
        rows = 1 if rank < 3 else 0
        flat = torch.zeros(2 * rows * 8)
        parts = {"a": flat[:rows * 8].view(rows, 8), "b": flat[rows * 8:].view(rows, 8)}
        given = {name: Part(part, (3, 8)) for name, part in parts.items()}
        session.save(tmp_path / "whole", wanted if rank == 0 else {}, progress=False)
        session.load(tmp_path / "whole", given, progress=False)
        loaded = [part.clone() for part in parts.values()]
        session.save(tmp_path / "parts", given, progress=False)
        flat.zero_()
        session.load(tmp_path / "parts", given, progress=False)
        with session.transfer(wanted if rank == 0 else {}, given) as transfer:
            assert [bool(torch.equal(*pair)) for pair in zip(loaded, parts.values())] == [
                True, True]
            flat.zero_()
            transfer.run()
        return [loaded, list(parts.values())]

    for found in zip(*on_ranks(4, work)):
        for i, whole in enumerate(wanted.values()):
            assert torch.equal(torch.cat([each[i] for each in found]), whole)


def test_a_parameter_with_gradients_is_a_destination() -> None:
    with job(0, 2):
        mesh = init_device_mesh("cpu", (2,))
        parameter = torch.nn.Parameter(distribute_tensor(counted(4), mesh, [Shard(0)],
                                                         src_data_rank=None))
        assert parameter.requires_grad
        (entry,) = halves({"w": parameter}, DST, rank=0).entries
        assert entry.native_view[0] == parameter.to_local().data_ptr()


def rank_reads_pending_collectives() -> None:
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    mesh = init_device_mesh("cpu", (size,))
    full = torch.arange(35.0).reshape(7, 5)
    tensor = distribute_tensor(full, mesh, [Shard(0)])
    gathered = tensor.redistribute(placements=[Replicate()], async_op=True)
    assert type(gathered._local_tensor).__name__ == "AsyncCollectiveTensor"
    read = _dtensor.read(gathered, "w", rank)
    assert type(read.local) is torch.Tensor, type(read.local)
    assert torch.equal(read.local, full)
    cut = tensor.redistribute(placements=[Shard(1)])
    read = _dtensor.read(cut, "w", rank)
    (first, last), = read.layout.owned_ranges((7, 5), rank)[1]
    assert torch.equal(read.local, full[:, first:last])
    dist.destroy_process_group()


def test_pending_collectives_of_real_processes_are_waited_for() -> None:
    assert run_job(3, rank_reads_pending_collectives) == [None] * 3
