"""Gaussians: moments with ``+``, scatter, factors and distances, for numpy and torch."""

from .moments import Moments

__all__ = ["Moments"]
