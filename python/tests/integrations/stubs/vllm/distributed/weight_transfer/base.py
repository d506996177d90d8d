"""Stub: both ends of weight transfer."""
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

Init = TypeVar("Init")
Update = TypeVar("Update")


@dataclass(frozen=True)
class ParamMeta:
    name: str
    dtype: object
    shape: tuple


class WeightSource(ABC):
    @abstractmethod
    def metadata(self):
        ...

    @abstractmethod
    def __iter__(self):
        ...

    def held_names(self):
        return None


class ModuleSource(WeightSource):
    def __init__(self, module):
        self._module = module

    def metadata(self):
        return [ParamMeta(name, one.dtype, tuple(one.shape))
                for name, one in self._module.named_parameters()]

    def __iter__(self):
        return iter(self._module.named_parameters())


class WeightTransferInitInfo(ABC):
    pass


class WeightTransferUpdateInfo(ABC):
    pass


@dataclass
class TrainerInitInfo:
    backend: ClassVar[str]
    rank: int = field(kw_only=True)

    @property
    def is_sender(self):
        return self.rank == 0


class WeightTransferEngine(ABC, Generic[Init, Update]):
    def __init__(self, config, vllm_config, device, model):
        self.parallel_config = vllm_config.parallel_config
        self.model_config = vllm_config.model_config
        self.device = device
        self.model = model

    def parse_init_info(self, init_dict):
        try:
            return self.init_info_cls(**init_dict)
        except TypeError as error:
            raise ValueError(f"Invalid init_info: {error}") from error

    def parse_update_info(self, update_dict):
        return self.update_info_cls(**update_dict)

    @abstractmethod
    def init_transfer_engine(self, init_info):
        ...

    @abstractmethod
    def start_weight_update(self):
        ...

    @abstractmethod
    def finish_weight_update(self):
        ...

    def update_weights(self, update_info):
        raise NotImplementedError("an accelerator's")

    @abstractmethod
    def receive_weights(self, update_info):
        ...

    @abstractmethod
    def shutdown(self):
        ...


class TrainerWeightTransferEngine(ABC, Generic[Init]):
    def __init__(self, *, client, source=None, is_sender=True):
        self.is_sender = is_sender
        self.client = client
        self.source = source

    @classmethod
    @abstractmethod
    def trainer_init(cls, init_info, *, client, source=None):
        ...

    @abstractmethod
    def send_weights(self):
        ...

    def shutdown(self):
        ...
