"""Runs the demo."""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import entr
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from ... import DIPClassifier, Dirichlet
from ...datasets import Dataset, load_mini_mnist, load_moons
from ...density import KernelDensity
from ...explanation import Card, diagnose, explain
from ...io.container import versions
from .models import MODELS, checked_models
from .result import DemoResult, Explained, ModelResult, MoonMaps, Receipt, SetPredictions
from .rows import BARE, DIP, ID, model_rows, trivial_rows

#: Called with the name of a stage; the context manager it returns is open while the stage runs.
Progress = Callable[[str], AbstractContextManager[object]]

_LOAD, _MOONS, _SCORE = "load images", "two moons", "score"
_MOON_KINDS = ("entropy", "vacuity", "aleatoric", "epistemic")
_INPUT = re.compile(r"x(\d+)")


def stages(models: tuple[str, ...] | None = None) -> list[str]:
    """Names of the stages that `run` will report, in order."""
    fits = [_fit_stage(name) for name in checked_models(models)]
    return [_LOAD, *fits, _MOONS, _SCORE]


def run(
    models: tuple[str, ...] | None = None,
    *,
    seed: int = 0,
    n_train: int | None = None,
    n_resamples: int = 500,
    grid: int = 160,
    progress: Progress = nullcontext,
) -> DemoResult:
    """Fit every classifier inside `DIPClassifier`, and predict every set of images.

    Parameters
    ----------
    models : tuple of str, optional
        Names out of `MODELS`; default: all whose packages are installed.
    seed : int, default=0
        Seed of every random part.
    n_train : int, optional
        Number of training images, balanced over the classes; default: all.
    n_resamples : int, default=500
        Bootstrap resamples behind each interval.
    grid : int, default=160
        Points along each side of the two-moons map.
    progress : callable, optional
        Called with the name of each stage (see `stages`); gives a context manager.

    Returns
    -------
    DemoResult
        Arrays, rows and receipt.

    Raises
    ------
    ValueError, ImportError
        If a model is unknown or its package is missing; before the long work starts.

    Examples
    --------
    >>> from dipedl.apps import demo
    >>> result = demo.run(("linear",), n_train=500, n_resamples=40, grid=20)
    >>> [row.method for row in result.rows]
    ['DIP-EDL vacuity', 'bare max-prob', 'bare entropy', 'border ink', 'mean intensity']
    """
    names = checked_models(models)
    # Matrices are small, so more threads gain little; on busy cores they waited for one
    # another and were ten times slower.
    with threadpool_limits(1):
        return _run(names, seed, n_train, n_resamples, grid, progress)


def _run(
    names: tuple[str, ...],
    seed: int,
    n_train: int | None,
    n_resamples: int,
    grid: int,
    progress: Progress,
) -> DemoResult:
    seconds: dict[str, float] = {}
    with _timed(_LOAD, progress, seconds):
        data = _images(n_train, seed)
    fitted = []
    for name in names:
        with _timed(_fit_stage(name), progress, seconds):
            fitted.append(_answers(name, data, seed))
    with _timed(_MOONS, progress, seconds):
        moons = _moon_maps(grid, seed)
    with _timed(_SCORE, progress, seconds):
        rows = [
            *model_rows(fitted, data.y_test, n_resamples, seed),
            *trivial_rows(data, n_resamples, seed),
        ]
    receipt = _receipt(data, names, seed, n_resamples, seconds)
    return DemoResult(data, tuple(fitted), tuple(rows), moons, receipt)


def installed() -> dict[str, str]:
    """Versions of dipedl, Python and the packages that numbers depend on, where installed."""
    found = versions("numpy", "scipy", "scikit-learn", "torch")
    return {name: version for name, version in found.items() if version}


def _fit_stage(name: str) -> str:
    return f"fit {name}"


@contextmanager
def _timed(stage: str, progress: Progress, seconds: dict[str, float]) -> Iterator[None]:
    start = time.perf_counter()
    with progress(stage):
        yield
    seconds[stage] = round(time.perf_counter() - start, 3)


def _images(n_train: int | None, seed: int) -> Dataset:
    data = _in_float64(load_mini_mnist())
    if n_train is None:
        return data
    X, _, y, _ = train_test_split(
        data.X_train, data.y_train, train_size=n_train, stratify=data.y_train, random_state=seed
    )
    return replace(data, X_train=X, y_train=y)


def _in_float64(data: Dataset) -> Dataset:
    """The same data; in float32 many probabilities would round to 1 and tie."""
    return replace(
        data,
        X_train=data.X_train.astype(np.float64),
        X_test=data.X_test.astype(np.float64),
        ood={name: X.astype(np.float64) for name, X in data.ood.items()},
    )


def _answers(name: str, data: Dataset, seed: int) -> ModelResult:
    candidate = MODELS[name]
    data = candidate.view(data)
    clf = candidate.fit(data.X_train, data.y_train, seed)
    sets: Mapping[str, np.ndarray] = {ID: data.X_test, **data.ood}
    on = {key: _set_predictions(clf, X) for key, X in sets.items()}
    return ModelResult(
        name=name,
        title=candidate.title,
        classifier=candidate.classifier,
        density=candidate.density,
        alarm_vacuity=_alarm_vacuity(clf),
        on=on,
        diagnosis=diagnose(clf),
        explained=tuple(_explained(clf, key, data, on[key]) for key in sets),
    )


def _explained(
    clf: DIPClassifier, key: str, data: Dataset, predictions: SetPredictions
) -> Explained:
    """The digit with the least evidence, or the OOD image with the most."""
    evidence = np.asarray(predictions.dirichlet.log_evidence)
    row = int(evidence.argmin() if key == ID else evidence.argmax())
    X = data.X_test if key == ID else data.ood[key]
    width = (data.image_shape or X.shape[1:])[-1]
    return Explained(key, row, in_places(explain(clf, X[row : row + 1], top=3)[0], width))


def in_places(card: Card, width: int) -> Card:
    """The card with input j of an image named "row 3, column 5", from 1 at the top left.

    `width` is that of the image in pixels; features that are no pixels keep their names.
    """
    return replace(card, parts=tuple(_placed(part, width) for part in card.parts))


def _placed(value: Any, width: int) -> Any:
    if isinstance(value, Mapping):
        return {key: _placed(item, width) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_placed(item, width) for item in value]
    pixel = _INPUT.fullmatch(value) if isinstance(value, str) else None
    if pixel is None:
        return value
    row, column = divmod(int(pixel[1]), width)
    return f"row {row + 1}, column {column + 1}"


def _set_predictions(clf: DIPClassifier, X: np.ndarray) -> SetPredictions:
    bare = np.asarray(clf.estimator_.predict_proba(X), dtype=np.float64)
    log_density = clf.score_samples(X)
    uncertainties = (-log_density, 1 - bare.max(axis=1), entr(bare).sum(axis=1))
    return SetPredictions(
        bare=bare,
        dirichlet=clf.predict_dirichlet(X),
        scores=dict(zip((DIP, *BARE), uncertainties, strict=True)),
        flagged=log_density < clf.offset_,
    )


def _alarm_vacuity(clf: DIPClassifier) -> float:
    """The vacuity above which `predict_ood` flags an input: its threshold as a vacuity."""
    evidence = clf.evidence_.log_evidence(np.array([clf.offset_]))
    proba = np.full((1, len(clf.classes_)), 1 / len(clf.classes_))
    return float(Dirichlet.from_evidence(evidence, proba, clf.prior_).vacuity[0])


def _moon_maps(grid: int, seed: int) -> MoonMaps:
    data = load_moons(400, noise=0.2, random_state=seed)
    network = MLPClassifier((32, 32), max_iter=1000, random_state=seed)
    clf = DIPClassifier(network, KernelDensity()).fit(data.X_train, data.y_train)
    extent = (-3.0, 4.0, -2.5, 3.0)
    across, up = np.linspace(*extent[:2], grid), np.linspace(*extent[2:], grid)
    points = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    maps = {kind: clf.uncertainty(points, kind).reshape(grid, grid) for kind in _MOON_KINDS}
    return MoonMaps(
        X=data.X_train,
        y=data.y_train,
        extent=extent,
        maps=maps,
        classifier="A neural network with two hidden layers of 32 units",
        density="a Gaussian kernel density with Scott's bandwidth",
    )


def _receipt(
    data: Dataset,
    models: tuple[str, ...],
    seed: int,
    n_resamples: int,
    seconds: Mapping[str, float],
) -> Receipt:
    return Receipt(
        seed=seed,
        models=models,
        n_train=len(data.X_train),
        n_test=len(data.X_test),
        n_ood={name: len(X) for name, X in data.ood.items()},
        n_resamples=n_resamples,
        false_alarm_rate=DIPClassifier().false_alarm_rate,
        versions=installed(),
        machine=f"{platform.system()} {platform.machine()}",
        seconds=seconds,
    )
