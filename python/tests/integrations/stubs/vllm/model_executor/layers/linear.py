"""Stub: layers that take weights as they are loaded."""
from .quantization.base_config import QuantizeMethodBase


class UnquantizedLinearMethod(QuantizeMethodBase):
    def process_weights_after_loading(self, layer):
        ...
