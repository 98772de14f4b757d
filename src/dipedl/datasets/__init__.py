"""Data sets, one per file: checksummed and offline-capable.

Every loader returns a `Dataset`: immutable arrays, out-of-distribution sets and where it all came
from. Functions named ``*_spectra`` that do not load give `dipedl.spectra.Spectra`.
"""

from .._plugins import attach
from ._dataset import (
    Dataset as Dataset,
)  # what every function listed in __all__ returns
from ._dataset import Provenance as Provenance

__getattr__, __dir__, __all__ = attach(__name__, __file__)
