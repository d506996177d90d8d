"""An emulated GPU for tests, and tensors in its memory that look like those of frameworks."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from stand_ins import Pack

import sluice
from sluice import _dlpack, _sluice


class FakeGpu:
    """The GPU with what a test has of it. Torn down by the fixture `gpu`."""

    fake: Any = _sluice.fake_cuda

    def __init__(self) -> None:
        self.streams: list[int] = []
        self.memory: list[int] = []

    def allocate(self, nbytes: int, pool: bool = False) -> int:
        pointer: int = self.fake.allocate(nbytes, pool)
        self.memory.append(pointer)
        return pointer

    def free(self, pointer: int) -> None:
        self.memory.remove(pointer)
        self.fake.free(pointer)

    def stream(self) -> int:
        stream: int = self.fake.stream()
        self.streams.append(stream)
        return stream

    def synchronize(self) -> None:
        for stream in (0, *self.streams):
            self.fake.synchronize(stream)

    def end(self) -> list[str]:
        self.synchronize()
        for pointer in self.memory:
            self.fake.free(pointer)
        for stream in self.streams:
            self.fake.destroy(stream)
        return list(self.fake.check_clean())


def gpu_session(**options: Any) -> sluice.Session:
    """A session of one rank with the GPU."""
    return sluice.Session(_sluice.local_fabrics(1)[0].session(
        {"accelerator": "cuda:0", "timeout": 60, **options}))


def released_later(held: Any, call: Callable[[], Any]) -> None:
    """`call`, which waits for what is held: another thread lets that go meanwhile.

    A call that does not wait is over long before. One that is slow to begin only proves less.
    """
    timer = threading.Timer(0.1, held.release)
    timer.start()
    call()
    timer.join()


class Memory:
    """Bytes of the GPU."""

    def __init__(self, gpu: FakeGpu, nbytes: int) -> None:
        self.gpu = gpu
        self.shape = (nbytes,)
        self.pointer = gpu.allocate(nbytes)

    def fill(self, value: int) -> None:
        self.gpu.fake.write(self.pointer, bytes([value] * self.shape[0]))

    def fill_in(self, stream: int, value: int) -> Any:
        """A kernel that fills, held until what is returned is released."""
        return self.gpu.fake.enqueue_write(stream, self.pointer, bytes([value] * self.shape[0]))

    def read_in(self, stream: int) -> Any:
        return self.gpu.fake.enqueue_read(stream, self.pointer, self.shape[0])

    def content(self) -> bytes:
        content: bytes = self.gpu.fake.read(self.pointer, self.shape[0])
        return content


class Tensor(Memory):
    """As of PyTorch: ordered by its current stream."""

    dtype = type("dtype", (), {"__str__": lambda _: "torch.uint8"})()
    device = SimpleNamespace(type="cuda", index=0)

    def __init__(self, gpu: FakeGpu, nbytes: int) -> None:
        super().__init__(gpu, nbytes)
        self.recorded: list[int] = []

    def stride(self) -> tuple[int, ...]:
        return (1,)

    def data_ptr(self) -> int:
        return self.pointer

    def record_stream(self, stream: Any) -> None:
        self.recorded.append(stream.cuda_stream)


class Array(Memory):
    """As of Numba: its interface names the stream to wait for."""

    def __init__(self, gpu: FakeGpu, nbytes: int, stream: int | None) -> None:
        super().__init__(gpu, nbytes)
        self.stream = stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": "|u1", "data": (self.pointer, False),
                "version": 3, "stream": self.stream}


class Exporter(Memory):
    """As of JAX: speaks DLPack alone, and notes the streams that it is asked for."""

    def __init__(self, gpu: FakeGpu, nbytes: int) -> None:
        super().__init__(gpu, nbytes)
        pack = Pack((1, 8, 1), (nbytes,), device=2, pointer=self.pointer)
        self.asked = pack.asked
        self.__dlpack__, self.__dlpack_device__ = pack.__dlpack__, pack.__dlpack_device__


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _dlpack.DLTensor), ("context", ctypes.c_void_p),
                ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]


class Consumed:
    """A tensor that a framework has made of a capsule: it holds the memory until its end."""

    def __init__(self, capsule: Any) -> None:
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        rename = ctypes.pythonapi.PyCapsule_SetName
        rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
        self._at = get(capsule, b"dltensor")
        rename(capsule, b"used_dltensor")
        tensor = _Managed.from_address(self._at).tensor
        self.shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        self.pointer = int(tensor.data)

    def __del__(self) -> None:
        _Managed.from_address(self._at).deleter(self._at)


class Torch(ModuleType):
    """A module like PyTorch, as far as Sluice asks it for streams."""

    def __init__(self) -> None:
        super().__init__("torch")
        self.current = 0
        self.cuda = SimpleNamespace(
            is_initialized=lambda: True,
            current_stream=lambda device=None: SimpleNamespace(cuda_stream=self.current),
            ExternalStream=lambda handle, device=None: SimpleNamespace(cuda_stream=handle))
        self.from_dlpack = Consumed
        self.Tensor = self.Parameter = type("Tensor", (), {})
        self.nn = self


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Torch:
    made = Torch()
    monkeypatch.setitem(sys.modules, "torch", made)
    return made
