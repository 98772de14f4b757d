"""Neural networks on PyTorch, one estimator per file; nothing here is imported before it is used."""

from .._plugins import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
