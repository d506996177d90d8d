"""A stub of vLLM."""
