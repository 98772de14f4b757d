"""Made-up spectra as a data set, for tests and documentation."""

from __future__ import annotations

from dipedl.apps.spectra.toy import toy_spectra
from dipedl.datasets.dataset import Dataset, Provenance

from ..files.spectra_problem import stars_unknown

__all__ = ["load_toy_spectra"]


def load_toy_spectra(n: int = 1000, *, random_state: int = 0) -> Dataset:
    """MADE-UP galaxies and quasars, a fifth of them to test; made-up stars are the ood set.

    Parameters
    ----------
    n : int, default=1000
        Spectra, 30 % of them stars.
    random_state : int, default=0
        Seed of the spectra and of the split.

    Returns
    -------
    Dataset
        Inputs (rows, 3000), float32: flux; labels 0 GALAXY, 1 QSO; ``ood["stars"]``.

    Raises
    ------
    TypeError, ValueError
        As `toy_spectra`; also if n is too small for both classes in both parts.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_toy_spectra
    >>> load_toy_spectra(100)
    Dataset('toy-spectra', X_train=(56, 3000), X_test=(14, 3000), n_classes=2, ood={'stars': 30})
    """
    note = f"nothing was observed; n={n}, random_state={random_state}"
    made_up = Provenance("made-up spectra", licence="synthetic", notes=note)
    spectra = toy_spectra(n, random_state=random_state)
    return stars_unknown("toy-spectra", spectra, random_state, (made_up,))
