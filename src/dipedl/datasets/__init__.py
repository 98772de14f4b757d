"""Data sets, one per file: checksummed and offline-capable.

Every loader returns a `Dataset`: immutable arrays, OOD sets and provenance. Functions named
``*_spectra`` without ``load_`` return `dipedl.apps.spectra.Spectra`.
"""

from ..protocols import attach
from .dataset import Dataset as Dataset
from .dataset import Provenance as Provenance
from .dataset import split_stratified as split_stratified

__getattr__, __dir__, __all__ = attach(__name__, __file__)
