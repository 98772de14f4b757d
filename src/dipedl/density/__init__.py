"""Density estimators: log p(x)."""

from ..protocols import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
