"""One plot a module."""
