"""Stub: the ways of layers with their weights."""


class QuantizeMethodBase:
    def process_weights_after_loading(self, layer):
        ...
