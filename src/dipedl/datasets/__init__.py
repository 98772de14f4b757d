"""Data sets, one per file: checksummed and offline-capable."""

from .._plugins import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
