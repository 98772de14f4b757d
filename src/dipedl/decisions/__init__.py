"""Decisions about one input: call it OOD, answer with a set of classes, or refuse to answer.

Free functions of arrays, for any model that has scores or class probabilities; every threshold
comes from held-out in-distribution rows. `dipedl.DIPClassifier` calls them on its own.
"""

from ..protocols import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
