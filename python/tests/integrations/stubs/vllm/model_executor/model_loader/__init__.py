"""A stub of vLLM's registry of loaders."""

_LOAD_FORMAT_TO_MODEL_LOADER = {}


def register_model_loader(load_format):
    """Adds a loader by its name."""
    def add(loader):
        _LOAD_FORMAT_TO_MODEL_LOADER[load_format] = loader
        return loader

    return add
