"""Temperature, spread, cross-fitting and pseudo-outliers, learned on held-out rows."""

from ..protocols import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
