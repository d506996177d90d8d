"""Stub: engines by their names."""
from importlib import import_module


class WeightTransferEngineFactory:
    _registry = {}

    @classmethod
    def register_engine(cls, name, module_path_or_cls, class_name=None):
        if name in cls._registry:
            raise ValueError(f"'{name}' is registered")
        cls._registry[name] = lambda: getattr(import_module(module_path_or_cls), class_name)

    @classmethod
    def create_engine(cls, config, vllm_config, device, model):
        return cls._registry[config.backend]()(config, vllm_config, device, model)


class WeightTransferTrainerFactory:
    _registry = {}

    @classmethod
    def register_engine(cls, name, module_path_or_cls, class_name=None):
        if name in cls._registry:
            raise ValueError(f"'{name}' is registered")
        cls._registry[name] = lambda: getattr(import_module(module_path_or_cls), class_name)

    @classmethod
    def trainer_init(cls, init_info, *, client, source=None):
        made = cls._registry[init_info.backend]()
        return made.trainer_init(init_info=init_info, client=client, source=source)
