"""Metrics, one kind per file.

No file has a public name: importing ``accuracy.py`` would put the module, not the function, at
`dipedl.metrics.accuracy`.
"""

from .._plugins import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
