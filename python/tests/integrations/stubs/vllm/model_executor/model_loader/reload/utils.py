"""Stub: tensors of one layer."""


def get_layer_tensors(layer):
    params, buffers = get_layer_params_buffers(layer)
    return {**params, **buffers}


def get_tensor_load_numel(tensor):
    return tensor.numel()


def get_layer_params_buffers(layer):
    return tuple({name: one for name, one in kept.items() if one is not None}
                 for kept in (layer._parameters, layer._buffers))
