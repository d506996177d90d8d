"""Stub: attention, which makes tensors of other layers' weights."""


def is_deferred_attention_layer(layer):
    return callable(getattr(layer, "process_weights_after_loading", None))
