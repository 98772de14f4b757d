"""Data sets of spectra: observed, semi-real, supernovae, made-up; stars are OOD.

Functions named ``load_*`` return a `dipedl.datasets.Dataset`, the others
`dipedl.apps.spectra.Spectra`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dipedl.apps.spectra import Spectra, fill_gaps, toy_spectra
from dipedl.datasets import Dataset, Provenance

from .files import INGREDIENTS, PROVENANCE, DataDir, fetch
from .semi_real import CLASSES, generate_semi_real

__all__ = [
    "load_real_spectra",
    "load_semi_real_spectra",
    "load_toy_spectra",
    "real_spectra",
    "semi_real_spectra",
    "supernova_spectra",
]

KNOWN = CLASSES[:2]
FULL_COVERAGE = 0.985  # smallest share of observed pixels
_TEST_SHARE = 0.2


def real_spectra(
    *,
    data_dir: DataDir = None,
    one_per_object: bool = True,
    min_snr: float = 4.0,
) -> Spectra:
    """OBSERVED spectra of SDSS, LAMOST and others, on the paper's grid, nearly all of it covered.

    Class and instrument are confounded: galaxies and quasars are mostly of SDSS, stars mostly of
    LAMOST and of libraries. 21 quasars of the 640 rows of the default are spectra that
    `semi_real_spectra` also takes parameters from (`name` ends like theirs). One object (`group`
    333) is a galaxy in one survey and a quasar in another; of the two the galaxy comes first.

    Parameters
    ----------
    data_dir : path-like or None, default=None
        Directory that holds ``spectra/real_spectra.npz``. No official mirror has it, so it cannot
        be downloaded: without `data_dir` the directory named by ``DIPEDL_DATA`` must hold it.
    one_per_object : bool, default=True
        Keep the first of the spectra of each object.
    min_snr : float, default=4.0
        Smallest S/N; below 3 labels are unreliable. Library stars, whose S/N is not known, are
        kept.

    Returns
    -------
    Spectra
        Those of which more than 98.5 % of the pixels were observed; `mask` is True where they were
        not, and flux is the nearest observed value there. Flux in units of the median of its
        spectrum, because sources differ in their units by a factor of up to 1e17; labels 0 GALAXY,
        1 QSO, 2 STAR; S/N per pixel, NaN for library stars; redshift; name; `group` is the number
        of the object.

    Raises
    ------
    TypeError, ValueError
        If `min_snr` is not a number, or the file does not have the known checksum.
    FileNotFoundError
        If the file is missing.

    Examples
    --------
    >>> from dipedl_bench.datasets import real_spectra
    >>> real_spectra()  # doctest: +SKIP
    Spectra(n=640, 3900-9000 Angstrom in 3000 pixels, failures=0)
    """
    if isinstance(min_snr, bool) or not isinstance(min_snr, int | float | np.number):
        raise TypeError(f"min_snr must be a number, got {min_snr!r}; pass 0 to keep all")
    if not min_snr < np.inf:
        raise ValueError(f"min_snr must be finite, got {min_snr!r}; pass 0 to keep all")
    content = arrays("spectra/real_spectra.npz", data_dir)
    rows = np.flatnonzero((content["coverage"] > FULL_COVERAGE) & ~(content["snr"] < min_snr))
    if one_per_object:
        _, first = np.unique(content["group"][rows], return_index=True)
        rows = rows[np.sort(first)]
    flux, mask = over_median(content["flux"][rows])
    return Spectra(
        flux,
        content["wavelength"],
        _numbers(content["label"][rows]),
        CLASSES,
        content["snr"][rows].astype(np.float64),
        content["z"][rows].astype(np.float64),
        content["key"][rows],
        content["group"][rows].astype(np.int64),
        mask=mask,
    )


def _numbers(names: NDArray[np.str_]) -> NDArray[np.int64]:
    found = names[:, None] == np.array(CLASSES)
    if not found.any(axis=1).all():
        unknown = sorted(set(names[~found.any(axis=1)].tolist()))
        raise ValueError(
            f"label must be one of {list(CLASSES)}, got {unknown}; take the known file"
        )
    return np.asarray(found.argmax(axis=1), np.int64)


def load_real_spectra(*, min_snr: float = 4.0, data_dir: DataDir = None) -> Dataset:
    """OBSERVED galaxies and quasars, one spectrum of each object, as a test set; stars are ood.

    They are too few, from too many instruments, for training.

    Parameters
    ----------
    min_snr : float, default=4.0
        Smallest S/N.
    data_dir : path-like or None, default=None
        Directory that holds ``spectra/real_spectra.npz``; without it the one named by
        ``DIPEDL_DATA``.

    Returns
    -------
    Dataset
        Inputs (rows, 3000) in `X_test`, float32: flux; labels 0 GALAXY, 1 QSO; `X_train` has no
        rows; ``ood["stars"]``.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        As `real_spectra`.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_real_spectra
    >>> load_real_spectra().X_train.shape  # doctest: +SKIP
    (0, 3000)
    """
    spectra = real_spectra(data_dir=data_dir, min_snr=min_snr)
    known, stars = spectra.of_class(KNOWN), spectra.of_class(("STAR",))
    y = np.asarray(known.label)
    return Dataset(
        "real-spectra",
        known.flux[:0],
        y[:0],
        known.flux,
        y,
        ood={"stars": stars.flux},
        target_names=KNOWN,
        provenance=(PROVENANCE["real"],),
    )


def semi_real_spectra(
    n: int = 100_000,
    *,
    mix: str | Mapping[str, float] = "paper-file",
    random_state: int = 0,
    rows: ArrayLike | None = None,
    data_dir: DataDir = None,
) -> Spectra:
    """SEMI-REAL spectra: parameters of real SDSS objects, flux models, LAMOST's noise.

    They are generated, not observed: results are not comparable with those on LAMOST spectra.
    `generate_semi_real` says how they are made and what makes them easier than
    observed ones.

    Parameters
    ----------
    n : int, default=100_000
        Spectra; 100,000 take 1.2 GB.
    mix, random_state, rows : optional
        As of `generate_semi_real`.
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
    data_dir: DataDir = None,
) -> Dataset:
    """SEMI-REAL galaxies and quasars; stars and supernovae are the ood sets.

    A fifth of the known rows is the test set. The split goes by object: no galaxy or quasar of SDSS
    is in both parts, however often it is drawn.

    Parameters
    ----------
    n : int, default=10_000
        Spectra, stars among them.
    mix : "paper-file" or mapping, default="paper-file"
        As of `generate_semi_real`.
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


def supernova_spectra(
    snr: ArrayLike, *, random_state: int = 0, data_dir: DataDir = None
) -> Spectra:
    """Templates of supernovae, with ADDED noise of the shape of LAMOST noise curves.

    The templates are nearly free of noise, which alone would separate them from other spectra.
    They are 224 spectra of 60 supernovae at several epochs each: intervals that assume
    independence are too narrow; `group` holds the supernova. 214 go back to observations; ten,
    whose names begin with "theory99em", are models. Ten stand in the file twice, four of these
    under another name.

    Parameters
    ----------
    snr : float or array-like (m,)
        S/N per pixel, above 0. Each spectrum gets one of an array, drawn with replacement: pass the
        S/N of the in-distribution spectra.
    random_state : int, default=0
        Seed; the same seed gives the same noise.
    data_dir : path-like or None, default=None
        Directory that holds ``spectra/ood_supernovae.npz`` and ``spectra/sim_ingredients.npz``. No
        official mirror has them, so they cannot be downloaded: without `data_dir` the directory
        named by ``DIPEDL_DATA`` must hold them.

    Returns
    -------
    Spectra
        The 224 templates of which more than 98.5 % of the pixels are known; `mask` is True where
        they are not, and the nearest value is taken. Flux in units of the median before noise; no
        label; the S/N of the added noise; redshift 0, as templates are in the rest frame; name;
        `group` is the number of the supernova.

    Raises
    ------
    TypeError, ValueError
        If `snr` is not finite and above 0, `random_state` not an integer >= 0, or a file does not
        have the known checksum.
    FileNotFoundError
        If a file is missing.

    References
    ----------
    Muthukrishna, Parkinson and Tucker, "DASH: Deep Learning for the Automated Spectral
    Classification of Supernovae and Their Hosts", Astrophysical Journal 885, 2019.

    Examples
    --------
    >>> from dipedl_bench.datasets import supernova_spectra
    >>> supernova_spectra(20.0)  # doctest: +SKIP
    Spectra(n=224, 3900-9000 Angstrom in 3000 pixels, failures=0)
    """
    levels = _levels(snr)
    rng = np.random.default_rng(random_state)
    content = arrays("spectra/ood_supernovae.npz", data_dir)
    curves = arrays(INGREDIENTS, data_dir)["noise_shape"]
    rows = content["coverage"] > FULL_COVERAGE
    flux, mask = over_median(content["flux"][rows])
    drawn = rng.choice(levels, len(flux))
    curve = curves[rng.integers(len(curves), size=len(flux))]
    noise = rng.standard_normal(flux.shape, np.float32)
    flux += curve / drawn[:, None].astype(np.float32) * noise
    name = content["key"][rows]
    # "sn1999em.p15.dat" is SN 1999em, fifteen days past maximum
    _, group = np.unique(np.char.partition(name, ".")[:, 0], return_inverse=True)
    return Spectra(
        flux,
        content["wavelength"],
        snr=drawn,
        redshift=np.zeros(len(flux)),
        name=name,
        group=group.astype(np.int64),
        mask=mask,
    )


def _levels(snr: ArrayLike) -> NDArray[np.float64]:
    try:
        levels = np.atleast_1d(np.asarray(snr, np.float64))
    except (TypeError, ValueError) as error:
        raise TypeError(f"snr must be a number or an array of numbers, got {snr!r}") from error
    if levels.ndim != 1 or not levels.size or not np.all((levels > 0) & np.isfinite(levels)):
        raise ValueError(
            f"snr must be finite and above 0, a number or an array (m,) with m >= 1, got {snr!r}; "
            "leave out rows whose S/N is not known"
        )
    return levels


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


def arrays(name: str, data_dir: DataDir) -> dict[str, NDArray[Any]]:
    """Return the arrays of a published file by name."""
    with np.load(fetch(name, data_dir), allow_pickle=False) as content:
        return dict(content)


def over_median(flux: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Flux (n, p) without NaN, over the median of its spectrum; the mask of former NaN.

    Unobserved pixels at an edge get the nearest observed value; others are interpolated.
    """
    flux = flux.astype(np.float32)
    mask = ~np.isfinite(flux)
    flux = fill_gaps(flux, mask, np.arange(flux.shape[1]))
    flux /= np.median(flux, axis=1, keepdims=True)
    return flux, mask


def stars_unknown(
    name: str,
    spectra: Spectra,
    random_state: int,
    provenance: tuple[Provenance, ...],
    ood: Mapping[str, NDArray[Any]] | None = None,
) -> Dataset:
    """Data set of the known classes; a fifth of their objects is the test set."""
    known, stars = spectra.of_class(KNOWN), spectra.of_class(("STAR",))
    y = np.asarray(known.label)
    # A row without a group counts as one object.
    group = np.arange(len(known)) if known.group is None else known.group
    objects = np.random.default_rng(random_state).permutation(np.unique(group))
    test = np.isin(group, objects[: round(_TEST_SHARE * len(objects))])
    for part, rows in (("training", ~test), ("test", test)):
        counts = np.bincount(y[rows], minlength=len(KNOWN))
        if counts.min() == 0:
            raise ValueError(
                f"the {part} part must hold galaxies and quasars, got {counts[0]} and {counts[1]}; "
                "raise n, or give more of both in mix"
            )
    return Dataset(
        name,
        known.flux[~test],
        y[~test],
        known.flux[test],
        y[test],
        ood={"stars": stars.flux, **(ood or {})},
        target_names=KNOWN,
        provenance=provenance,
    )
