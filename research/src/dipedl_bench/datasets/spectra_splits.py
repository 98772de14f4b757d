"""Spectra as rows of a suite: split as the paper splits them, features fitted on training rows.

Features of 100,000 spectra take longer than many a training, so they are kept beside the results:
once for each data set and seed, for all methods. Flux is not kept; pictures ask for it again.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dipedl.apps import spectra
from dipedl.apps.spectra import Spectra, toy_spectra

from .. import datasets
from ..results.files import damaged_files, read_file, seal
from ..results.receipt import config_hash
from ..results.scores import OOD_PREFIX, SHIFTED_PREFIX
from ..writing import whole_file
from .files import INGREDIENTS, cache_folder

#: Known classes, by number.
CLASSES = ("Galaxy", "Quasar")
_STAR = len(CLASSES)
_TEST_SHARE = 0.2
_PLAN = "plan.npz"

Rows = dict[str, np.ndarray]


@dataclass(frozen=True)
class Recipe:
    """A data set of spectra.

    `make` gives all of them, or given `rows` those alone; `preset` and `n_components` are those of
    `dipedl.apps.spectra.spectral_features`; `files` are read, and cannot be downloaded.
    """

    make: Callable[[np.ndarray | None], Spectra]
    preset: str = "standardised"
    n_components: int = 500
    files: tuple[str, ...] = ()


def _selected(every: Spectra, rows: np.ndarray | None) -> Spectra:
    return every if rows is None else every.select(rows)


def _scarce(rows: np.ndarray | None) -> Spectra:
    counts = {"GALAXY": 3427, "QSO": 1011, "STAR": 95_562}
    return datasets.semi_real_spectra(mix=counts, rows=rows)


def _lamost(rows: np.ndarray | None) -> Spectra:
    return _selected(datasets.lamost_spectra(), rows)


#: Data sets of spectra by name.
SPECTRA: dict[str, Recipe] = {
    "toy-spectra": Recipe(lambda rows: _selected(toy_spectra(1500), rows), n_components=40),
    "semi-real": Recipe(lambda rows: datasets.semi_real_spectra(rows=rows), files=(INGREDIENTS,)),
    "semi-real-scarce": Recipe(_scarce, files=(INGREDIENTS,)),
    "semi-real-scarce-published": Recipe(_scarce, "published", files=(INGREDIENTS,)),
    "lamost": Recipe(_lamost),
    "lamost-published": Recipe(_lamost, "published"),
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


class Looked(NamedTuple):
    """Facts of the rows of a split, each array (n,).

    `row` is where a spectrum stands in its source, `label` its class (-1 if it has none of the
    known ones); `snr` and `redshift` are NaN where they are not known.
    """

    row: np.ndarray
    label: np.ndarray
    snr: np.ndarray
    redshift: np.ndarray


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
    with _kept(config, seed, keep) as folder:
        plan = _read(folder)
        X = {split: read_file(folder / _file(split)) for split in plan}
        y = {
            split: looked.label
            for split, looked in plan.items()
            if not split.startswith(OOD_PREFIX)
        }
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


def looked_at(config: Mapping[str, Any], seed: int, keep: Path | None = None) -> dict[str, Looked]:
    """Return the facts of the rows of every split; parameters as in `spectra_splits`."""
    with _kept(config, seed, keep) as folder:
        return _read(folder)


def flux_of(
    config: Mapping[str, Any], split: str, rows: Sequence[int], seed: int, keep: Path | None = None
) -> Spectra:
    """The raw spectra of some rows of a split; the others are not generated again."""
    looked = looked_at(config, seed, keep)
    at = looked[split].row[np.asarray(rows, dtype=np.int64)]
    recipe = SPECTRA[config["dataset"]]
    others: dict[str, Callable[[], Spectra]] = {
        f"{OOD_PREFIX}supernovae": lambda: datasets.supernova_spectra(
            looked["test"].snr, random_state=seed
        ),
        f"{OOD_PREFIX}real_stars": datasets.real_spectra,
        f"{SHIFTED_PREFIX}real": datasets.real_spectra,
    }
    return others[split]().select(at) if split in others else recipe.make(at)


@contextmanager
def _kept(config: Mapping[str, Any], seed: int, keep: Path | None) -> Iterator[Path]:
    """A folder with the features, made if there is none; it is gone afterwards if not kept."""
    if keep is not None:
        yield _made(config, seed, keep)
        return
    with tempfile.TemporaryDirectory() as place:
        yield _made(config, seed, Path(place))


def _made(config: Mapping[str, Any], seed: int, place: Path) -> Path:
    folder = _folder(config, seed, place)
    if not are_kept(config, seed, place):
        place.mkdir(parents=True, exist_ok=True)
        partial_folder = Path(tempfile.mkdtemp(dir=place, prefix="."))
        try:
            _prepare(config, seed, partial_folder)
            _publish(partial_folder, folder)
        finally:
            shutil.rmtree(partial_folder, ignore_errors=True)
    return folder


def _folder(config: Mapping[str, Any], seed: int, place: Path) -> Path:
    return place / f"{config_hash(dict(config))}-{seed}"


def are_kept(config: Mapping[str, Any], seed: int, keep: Path) -> bool:
    """Return whether features of a data set and seed are kept, so that no file is read for them."""
    return (_folder(config, seed, keep) / _PLAN).exists()


def drop_damaged(config: Mapping[str, Any], seed: int, keep: Path) -> list[str]:
    """Remove kept features if files of them are damaged or gone; says which.

    They are made again when they are needed next.
    """
    folder = _folder(config, seed, keep)
    problems = damaged_files(folder) if folder.is_dir() else []
    if problems:
        shutil.rmtree(folder)
    return problems


def _publish(made: Path, folder: Path) -> None:
    try:
        made.rename(folder)
    except OSError:
        # another run was first
        if not (folder / _PLAN).exists():
            raise


def _prepare(config: Mapping[str, Any], seed: int, folder: Path) -> None:
    recipe = SPECTRA[config["dataset"]]
    every = recipe.make(None)
    plan = _split(every, config, seed)
    pipeline = spectra.spectral_features(
        recipe.preset, wavelength=every.wavelength, n_components=recipe.n_components
    )
    pipeline.fit(every.flux[plan["train"]])
    known: dict[str, np.ndarray] = {}
    for split, source, rows in _parts(every, plan, config, seed):
        with whole_file(folder / _file(split)) as file:
            np.save(file, pipeline.transform(source.flux[rows]))
        for name, values in _looked(source, rows)._asdict().items():
            known[f"{split} {name}"] = values
    with whole_file(folder / _PLAN) as file:
        np.savez(file, **known)  # type: ignore[arg-type]
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
    order, of_object = _drawn(objects, seed)
    n = int(_TEST_SHARE * len(order))
    cuts = np.searchsorted(of_object, of_object[[len(order) - 2 * n, len(order) - n]])
    parts = np.split(mine[order], cuts)
    limit = config["limit"]
    names = ("train", "validation", "test")
    found = {name: rows[: limit[name]] for name, rows in zip(names, parts, strict=True)}
    stars = np.flatnonzero(label == _STAR)
    return found | {f"{OOD_PREFIX}stars": stars[limited(len(stars), limit["ood"])]}


def _drawn(objects: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
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


def _looked(source: Spectra, rows: np.ndarray) -> Looked:
    def known(values: np.ndarray | None) -> np.ndarray:
        return np.full(len(rows), np.nan) if values is None else np.asarray(values)[rows]

    label = known(source.label)
    label = np.where(label < _STAR, label, -1).astype(np.int64)
    return Looked(rows, label, known(source.snr), known(source.redshift))


def _read(folder: Path) -> dict[str, Looked]:
    known = read_file(folder / _PLAN)
    splits = dict.fromkeys(name.partition(" ")[0] for name in known)
    return {
        split: Looked(*(known[f"{split} {name}"] for name in Looked._fields)) for split in splits
    }


def _file(split: str) -> str:
    return f"{split.replace('/', '__')}.npy"
