"""A stub of vLLM."""


def download_weights_from_hf(*_args, **_kwargs):
    """Fetches nothing."""
    raise NotImplementedError
