"""Stub: layers as they were before they were loaded."""
import torch

from .utils import get_layer_tensors

SKIP_LOAD_TENSORS = {"_expert_map"}
SKIP_TENSORS = {"bias", *SKIP_LOAD_TENSORS}


def restore_layer_on_meta(layer, info):
    for name in list(get_layer_tensors(layer)):
        if name not in SKIP_TENSORS:
            delattr(layer, name)
    for name, one in info.restore_metadata[0].items():
        layer.register_parameter(name, one)


def materialize_layer(layer, info):
    for name, one in get_layer_tensors(layer).items():
        if one.is_meta:
            made = torch.empty_strided(one.size(), one.stride(), dtype=one.dtype)
            made.__class__, made.__dict__ = one.__class__, dict(one.__dict__)
            setattr(layer, name, made)
