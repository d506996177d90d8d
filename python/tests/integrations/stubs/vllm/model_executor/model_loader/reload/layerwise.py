"""Stub: layers are put back as a kernel wants them, processed anew or as they were."""
from types import SimpleNamespace

from .meta import SKIP_TENSORS
from .utils import get_layer_tensors

LAYERWISE_INFO = {}


def get_layerwise_info(layer):
    return LAYERWISE_INFO.setdefault(layer, SimpleNamespace(
        restore_metadata=({}, {}), kernel_tensors=None, kernel_non_persistent_buffers=set(),
        load_numel=0, load_numel_total=None))


def record_metadata_for_reloading(model):
    for layer in model.modules():
        get_layerwise_info(layer).restore_metadata = ({
            name: one.data.to("meta").requires_grad_(False) for name, one in
            layer._parameters.items() if name not in SKIP_TENSORS}, {})
        for name, one in get_layerwise_info(layer).restore_metadata[0].items():
            one.__class__ = layer._parameters[name].__class__


def initialize_layerwise_reload(model):
    raise NotImplementedError("with vLLM itself")


def finalize_layerwise_reload(*args, **kwargs):
    for layer in args[0].modules():
        info = get_layerwise_info(layer)
        if info.load_numel_total is None:
            continue
        if info.load_numel:
            layer.quant_method.process_weights_after_loading(layer)
        if info.kernel_tensors is not None:
            parameters, _ = info.kernel_tensors
            if info.load_numel:
                for name, one in parameters.items():
                    one.data.copy_(getattr(layer, name))
            for name in list(get_layer_tensors(layer)):
                delattr(layer, name)
            for name, one in parameters.items():
                layer.register_parameter(name, one)
        info.kernel_tensors, info.load_numel, info.load_numel_total = None, 0, None
