"""A stub of vLLM."""


def download_weights_from_hf(model_name_or_path, cache_dir, allow_patterns, revision=None,
                             subfolder=None, ignore_patterns=None):
    """Fetches nothing."""
    raise NotImplementedError
