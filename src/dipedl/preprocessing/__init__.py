"""Inputs and features to rows that suit a density, one transformer per file."""

from .._plugins import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
