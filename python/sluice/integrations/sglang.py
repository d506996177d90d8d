"""SGLang's weight updates by Sluice, in place and from sharded trainers.

SGLang calls `register` in each of its processes. A group whose backend is "sluice" is Sluice's. All
else goes SGLang's own way. In the trainers, of which rank 0 makes the requests:

    from sluice.integrations.sglang import Trainers

    trainers = Trainers("10.0.0.1", 29700, rank=rank, size=size, servers=8)
    # POST /init_weights_update_group to each server at the same time, such as
    # trainers.init_request(rank_offset=1 + 4 * i) to server i of 4 ranks.
    trainers.connect()
    # Each update: POST /pause_generation, /begin_weight_update, and at the same time as `send`
    # /update_weights_from_distributed with update_request(state). Then POST /end_weight_update,
    # /continue_generation.
    trainers.send(model.state_dict())

SLUICE_TOKEN or SLUICE_TOKEN_FILE has the same secret in trainers and servers, unless all are on one
machine. Trainers give their shards as they are: DTensors, or what `Session.transfer` takes.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .._bootstrap import store_address
from .._dtypes import TORCH_NAMES, dtype_name
from .._errors import Error, InvalidSpec, Unsupported
from .._log import inform, warn
from .._texts import listed
from .._world import World
from ._hosts import warn_of_version

if TYPE_CHECKING:
    from .._captured import Captured
    from .._session import Session

_UPDATER = "sglang.srt.model_executor.model_runner_components.weight_updater.WeightUpdater"
_CAPTURES_KEPT = 8  # of requests with different tensors
_TIMEOUT = 300.0  # seconds that a server waits for others; a request cannot say it

TRAINER = "trainer"
SERVER = "server"

#: What PyTorch calls Sluice's dtypes.
_TORCH_NAMES = {name: torch_name for torch_name, name in reversed(TORCH_NAMES.items())}

Specs = list[tuple[str, "tuple[int, ...]", str]]  # of each tensor its name, shape and dtype


class Trainers:
    """One trainer rank's end of a group of servers. Thread: one.

    `address`, `port`: of rank 0's machine, where it serves the store. `rank`, `size`: of the
    trainers. `servers`: how many ranks all servers have together. `timeout`: seconds to wait for
    others. `options`: those of `sluice.SessionOptions`.
    """

    def __init__(self, address: str, port: int, *, rank: int = 0, size: int = 1, servers: int,
                 group_name: str = "weight_update_group", timeout: float = 300.0,
                 **options: Any) -> None:
        self._request = {"master_address": address, "master_port": port, "world_size": 1 + servers,
                         "group_name": group_name, "backend": "sluice"}
        self._options = {"patience": timeout, **options}
        self._session: Session | None = None
        self._world = World.join(store_address(address, port), role=TRAINER, rank=rank, size=size,
                                 roles={TRAINER: size, SERVER: servers}, name=group_name,
                                 serve=rank == 0, timeout=timeout)

    def init_request(self, rank_offset: int) -> dict[str, Any]:
        """The JSON of /init_weights_update_group for one server.

        `rank_offset`: 1 for the first server, and more by the ranks of those before, as for NCCL:
        all trainers count as one.
        """
        return {**self._request, "rank_offset": rank_offset}

    def connect(self) -> None:
        """Collective; blocks until all servers have got their request. Timeout names who has not.

        After an error it may be called again, with new requests.
        """
        self.disconnect()
        self._session = self._world.session(**self._options)
        if self._session.rank == 0:
            warn(f"trainer 0: {self._session.report()}")

    def update_request(self, state: Any) -> dict[str, Any]:
        """The JSON of /update_weights_from_distributed for what `send` is to be given.

        `state`: as `send` takes it, with the names that the servers' loader knows.
        """
        from .._halves import read_half
        session = self._connected()
        entries = read_half(session, state, "src").entries
        return {"names": [entry.name for entry in entries],
                "shapes": [[] if entry.scalar else list(entry.shape) for entry in entries],
                "dtypes": [_TORCH_NAMES[entry.dtype] for entry in entries],
                "group_name": self._request["group_name"]}

    def send(self, state: Any) -> None:
        """Collective; blocks. Writes the trainers' tensors into the servers' parameters.

        `state`: a module or what else `Session.transfer` takes as `src`, this rank's part. A server
        that fails is named. After an error only `connect` and `close` are left.
        """
        session = self._connected()
        try:
            session.sync(state, None, ignore_unused=True, progress=False)
        except BaseException:
            self.disconnect()
            raise

    def disconnect(self) -> None:
        """Ends the session, and not the store."""
        session, self._session = self._session, None
        if session is not None:
            session._close_after(True)

    def close(self) -> None:
        """Ends all of it. After /destroy_weights_update_group, as the store ends with rank 0."""
        self.disconnect()
        self._world.close()

    def _connected(self) -> Session:
        if self._session is None:
            raise InvalidSpec("the trainers have no session with the servers: connect, beside the "
                              "requests for it")
        return self._session


class _Group:
    """One server rank's end of a group."""

    def __init__(self, address: str, port: int, rank: int, size: int, name: str) -> None:
        self._captures: OrderedDict[Any, Captured] = OrderedDict()
        self._world = World.join(store_address(address, port), role=SERVER, rank=rank, size=size,
                                 roles={TRAINER: 0, SERVER: size}, name=name, serve=False,
                                 timeout=_TIMEOUT)
        try:
            self._session = self._world.session(patience=_TIMEOUT)
        except BaseException:
            self._world.close()
            raise
        if rank == 0:
            warn(f"server 0: {self._session.report()}")

    def receive(self, model: Any, specs: Specs, device: Any) -> None:
        """Collective; blocks. Every member raises where one does."""
        failure: Exception | None = None
        captured: Any = None
        try:
            captured = self._captured(model, specs, device)
        except Exception as error:
            failure = error
        try:
            # What this iterator raises, all members hear of.
            self._session.sync(None, captured if failure is None else _raising(failure),
                               ignore_unused=True, progress=False)
        finally:
            del failure  # its traceback has this frame

    def _captured(self, model: Any, specs: Specs, device: Any) -> Captured:
        from .._capture import capture
        key = tuple(specs)
        captured = self._captures.get(key)
        if captured is None:
            captured = capture(model.load_weights, specs, model, device=device)
            self._captures[key] = captured
            if len(self._captures) > _CAPTURES_KEPT:
                self._captures.popitem(last=False)
            ways = f"{len(captured.copies)} boxes, {len(captured.fallback)} tensors whole"
            inform(f"server {self._world.rank}: {ways}; the loader ignores "
                   f"{listed(captured.ignored, 8) or 'none'}")
        elif captured.watch()() is not None:  # SGLang has given parameters other memory
            captured = self._captures[key] = captured.bind(model, model.load_weights)
        self._captures.move_to_end(key)
        return captured

    def close(self) -> None:
        self._session._close_after(True)
        with suppress(Error):
            self._world.close()


_groups: dict[str, _Group] = {}  # SGLang's object has no place for them


def register() -> None:
    """Puts hooks around SGLang's weight updates. SGLang calls it in each process.

    ImportError: there is no SGLang, or one without hooks.
    """
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for hook in (init_weights_update_group, destroy_weights_update_group,
                 receive_weights_from_distributed):
        HookRegistry.register(f"{_UPDATER}.{hook.__name__}", hook, HookType.AROUND)


def init_weights_update_group(original: Callable[..., Any], self: Any, master_address: str,
                              master_port: int, rank_offset: int, world_size: int, group_name: str,
                              backend: str = "nccl") -> tuple[bool, str]:
    """Joins the trainers, and waits for all members. (False, text): it has failed."""
    if backend != "sluice":
        done: tuple[bool, str] = original(self, master_address, master_port, rank_offset,
                                          world_size, group_name, backend)
        return done
    warn_of_version("SGLang", "0.5.23", "sglang")
    try:
        _refuse(self)
        if (old := _groups.pop(group_name, None)) is not None:
            old.close()
        _groups[group_name] = _Group(master_address, master_port, rank_offset - 1 + self.tp_rank,
                                     world_size - 1, group_name)
    except Exception as error:
        return False, f"Failed to join the trainers by Sluice: {error}"
    return True, "Joined the trainers by Sluice."


def destroy_weights_update_group(original: Callable[..., Any], self: Any,
                                 group_name: str) -> tuple[bool, str]:
    """Leaves the trainers."""
    group = _groups.pop(group_name, None)
    if group is None:
        done: tuple[bool, str] = original(self, group_name)
        return done
    group.close()
    return True, "Left the trainers."


def receive_weights_from_distributed(original: Callable[..., Any], self: Any, *, names: list[str],
                                     dtypes: list[Any], shapes: list[Any], group_name: str,
                                     load_format: str | None = None) -> list[Any]:
    """Writes the trainers' tensors into the model's parameters. Nothing is left to load.

    After an error the parameters are undefined, and the group has to be made anew.
    """
    group = _groups.get(group_name)
    if group is None:
        done: list[Any] = original(self, names=names, dtypes=dtypes, shapes=shapes,
                                   group_name=group_name, load_format=load_format)
        return done
    try:
        _refuse_update(self, load_format)
        model = self.get_model()
        specs = [(name, tuple(shape), dtype_name(dtype, tensor=name))
                 for name, dtype, shape in zip(names, dtypes, shapes)]
        group.receive(model, specs, self.device)
        # The end of SGLang's update leaves it out, as it takes this update for one that loads.
        from sglang.srt.model_loader.loader import post_load_weights
        post_load_weights(model)
    except BaseException:
        _groups.pop(group_name).close()  # so that the others do not wait
        raise
    return []


def _refuse(updater: Any) -> None:
    """Unsupported: what would serve old weights after an update."""
    server_args = getattr(updater.get_model_runner(), "server_args", None)
    if getattr(server_args, "speculative_algorithm", None):
        raise Unsupported("speculative decoding has a draft model, which Sluice would not update: "
                          "start SGLang without it, or take backend nccl")


def _refuse_update(updater: Any, load_format: str | None) -> None:
    if load_format is not None:
        raise Unsupported(f"load_format is {load_format!r}; Sluice sends tensors as they are, so "
                          "leave it out")
    # SGLang asks for both after it has received, which is too late here.
    updater._assert_weight_cache_inactive("update_weights_from_distributed")
    module = sys.modules[type(updater).__module__]
    refusal = getattr(module, "_unsupported_derived_weight_cache_error", lambda model: None)
    if (text := refusal(updater.get_model())) is not None:
        raise Unsupported(text)


def _raising(failure: Exception) -> Iterator[Any]:
    raise failure
    yield
