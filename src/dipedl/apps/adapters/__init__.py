"""Detectors of other libraries as densities, and models of this one in the terms of others.

Most libraries need none of this: the page "Other libraries" has the lines.
"""

from ...protocols import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
