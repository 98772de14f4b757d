"""Spectra as rows of a suite: split as the paper splits them, features fitted on training rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Memory

from dipedl.apps import spectra
from dipedl.apps.spectra import Spectra, toy_spectra

from .. import datasets
from ..results.scores import OOD_PREFIX, SHIFTED_PREFIX
from .files import INGREDIENTS

#: Number of the class of stars; galaxies and quasars are the known ones.
_STAR = 2
_TEST_SHARE = 0.2

Rows = dict[str, np.ndarray]


class Recipe(NamedTuple):
    """A data set of spectra.

    `make` gives all of them; `preset` and `n_components` are those of
    `dipedl.apps.spectra.spectral_features`; `files` are read. OOD sets may be `ood`, labelled test
    rows from elsewhere `shifted`; "stars" are those of the data set itself.
    """

    make: Callable[[], Spectra]
    preset: str = "standardised"
    n_components: int = 500
    files: tuple[str, ...] = ()
    ood: tuple[str, ...] = ("stars",)
    shifted: tuple[str, ...] = ()


def _semi_real(preset: str = "standardised", **options: Any) -> Recipe:
    sets = ("stars", "supernovae", "real_stars"), ("real",)
    files = (INGREDIENTS,)
    return Recipe(lambda: datasets.semi_real_spectra(**options), preset, 500, files, *sets)


_SCARCE = {"GALAXY": 3427, "QSO": 1011, "STAR": 95_562}
#: Data sets of spectra by name.
SPECTRA: dict[str, Recipe] = {
    "toy-spectra": Recipe(lambda: toy_spectra(1500), n_components=40),
    "semi-real": _semi_real(),
    "semi-real-scarce": _semi_real(mix=_SCARCE),
    "semi-real-scarce-published": _semi_real("published", mix=_SCARCE),
    "lamost": Recipe(lambda: datasets.lamost_spectra()),
    "lamost-published": Recipe(lambda: datasets.lamost_spectra(), "published"),
}
_REAL = "spectra/real_spectra.npz"
#: Files of OOD sets and of shifted sets.
_FILES = {
    "supernovae": ("spectra/ood_supernovae.npz", INGREDIENTS),
    "real_stars": (_REAL,),
    "real": (_REAL,),
}


def spectra_files(config: Mapping[str, Any]) -> list[str]:
    """Return the published files that the splits of a config are made of."""
    others = (_FILES.get(name, ()) for name in (*config["ood"], *config.get("shifted", ())))
    return sorted({*SPECTRA[config["dataset"]].files, *(file for of in others for file in of)})


def spectra_splits(
    config: Mapping[str, Any], seed: int, keep: Path | None = None
) -> tuple[Rows, Rows]:
    """Features (n, d) and labels (n,) by split; `config` as for `make_splits`.

    Rows of the known classes are drawn by ``default_rng(seed).permutation``: the first three fifths
    train, then as many validate as test, ``int(n / 5)``: the paper's protocol. Where several
    spectra are of one object, objects are drawn, so that no object is on two sides. All stars are
    OOD.

    Features of 100,000 spectra take longer than many a training, so joblib keeps them in the folder
    `keep`, once for each data set and seed: empty it when the code that makes spectra or features
    has changed. What is damaged there is made again.
    """
    memory = Memory(keep, verbose=0, compress=1)  # compressed: a flipped bit is found
    X, y = memory.cache(make_features)(dict(config), seed)
    return X, y


def make_features(config: Mapping[str, Any], seed: int) -> tuple[Rows, Rows]:
    """Compute what `spectra_splits` keeps."""
    recipe = SPECTRA[config["dataset"]]
    every = recipe.make()
    plan = split_spectra(every, config, seed)
    pipeline = spectra.spectral_features(
        recipe.preset, wavelength=every.wavelength, n_components=recipe.n_components
    )
    pipeline.fit(every.flux[plan["train"]])
    X, y = {}, {}
    for split, source, rows in _parts(every, plan, config, seed):
        X[split] = pipeline.transform(source.flux[rows])
        if not split.startswith(OOD_PREFIX):
            y[split] = np.asarray(source.label)[rows].astype(np.int64)
    return X, y


def split_spectra(every: Spectra, config: Mapping[str, Any], seed: int) -> Rows:
    """Draw the rows of each split of the known spectra, and of the stars."""
    label = np.asarray(every.label)
    mine = np.flatnonzero(label < _STAR)
    if set(range(_STAR)) - set(label[mine].tolist()):
        raise ValueError(
            f"the data set {config['dataset']!r} must hold galaxies and quasars, got "
            f"{np.sum(label == 0)} and {np.sum(label == 1)}; is one of its files missing?"
        )
    objects = np.arange(len(mine)) if every.group is None else every.group[mine]
    order, of_object = draw_objects(objects, seed)
    n = int(_TEST_SHARE * len(order))
    cuts = np.searchsorted(of_object, of_object[[len(order) - 2 * n, len(order) - n]])
    parts = np.split(mine[order], cuts)
    limit = config["limit"]
    names = ("train", "validation", "test")
    result = {name: rows[: limit[name]] for name, rows in zip(names, parts, strict=True)}
    stars = np.flatnonzero(label == _STAR)
    return result | {f"{OOD_PREFIX}stars": stars[choose_rows(len(stars), limit["ood"])]}


def draw_objects(objects: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order in which their objects were drawn, and the number of the draw of each."""
    unique, of_row = np.unique(objects, return_inverse=True)
    if len(unique) == len(objects):
        # one spectrum each: rows are drawn, as published, in whatever order their numbers are
        of_row = np.arange(len(objects))
    drawn = np.argsort(np.random.default_rng(seed).permutation(of_row.max() + 1))[of_row]
    order = np.argsort(drawn, kind="stable")
    return order, drawn[order]


def _parts(
    every: Spectra, plan: Rows, config: Mapping[str, Any], seed: int
) -> Iterator[tuple[str, Spectra, np.ndarray]]:
    """Every split: its name, the spectra it is out of, and its rows among them."""
    for split, rows in plan.items():
        if split.removeprefix(OOD_PREFIX) in ("train", "validation", "test", *config["ood"]):
            yield split, every, rows
    limit = config["limit"]["ood"]
    if "supernovae" in config["ood"]:
        levels = np.asarray(every.snr)[plan["test"]]
        noisy = datasets.supernova_spectra(levels, random_state=seed)
        yield (
            f"{OOD_PREFIX}supernovae",
            noisy,
            np.arange(len(noisy))[choose_rows(len(noisy), limit)],
        )
    if {"real_stars"} & set(config["ood"]) or config.get("shifted"):
        real = datasets.real_spectra()
        label = np.asarray(real.label)
        if "real_stars" in config["ood"]:
            stars = np.flatnonzero(label == _STAR)
            yield f"{OOD_PREFIX}real_stars", real, stars[choose_rows(len(stars), limit)]
        if "real" in config.get("shifted", ()):
            yield f"{SHIFTED_PREFIX}real", real, np.flatnonzero(label < _STAR)


def choose_rows(n: int, limit: int | None) -> np.ndarray | slice:
    """At most so many of n rows, drawn once for all seeds, in order.

    All of them are a slice, which copies nothing.
    """
    if limit is None or limit >= n:
        return slice(None)
    return np.sort(np.random.default_rng(0).permutation(n)[:limit])
