"""`Spectra`: many spectra on one grid, with labels and redshifts; the paper's grid and lines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Failure", "Spectra", "paper_grid"]

#: Names of the labels 0, 1, 2.
CLASSES = ("GALAXY", "QSO", "STAR")
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


class Failure(NamedTuple):
    """A spectrum that could not be used.

    Attributes
    ----------
    file : str
        Its file.
    row : int or None
        Its row in the file, from 0; None for the whole file.
    reason : str
        Why it could not be used.
    """

    file: str
    row: int | None
    reason: str

    def __str__(self) -> str:
        row = "" if self.row is None else f", row {self.row}"
        return f"{self.file}{row}: {self.reason}"


@dataclass(frozen=True, eq=False, repr=False)
class Spectra:
    """Spectra on one grid; arrays of n rows that belong together.

    Parameters
    ----------
    flux : ndarray (n, p), float32
        Flux densities, in the units of their source; readers and generators give finite ones.
    wavelength : ndarray (p,), float64
        Increasing, in Angstrom.
    label : ndarray (n,), int64, optional
        Classes as indices into `target_names`; -1 where it is not known.
    target_names : tuple of str, default=()
        Names of the classes.
    snr : ndarray (n,), float64, optional
        Signal-to-noise ratio per pixel; NaN where it is not known.
    redshift : ndarray (n,), float64, optional
        NaN where it is not known.
    name : ndarray (n,) of str, optional
        Names of the spectra.
    group : ndarray (n,), int64, optional
        Number of the object; one object may have several spectra.
    ivar : ndarray (n, p), float32, optional
        Inverse variances of the flux; 0 where nothing was measured.
    mask : ndarray (n, p), bool, optional
        True where flux was not measured but filled in.
    failures : tuple of Failure, default=()
        Files and rows left out, with reasons.

    Raises
    ------
    TypeError, ValueError
        If an array has the wrong type or shape, wavelengths do not increase, or a label has
        no name.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.apps.spectra import Spectra
    >>> spectra = Spectra(np.ones((3, 4), np.float32), np.linspace(3900, 9000, 4))
    >>> spectra, len(spectra.select([0, 2]))
    (Spectra(n=3, 3900-9000 Angstrom in 4 pixels, failures=0), 2)
    """

    flux: NDArray[np.float32]
    wavelength: NDArray[np.float64]
    label: NDArray[np.int64] | None = None
    target_names: tuple[str, ...] = ()
    snr: NDArray[np.float64] | None = None
    redshift: NDArray[np.float64] | None = None
    name: NDArray[np.str_] | None = None
    group: NDArray[np.int64] | None = None
    ivar: NDArray[np.float32] | None = None
    mask: NDArray[np.bool_] | None = None
    failures: tuple[Failure, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        shape: tuple[int, ...] = getattr(self.flux, "shape", ())
        if len(shape) != 2 or self.flux.dtype != np.float32:
            raise TypeError(
                f"flux must be a float32 array (n, p), got {getattr(self.flux, 'dtype', None)} "
                f"{shape}; convert it with np.asarray(..., dtype=np.float32)"
            )
        if self.wavelength.shape != shape[1:] or not np.all(np.diff(self.wavelength) > 0):
            raise ValueError(
                f"wavelength must be increasing, one for each of the {shape[1]} pixels of flux, "
                f"got shape {self.wavelength.shape}; sort the pixels"
            )
        for name in _PER_ROW + _PER_PIXEL:
            array, wanted = getattr(self, name), shape[:1] if name in _PER_ROW else shape
            if array is not None and np.shape(array) != wanted:
                raise ValueError(f"{name} must have shape {wanted}, got {np.shape(array)}")
        known = len(self.target_names)
        if (
            self.label is not None
            and len(self)
            and not -1 <= self.label.min() <= self.label.max() < known
        ):
            raise ValueError(
                f"label must hold indices 0..{known - 1} into target_names, or -1, got "
                f"{self.label.min()}..{self.label.max()}; name all the classes"
            )

    def __len__(self) -> int:
        return len(self.flux)

    def __repr__(self) -> str:
        low, high = (f"{w:g}" for w in self.wavelength[[0, -1]])
        return (
            f"Spectra(n={len(self)}, {low}-{high} Angstrom in {self.flux.shape[1]} pixels, "
            f"failures={len(self.failures)})"
        )

    def select(self, rows: Any) -> Self:
        """The spectra of some rows: indices, a slice, or a mask (n,)."""
        taken: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[rows]
            for name in ("flux", *_PER_ROW, *_PER_PIXEL)
        }
        return replace(self, **taken)


_PER_ROW = ("label", "snr", "redshift", "name", "group")
_PER_PIXEL = ("ivar", "mask")
