"""The paper's 100,000 LAMOST spectra: galaxies and quasars against stars.

The archive is downloaded, unpacked, and verified by recorded checksums: none are published.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
import warnings
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from dipedl.apps.spectra import Spectra, read_paper_files
from dipedl.datasets import Dataset, Provenance

from ..results.files import read_sums, write_sums
from ..writing import sha256_of, whole_file
from .files import DataDir, RemoteFile, cache_folder, download, offline_folder

__all__ = ["lamost_spectra", "load_lamost"]

#: Address in the code that the paper builds on (superdreamliner/LAMOST-Spectra-Classifier), but
#: for dl=1, which requests the file, not a page about it.
URL = (
    "https://www.dropbox.com/scl/fi/tp81mfopdqbep50vwhhhb/spectra_training_data.tar"
    "?rlkey=l2v9gr2dswpka2yk6gx9q9e6v&st=opdav8fs&dl=1"
)
URL_VARIABLE, SHA256_VARIABLE = "DIPEDL_LAMOST_URL", "DIPEDL_LAMOST_SHA256"
_ARCHIVE = "spectra_training_data.tar"
_CLASSES = {"galaxy": "GALAXY", "quasar": "QSO", "star": "STAR"}
_PLURAL = {"galaxy": "galaxies", "quasar": "quasars", "star": "stars"}

_PROVENANCE = Provenance(
    "LAMOST DR9 spectra with S/N above 10, as the paper uses them",
    urls=(URL,),
    licence="LAMOST data: public, with acknowledgement",
    notes="no checksum is published: the first download is trusted, and verified afterwards",
)


def lamost_spectra(
    data_dir: DataDir = None,
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
        return _read(download_files(address, sha256 or os.environ.get(SHA256_VARIABLE) or None))
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
    spectra: Spectra = read_paper_files(files)
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
    data_dir: DataDir = None,
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


# The archive


def download_files(url: str, sha256: str | None = None) -> list[Path]:
    """FITS files in the cache, downloaded if they are not there yet; verified.

    The archive must have the checksum `sha256` or, without one, that of the first download.
    """
    folder = cache_folder() / "lamost"
    sums = read_sums(folder)
    if sha256 is not None and sums.setdefault(_ARCHIVE, _check_sha256(sha256)) != _check_sha256(
        sha256
    ):
        remedy = f"delete {str(folder)!r} and load again to download it again"
        raise _wrong_checksum(folder / _ARCHIVE, _check_sha256(sha256), sums[_ARCHIVE], remedy)
    names = [name for name in sums if name != _ARCHIVE]
    if not names or not all((folder / name).is_file() for name in names):
        archive = folder / _ARCHIVE
        if not archive.is_file():
            if urlsplit(url).scheme not in ("http", "https"):
                raise ValueError(f"url must begin with http:// or https://, got {url!r}")
            file = RemoteFile((url,), (), sha256 and _check_sha256(sha256))
            download(file, archive, "lamost/*.fits")
        found = {_ARCHIVE: sha256_of(archive)}
        if sums.get(_ARCHIVE, found[_ARCHIVE]) != found[_ARCHIVE]:
            raise _wrong_checksum(
                archive, sums[_ARCHIVE], found[_ARCHIVE], "delete it and load again"
            )
        names = _unpack(archive, folder, url)
        found |= {name: sha256_of(folder / name) for name in names}
        write_sums(folder, found)
        archive.unlink()
    else:
        verify(folder, f"delete {str(folder)!r} and load again to download it again")
    return [folder / name for name in names]


def _check_sha256(sha256: str) -> str:
    if not re.fullmatch("[0-9a-fA-F]{64}", sha256):
        raise ValueError(f"sha256 must be 64 hexadecimal digits, got {sha256!r}")
    return sha256.lower()


def _unpack(archive: Path, folder: Path, url: str) -> list[str]:
    """Write the FITS files of an archive to a folder; only their bytes and file names are used."""
    with open(archive, "rb") as stream:
        single = stream.read(9) == b"SIMPLE  ="
    if single:
        with open(archive, "rb") as stream, whole_file(folder / "train_data.fits") as target:
            shutil.copyfileobj(stream, target)
        return ["train_data.fits"]
    names: list[str] = []
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                name = member.name.replace("\\", "/").rpartition("/")[2]
                if member.isreg() and name.endswith(".fits") and not name.startswith("."):
                    name = _free_name(name, names)
                    with whole_file(folder / name) as target:
                        shutil.copyfileobj(cast("IO[bytes]", tar.extractfile(member)), target)
                    names.append(name)
    except (tarfile.TarError, EOFError, zlib.error):
        names = []
    if not names:
        raise ValueError(
            f"{url} must serve an archive of FITS files, but what came, {str(archive)!r}, is none, "
            "or damaged; delete it, and name another address by url or "
            f"{URL_VARIABLE}, or put the files into the folder lamost of DIPEDL_DATA"
        )
    return sorted(names)


def _free_name(name: str, taken: Sequence[str]) -> str:
    """The name, or one with a number if files of several folders in the archive have it."""
    count = 1
    numbered = name
    while numbered in taken:
        count += 1
        numbered = f"{name.removesuffix('.fits')}-{count}.fits"
    return numbered


def verify(folder: Path, remedy: str) -> None:
    """Raise a ValueError if a file has another checksum than was recorded beside it."""
    for name, digest in read_sums(folder).items():
        path = folder / name
        if path.is_file() and (found := sha256_of(path)) != digest:
            raise _wrong_checksum(path, digest, found, remedy)


def _wrong_checksum(path: Path, recorded: str, found: str, remedy: str) -> ValueError:
    return ValueError(
        f"{str(path)!r} must have the checksum that was given, or recorded when it came first, "
        f"sha256:{recorded}, got sha256:{found}; {remedy}"
    )
