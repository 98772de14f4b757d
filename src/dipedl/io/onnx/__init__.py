"""Fitted models as one ONNX graph; imported on first use."""

from ...protocols import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
