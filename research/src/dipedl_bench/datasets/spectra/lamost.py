"""The paper's 100,000 LAMOST spectra: galaxies and quasars against stars."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipedl.apps.spectra.files.paper_files import read_paper_files
from dipedl.apps.spectra.spectra import Spectra
from dipedl.datasets.dataset import Dataset, Provenance

from ..files.fetch import offline_folder
from ..files.lamost_files import SHA256_VARIABLE, URL, URL_VARIABLE, downloaded, verify

__all__ = ["lamost_spectra", "load_lamost"]

_CLASSES = {"galaxy": "GALAXY", "quasar": "QSO", "star": "STAR"}
_PLURAL = {"galaxy": "galaxies", "quasar": "quasars", "star": "stars"}

_PROVENANCE = Provenance(
    "LAMOST DR9 spectra with S/N above 10, as the paper uses them",
    urls=(URL,),
    licence="LAMOST data: public, with acknowledgement",
    notes="no checksum is published: the first download is trusted, and verified afterwards",
)


def lamost_spectra(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    url: str | None = None,
    sha256: str | None = None,
) -> Spectra:
    """All of the paper's spectra, in the order of files and rows.

    They are searched in the folder ``lamost`` of `data_dir`, else of ``DIPEDL_DATA``; if neither is
    given, of the cache (``DIPEDL_CACHE``, or the user's cache directory), to which the archive (2.4
    GB) is downloaded once: an interrupted download starts again. No checksum is published, so the
    first download is trusted unless you give one by `sha256`; its checksums are written to
    ``SHA256SUMS`` beside the files, which are verified by them whenever they are read.

    Parameters
    ----------
    data_dir : path-like or None, default=None
        Directory that holds ``lamost/`` with the FITS files; nothing is downloaded then.
    url : str or None, default=None
        Where to download the archive (.tar, or one FITS file in the same layout). None:
        ``DIPEDL_LAMOST_URL``, else the address that the paper's authors name. That address could
        not be tested.
    sha256 : str or None, default=None
        Checksum that the downloaded archive must have. None: ``DIPEDL_LAMOST_SHA256``, else that of
        the first download (trust on first use).

    Returns
    -------
    Spectra
        100,000 spectra, 1.2 GB; see `dipedl.apps.spectra.read_paper_files`. Labels 0 GALAXY
        (3,427), 1 QSO (1,011), 2 STAR (95,562).

    Raises
    ------
    FileNotFoundError
        If `data_dir` or ``DIPEDL_DATA`` is given and no FITS file is there.
    ValueError
        If a file does not have the recorded checksum, or the download is no such archive.
    ConnectionError
        If the archive cannot be downloaded.
    ImportError
        If astropy is missing: ``pip install 'dipedl[spectra]'``; or, for a download, pooch.

    Warns
    -----
    UserWarning
        If a file or row could not be used: it is in `failures`, and the numbers are no longer those
        of the paper's spectra.

    Examples
    --------
    >>> from dipedl_bench.datasets import lamost_spectra
    >>> lamost_spectra()  # doctest: +SKIP
    Spectra(n=100000, 3900-9000 Angstrom in 3000 pixels, failures=0)
    """
    folder, origin = offline_folder(data_dir)
    if folder is None:
        address = url or os.environ.get(URL_VARIABLE) or URL
        return _read(downloaded(address, sha256 or os.environ.get(SHA256_VARIABLE) or None))
    files = sorted((folder / "lamost").glob("[!.]*.fits*"))
    if not files:
        raise FileNotFoundError(
            f"{origin} must name a directory whose folder lamost holds the paper's FITS files, but "
            f"{str(folder / 'lamost')!r} has none; put train_data_01.fits to train_data_10.fits "
            f"there out of {URL}, or give neither data_dir nor DIPEDL_DATA to download them"
        )
    verify(folder / "lamost", "replace it by the file that was there first")
    return _read(files)


def _read(files: Iterable[Path]) -> Spectra:
    spectra = read_paper_files(files)
    if spectra.failures:
        warnings.warn(
            f"{len(spectra.failures)} files or rows of the LAMOST spectra are left out, the first: "
            f"{spectra.failures[0]}; replace the files, or numbers will not be the paper's",
            UserWarning,
            stacklevel=3,
        )
    return spectra


def load_lamost(
    *,
    ood: str = "star",
    random_state: int = 10,
    data_dir: str | os.PathLike[str] | None = None,
    url: str | None = None,
    sha256: str | None = None,
) -> Dataset:
    """The paper's LAMOST problem: two classes are known, the third was never labelled.

    Split by the paper's protocol, not stratified: rows of the known classes are permuted by
    ``default_rng(random_state)``; three fifths train, a fifth validates, a fifth tests. Validation
    rows are the last ones of `X_train`, as many as `X_test` has::

        n = len(data.X_test)
        X_train, X_validation = data.X_train[:-n], data.X_train[-n:]

    Parameters
    ----------
    ood : {"star", "quasar", "galaxy"}, default="star"
        The OOD class. Stars are all OOD, unsplit; with "quasar" or "galaxy"
        the larger known class is cut to the size of the smaller one, and the OOD class to that of
        the test set, as in the paper's code.
    random_state : int, default=10
        Seed of the split; the paper's are 10, 20, 30 and 40.
    data_dir, url, sha256
        As for `lamost_spectra`.

    Returns
    -------
    Dataset
        Inputs (n, 3000), float32: flux as published, see `dipedl.apps.spectra.spectral_features`;
        with stars as OOD 3,551 + 887 rows, and ``ood["stars"]`` 95,562.

    Raises
    ------
    ValueError
        If `ood` is another class, or the files hold none of a known class; see `lamost_spectra`
        for files.

    References
    ----------
    Carlotti, Gligić, Farahi, "Density-Informed Pseudo-Counts for Calibrated Evidential Deep
    Learning", section on LAMOST.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_lamost
    >>> load_lamost().ood["stars"].shape  # doctest: +SKIP
    (95562, 3000)
    """
    if ood not in _CLASSES:
        raise ValueError(f"ood must be one of {list(_CLASSES)}, got {ood!r}")
    spectra = lamost_spectra(data_dir, url=url, sha256=sha256)
    label = np.asarray(spectra.label)
    known = tuple(name for name in _CLASSES.values() if name != _CLASSES[ood])
    numbers = [spectra.target_names.index(name) for name in known]
    out = np.flatnonzero(label == spectra.target_names.index(_CLASSES[ood]))
    rows = np.flatnonzero(np.isin(label, numbers))
    y = (label[rows] == numbers[1]).astype(np.int64)
    counts = np.bincount(y, minlength=2)
    if counts.min() == 0:
        raise ValueError(
            f"the files must hold spectra of {known[0]} and {known[1]}, got {counts[0]} and "
            f"{counts[1]}; all galaxies and quasars are in train_data_01.fits: is it there?"
        )
    if ood != "star":
        kept = _balanced(y, random_state)
        rows, y = rows[kept], y[kept]
    order = np.random.default_rng(random_state).permutation(len(rows))
    n_test = len(rows) // 5
    train, test = np.split(order, [len(rows) - n_test])
    if ood != "star" and len(out) > n_test:
        draw = np.random.default_rng(random_state + 1)
        out = out[draw.choice(len(out), n_test, replace=False)]
    return Dataset(
        "lamost",
        spectra.flux[rows[train]],
        y[train],
        spectra.flux[rows[test]],
        y[test],
        ood={_PLURAL[ood]: spectra.flux[out]},
        target_names=known,
        provenance=(_PROVENANCE,),
    )


def _balanced(y: NDArray[np.int64], random_state: int) -> NDArray[np.int64]:
    """Rows, in order, with the larger class cut to the size of the smaller one."""
    parts: list[NDArray[Any]] = [np.flatnonzero(y == 0), np.flatnonzero(y == 1)]
    n, larger = min(map(len, parts)), int(len(parts[1]) > len(parts[0]))
    if len(parts[larger]) > n:
        draw = np.random.default_rng(random_state)
        parts[larger] = draw.choice(parts[larger], n, replace=False)
    return np.sort(np.concatenate(parts))
