"""Methods to compare with, one per file, each an `UncertaintyClassifier`."""

from ..protocols import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
