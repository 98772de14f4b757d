"""From log-density to log-evidence: free functions for the maths, tiny classes that normalise.

A normaliser maps a log-density in nats to a dimensionless z; the pseudo-count is then
``n * gamma * exp(z)``.
"""

from ..protocols import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
