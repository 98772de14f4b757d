"""The paper's wavelength grid, and spectral lines."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

__all__ = ["paper_grid"]

#: Rest wavelengths in Angstrom (air for the optical lines, as the paper has them) by name.
LINES = MappingProxyType(
    {
        "Lyα": 1215.67,
        "C IV": 1549.06,
        "C III]": 1908.73,
        "Mg II": 2798.75,
        "[O II]": 3727.42,
        "Ca K": 3933.66,
        "Ca H": 3968.47,
        "Hδ": 4101.75,
        "Hγ": 4340.47,
        "Hβ": 4861.34,
        "[O III]": 5006.84,
        "Mg b": 5183.62,
        "Na D": 5889.95,
        "Hα": 6562.81,
        "[S II]": 6716.44,
    }
)
#: Names of the six lines whose mean flux is a feature, in the paper's order.
PAPER_LINES = ("Hα", "Hβ", "Hγ", "Hδ", "Mg b", "Na D")


def paper_grid() -> np.ndarray:
    """Wavelengths of the paper's LAMOST spectra, in Angstrom, shape (3000,): 3900 to 9000, linear.

    Examples
    --------
    >>> from dipedl.apps.spectra import paper_grid
    >>> grid = paper_grid()
    >>> grid.shape, float(grid[0]), float(grid[-1]), round(float(grid[1] - grid[0]), 4)
    ((3000,), 3900.0, 9000.0, 1.7006)
    """
    return np.linspace(3900.0, 9000.0, 3000)
