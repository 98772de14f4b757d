"""Data sets of the suites: checksummed and offline-capable, beside those of `dipedl.datasets`.

Every loader returns a `dipedl.datasets.Dataset`. Functions named ``*_spectra`` without ``load_``
return `dipedl.apps.spectra.Spectra`.
"""

from dipedl.protocols import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
