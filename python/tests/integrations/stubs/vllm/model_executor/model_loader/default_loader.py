"""A stub of vLLM."""
from .base_loader import BaseModelLoader


class DefaultModelLoader(BaseModelLoader):
    """vLLM's own loader."""
