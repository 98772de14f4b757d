"""A Dirichlet on trained networks: densities of features that stream, on any device."""

from ..protocols import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
