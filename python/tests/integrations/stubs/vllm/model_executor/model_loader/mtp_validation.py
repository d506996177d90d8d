"""Stub: a check of models with draft layers."""
from contextlib import contextmanager


@contextmanager
def disable_mtp_completeness_check():
    yield
