"""Semi-real spectra, a substitute for the paper's LAMOST spectra."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dipedl.apps.spectra.spectra import Spectra
from dipedl.datasets.dataset import Dataset

from ...spectra.semi_real import generate_semi_real
from ..files.sources import INGREDIENTS, PROVENANCE
from ..files.spectra_problem import KNOWN, arrays, stars_unknown
from .supernovae import supernova_spectra

__all__ = ["load_semi_real_spectra", "semi_real_spectra"]


def semi_real_spectra(
    n: int = 100_000,
    *,
    mix: str | Mapping[str, float] = "paper-file",
    random_state: int = 0,
    rows: npt.ArrayLike | None = None,
    data_dir: str | os.PathLike[str] | None = None,
) -> Spectra:
    """SEMI-REAL spectra: parameters of real SDSS objects, flux models, LAMOST's noise.

    They are generated, not observed: results are not comparable with those on LAMOST spectra.
    `dipedl.apps.spectra.generate_semi_real` says how they are made and what makes them easier than
    observed ones.

    Parameters
    ----------
    n : int, default=100_000
        Spectra; 100,000 take 1.2 GB.
    mix, random_state, rows : optional
        As of `dipedl.apps.spectra.generate_semi_real`.
    data_dir : path-like or None, default=None
        Directory that holds ``spectra/sim_ingredients.npz``. No official mirror has it, so it
        cannot be downloaded: without `data_dir` the directory named by ``DIPEDL_DATA`` must hold
        it.

    Returns
    -------
    Spectra
        Labels 0 GALAXY, 1 QSO, 2 STAR; with S/N, redshift (0 for stars), name, and the number of
        the object or stellar model in `group`.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or the file does not have the known checksum.
    FileNotFoundError
        If the file is missing.

    Examples
    --------
    >>> from dipedl_bench.datasets import semi_real_spectra
    >>> semi_real_spectra(5000)  # doctest: +SKIP
    Spectra(n=5000, 3900-9000 Angstrom in 3000 pixels, failures=0)
    """
    ingredients = arrays(INGREDIENTS, data_dir)
    return generate_semi_real(ingredients, n, mix=mix, random_state=random_state, rows=rows)


def load_semi_real_spectra(
    n: int = 10_000,
    *,
    mix: str | Mapping[str, float] = "paper-file",
    random_state: int = 0,
    data_dir: str | os.PathLike[str] | None = None,
) -> Dataset:
    """SEMI-REAL galaxies and quasars; stars and supernovae are the ood sets.

    A fifth of the known rows is the test set. The split goes by object: no galaxy or quasar of SDSS
    is in both parts, however often it is drawn.

    Parameters
    ----------
    n : int, default=10_000
        Spectra, stars among them.
    mix : "paper-file" or mapping, default="paper-file"
        As of `dipedl.apps.spectra.generate_semi_real`.
    random_state : int, default=0
        Seed of the spectra and of the split.
    data_dir : path-like or None, default=None
        Directory that holds ``spectra/sim_ingredients.npz`` and ``spectra/ood_supernovae.npz``;
        without it the one named by ``DIPEDL_DATA``.

    Returns
    -------
    Dataset
        Inputs (rows, 3000), float32: flux; labels 0 GALAXY, 1 QSO; ``ood["stars"]``, semi-real too,
        and ``ood["supernovae"]``, templates with noise at the S/N of known rows.

    Raises
    ------
    TypeError, ValueError
        As `semi_real_spectra`; also if there is not a galaxy and a quasar in each part.
    FileNotFoundError
        If a file is missing.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_semi_real_spectra
    >>> load_semi_real_spectra(5000).n_classes  # doctest: +SKIP
    2
    """
    spectra = semi_real_spectra(n, mix=mix, random_state=random_state, data_dir=data_dir)
    levels = np.asarray(spectra.snr)[np.asarray(spectra.label) < len(KNOWN)]
    supernovae = supernova_spectra(levels, random_state=random_state, data_dir=data_dir)
    made = PROVENANCE["semi_real"]
    note = f"{made.notes}; n={n}, mix={mix}, random_state={random_state}"
    origins = (replace(made, notes=note), PROVENANCE["supernovae"])
    return stars_unknown(
        "semi-real-spectra", spectra, random_state, origins, {"supernovae": supernovae.flux}
    )
