"""Gaussians: moments with ``+``, shrinkage, factors and distances."""

from .moments import Moments

__all__ = ["Moments"]
