"""Metrics of class probabilities, of OOD detection and of rejection.

Functions of NumPy arrays; what `metric` has declared carries its direction and kind.
"""

from ..protocols import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
