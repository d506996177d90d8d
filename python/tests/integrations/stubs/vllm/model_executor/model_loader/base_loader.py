"""A stub of vLLM."""


class BaseModelLoader:
    """What a loader begins with."""

    def __init__(self, load_config):
        self.load_config = load_config
