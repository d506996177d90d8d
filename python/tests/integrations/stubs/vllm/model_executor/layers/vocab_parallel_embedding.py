"""Stub: embeddings."""
from .quantization.base_config import QuantizeMethodBase


class UnquantizedEmbeddingMethod(QuantizeMethodBase):
    def process_weights_after_loading(self, layer):
        ...
