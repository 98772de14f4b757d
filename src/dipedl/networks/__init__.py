"""Neural networks on PyTorch, one estimator per file; imported on first use."""

from ..protocols import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
