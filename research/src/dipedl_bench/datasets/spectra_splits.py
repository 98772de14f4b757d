"""Spectra as rows of a suite: split as the paper splits them, features fitted on training rows.

Features of 100,000 spectra take longer than many a training, so they are kept beside the results:
once for each data set and seed, for all methods.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dipedl.apps import spectra
from dipedl.apps.spectra import Spectra, toy_spectra
from dipedl.writing import whole_file

from .. import datasets
from ..results.files import damaged_files, read_file, seal
from ..results.receipt import config_hash
from ..results.scores import OOD_PREFIX, SHIFTED_PREFIX
from .files import INGREDIENTS, cache_folder

#: Number of the class of stars; galaxies and quasars are the known ones.
_STAR = 2
_TEST_SHARE = 0.2
#: Features and labels of all splits, in the folder of a data set and seed.
_FILE = "splits.npz"

Rows = dict[str, np.ndarray]


@dataclass(frozen=True)
class Recipe:
    """A data set of spectra.

    `make` gives all of them; `preset` and `n_components` are those of
    `dipedl.apps.spectra.spectral_features`; `files` are read, and cannot be downloaded.
    """

    make: Callable[[], Spectra]
    preset: str = "standardised"
    n_components: int = 500
    files: tuple[str, ...] = ()


def _scarce() -> Spectra:
    return datasets.semi_real_spectra(mix={"GALAXY": 3427, "QSO": 1011, "STAR": 95_562})


#: Data sets of spectra by name.
SPECTRA: dict[str, Recipe] = {
    "toy-spectra": Recipe(lambda: toy_spectra(1500), n_components=40),
    "semi-real": Recipe(lambda: datasets.semi_real_spectra(), files=(INGREDIENTS,)),
    "semi-real-scarce": Recipe(_scarce, files=(INGREDIENTS,)),
    "semi-real-scarce-published": Recipe(_scarce, "published", files=(INGREDIENTS,)),
    "lamost": Recipe(lambda: datasets.lamost_spectra()),
    "lamost-published": Recipe(lambda: datasets.lamost_spectra(), "published"),
}
_OTHERS = ("supernovae", "real_stars")
_REAL = "spectra/real_spectra.npz"
#: Files of OOD sets and of shifted sets, below a data directory.
_FILES = {
    "supernovae": ("spectra/ood_supernovae.npz", INGREDIENTS),
    "real_stars": (_REAL,),
    "real": (_REAL,),
}
#: OOD sets of each; "stars" are those of the data set itself.
SPECTRA_OOD: dict[str, tuple[str, ...]] = {
    name: ("stars",) if name.startswith(("toy", "lamost")) else ("stars", *_OTHERS)
    for name in SPECTRA
}
#: Labelled test rows from elsewhere, of each.
SPECTRA_SHIFTED: dict[str, tuple[str, ...]] = {
    name: ("real",) if len(sets) > 1 else () for name, sets in SPECTRA_OOD.items()
}


def spectra_splits(
    config: Mapping[str, Any], seed: int, keep: Path | None = None
) -> tuple[Rows, Rows]:
    """Features (n, d) and labels (n,) by split; `config` as for `make_splits`.

    Rows of the known classes are drawn by ``default_rng(seed).permutation``: the first three fifths
    train, then as many validate as test, ``int(n / 5)``: the paper's protocol. Where several
    spectra are of one object, objects are drawn, so that no object is on two sides. All stars are
    OOD.

    Features are kept in the folder `keep`, and looked for there first, by the configuration and the
    seed: empty it when the code that makes spectra or features has changed.
    """
    if keep is None:
        with tempfile.TemporaryDirectory() as place:
            return spectra_splits(config, seed, Path(place))
    folder = _folder(config, seed, keep)
    if not has_features(config, seed, keep):
        keep.mkdir(parents=True, exist_ok=True)
        partial_folder = Path(tempfile.mkdtemp(dir=keep, prefix="."))
        try:
            _prepare(config, seed, partial_folder)
            with suppress(OSError):  # another run was first
                partial_folder.rename(folder)
        finally:
            shutil.rmtree(partial_folder, ignore_errors=True)
    arrays = read_file(folder / _FILE)
    X, y = (
        {name.removeprefix(f"{of} "): a for name, a in arrays.items() if name.startswith(f"{of} ")}
        for of in "Xy"
    )
    return X, y


def check_spectra_there(config: Mapping[str, Any], folder: str | None, origin: str) -> None:
    """Raise FileNotFoundError if files of a config that cannot be downloaded are missing.

    They are looked for in a data directory, without one in the cache. `origin` names the directory.
    """
    others = (_FILES.get(name, ()) for name in (*config["ood"], *config.get("shifted", ())))
    needed = {*SPECTRA[config["dataset"]].files, *(file for files in others for file in files)}
    if not needed:
        return  # the cache is only known to a package that made-up spectra do without
    place = Path(folder).expanduser() if folder else cache_folder()
    missing = [repr(file) for file in sorted(needed) if not (place / file).is_file()]
    if missing:
        raise FileNotFoundError(
            f"{origin} must name a directory that holds the files of spectra, but {str(place)!r} "
            f"lacks {', '.join(missing)}; no public mirror has these files, and the library cannot "
            "make them: research/docs/spectra-data.md names their sources. Made-up spectra need no "
            "files: --profile smoke"
        )


def _folder(config: Mapping[str, Any], seed: int, place: Path) -> Path:
    return place / f"{seed}-{config_hash(dict(config))}"


def has_features(config: Mapping[str, Any], seed: int, keep: Path) -> bool:
    """Return whether features of a data set and seed are kept, so that no file is read for them."""
    return (_folder(config, seed, keep) / _FILE).exists()


def drop_damaged(config: Mapping[str, Any], seed: int, keep: Path) -> list[str]:
    """Remove kept features if files of them are damaged or gone; says which.

    They are made again when they are needed next.
    """
    folder = _folder(config, seed, keep)
    problems = damaged_files(folder) if folder.is_dir() else []
    if problems:
        shutil.rmtree(folder)
    return problems


def _prepare(config: Mapping[str, Any], seed: int, folder: Path) -> None:
    recipe = SPECTRA[config["dataset"]]
    every = recipe.make()
    plan = _split(every, config, seed)
    pipeline = spectra.spectral_features(
        recipe.preset, wavelength=every.wavelength, n_components=recipe.n_components
    )
    pipeline.fit(every.flux[plan["train"]])
    arrays = {}
    for split, source, rows in _parts(every, plan, config, seed):
        arrays[f"X {split}"] = pipeline.transform(source.flux[rows])
        if not split.startswith(OOD_PREFIX):
            arrays[f"y {split}"] = np.asarray(source.label)[rows].astype(np.int64)
    with whole_file(folder / _FILE) as file:
        np.savez(file, **arrays)
    seal(folder)


def _split(every: Spectra, config: Mapping[str, Any], seed: int) -> dict[str, np.ndarray]:
    share = config.get("validation_fraction", _TEST_SHARE)
    if share != _TEST_SHARE:
        raise ValueError(
            f"validation_fraction must be {_TEST_SHARE} for spectra, the paper's split, got {share}"
        )
    label = np.asarray(every.label)
    mine = np.flatnonzero(label < _STAR)
    if set(range(_STAR)) - set(label[mine].tolist()):
        raise ValueError(
            f"the data set {config['dataset']!r} must hold galaxies and quasars, got "
            f"{np.sum(label == 0)} and {np.sum(label == 1)}; is one of its files missing?"
        )
    objects = np.arange(len(mine)) if every.group is None else every.group[mine]
    order, of_object = _draw_objects(objects, seed)
    n = int(_TEST_SHARE * len(order))
    cuts = np.searchsorted(of_object, of_object[[len(order) - 2 * n, len(order) - n]])
    parts = np.split(mine[order], cuts)
    limit = config["limit"]
    names = ("train", "validation", "test")
    found = {name: rows[: limit[name]] for name, rows in zip(names, parts, strict=True)}
    stars = np.flatnonzero(label == _STAR)
    return found | {f"{OOD_PREFIX}stars": stars[limited(len(stars), limit["ood"])]}


def _draw_objects(objects: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order in which their objects were drawn, and the number of the draw of each."""
    found, of_row = np.unique(objects, return_inverse=True)
    if len(found) == len(objects):
        # one spectrum each: rows are drawn, as published, in whatever order their numbers are
        of_row = np.arange(len(objects))
    drawn = np.argsort(np.random.default_rng(seed).permutation(of_row.max() + 1))[of_row]
    order = np.argsort(drawn, kind="stable")
    return order, drawn[order]


def _parts(
    every: Spectra, plan: Mapping[str, np.ndarray], config: Mapping[str, Any], seed: int
) -> Iterator[tuple[str, Spectra, np.ndarray]]:
    """Every split: its name, the spectra it is out of, and its rows among them."""
    for split, rows in plan.items():
        if split.removeprefix(OOD_PREFIX) in ("train", "validation", "test", *config["ood"]):
            yield split, every, rows
    limit = config["limit"]["ood"]
    if "supernovae" in config["ood"]:
        levels = np.asarray(every.snr)[plan["test"]]
        noisy = datasets.supernova_spectra(levels, random_state=seed)
        yield f"{OOD_PREFIX}supernovae", noisy, np.arange(len(noisy))[limited(len(noisy), limit)]
    if {"real_stars"} & set(config["ood"]) or config.get("shifted"):
        real = datasets.real_spectra()
        label = np.asarray(real.label)
        if "real_stars" in config["ood"]:
            stars = np.flatnonzero(label == _STAR)
            yield f"{OOD_PREFIX}real_stars", real, stars[limited(len(stars), limit)]
        if "real" in config.get("shifted", ()):
            yield f"{SHIFTED_PREFIX}real", real, np.flatnonzero(label < _STAR)


def limited(n: int, limit: int | None) -> np.ndarray | slice:
    """At most so many of n rows, drawn once for all seeds, in order.

    All of them are a slice, which copies nothing.
    """
    if limit is None or limit >= n:
        return slice(None)
    return np.sort(np.random.default_rng(0).permutation(n)[:limit])
