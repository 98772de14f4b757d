"""Two moons: what EDL and DIP-EDL say about the plane around their training points."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors

from dipedl.classifier import DIPClassifier
from dipedl.evidence import Identity, ZScore

from ..results.receipt import receipt

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EDL", "KINDS", "RAW", "SCORED", "TwoMoons", "figure", "rows", "run"]

EDL, RAW, SCORED = "EDL", "DIP-EDL, raw density", "DIP-EDL, z-scored density"
#: Attribute of a Dirichlet by what the figure calls it.
KINDS = {
    "vacuity": "vacuity",
    "aleatoric": "expected entropy, nats",
    "epistemic": "mutual information, nats",
}
_MARGIN = 1.5
_AWAY = 1.0


@dataclass(frozen=True)
class TwoMoons:
    """Everything that the figure shows.

    `maps` are by method and by key of `KINDS`, from the bottom up, at the points `plane` (n, 2);
    `extent` is their left, right, bottom and top. `seconds` are the wall times of the fits.
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    plane: np.ndarray
    extent: tuple[float, float, float, float]
    maps: Mapping[str, Mapping[str, np.ndarray]]
    models: Mapping[str, Any]
    seconds: Mapping[str, float]
    seed: int


def run(
    density: Any = None,
    *,
    n_points: int = 1000,
    epochs: int = 100,
    step: float = 0.05,
    seed: int = 11,
) -> TwoMoons:
    """Fit EDL and DIP-EDL to two moons and map their uncertainties.

    EDL is a 2-64-64-2 network with ReLU evidence (squared-error loss, annealed KL). DIP-EDL is a
    network of the same size trained by cross-entropy, and a density (default: a masked
    autoregressive flow of 5 transforms with 64 hidden units, which needs zuko). Raw is
    Definition 3.1, ``alpha = 1 + n p(x) p(y | x)``; z-scored is what the paper evaluates on images.

    The moons have noise 0.1, and a fifth of the points is held out for testing. The maps reach 1.5
    beyond the data, with `step` between their points.
    """
    if not step > 0:
        raise ValueError(f"step must be > 0, got {step!r}; 0.05 gives about 120 x 90 points")
    X, y = make_moons(n_points, noise=0.1, random_state=seed)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed)
    models, seconds = _fit_models(density, epochs, seed, X_train, y_train)
    across, up = (np.arange(v.min() - _MARGIN, v.max() + _MARGIN, step) for v in X.T)
    plane = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    maps = {}
    for name, model in models.items():
        dirichlet = model.predict_dirichlet(plane)
        maps[name] = {k: getattr(dirichlet, k).reshape(len(up), len(across)) for k in KINDS}
    # each value stands for a cell around its point
    half = step / 2
    extent = (across[0] - half, across[-1] + half, up[0] - half, up[-1] + half)
    return TwoMoons(X_train, y_train, X_test, y_test, plane, extent, maps, models, seconds, seed)


def rows(moons: TwoMoons) -> list[dict[str, Any]]:
    """Numbers behind the figure, one row for each method.

    ``accuracy`` is that on the test points; ``vacuity_test`` its mean there; ``vacuity_away`` and
    ``vacuity_away_min`` the mean and the smallest over the part of the map that is 1 or more from
    every training point; ``dead_classes`` get evidence at no training point.
    """
    gap = NearestNeighbors(n_neighbors=1).fit(moons.X_train).kneighbors(moons.plane)[0]
    away = gap.reshape(moons.maps[EDL]["vacuity"].shape) >= _AWAY
    return [
        {
            "experiment": "two_moons",
            "method": name,
            "accuracy": float((model.predict(moons.X_test) == moons.y_test).mean()),
            "vacuity_test": float(model.predict_dirichlet(moons.X_test).vacuity.mean()),
            "vacuity_away": float(moons.maps[name]["vacuity"][away].mean()),
            "vacuity_away_min": float(moons.maps[name]["vacuity"][away].min()),
            "dead_classes": _dead_classes(model, moons.X_train),
            "n_train": len(moons.X_train),
            "seed": moons.seed,
            "seconds": moons.seconds[name],
            **receipt(),
        }
        for name, model in moons.models.items()
    ]


def figure(moons: TwoMoons) -> Figure:
    """Vacuity, expected entropy and mutual information over the plane, a row for each method.

    Each column has one scale, so that methods can be compared. Dark ridges that lead away from
    the moons are the density's: a small flow that stretches one blob into two moons leaves such
    bridges, and DIP-EDL is as sure there as the density is wrong.
    """
    from matplotlib.figure import Figure

    from dipedl.plots import EvidenceMapDisplay

    fig = Figure(figsize=(9.5, 8.0), layout="constrained")
    axes = fig.subplots(len(moons.maps), len(KINDS), sharex=True, sharey=True, squeeze=False)
    largest = max(float(maps["epistemic"].max()) for maps in moons.maps.values())
    tops = {"vacuity": 1.0, "aleatoric": float(np.log(2)), "epistemic": largest}
    for row, (name, maps) in zip(axes, moons.maps.items(), strict=True):
        row[0].set_ylabel(name)
        for ax, kind in zip(row, KINDS, strict=True):
            arguments = maps[kind], moons.extent, moons.X_train, moons.y_train
            EvidenceMapDisplay(*arguments, kind="").plot(ax, top=tops[kind], colorbar=False)
    for column, title in zip(axes.T, KINDS.values(), strict=True):
        column[0].set_title(title)
        bar = fig.colorbar(
            column[0].images[0], ax=list(column), location="bottom", shrink=0.85, fraction=0.05
        )
        bar.set_label("brighter = less sure")
    return fig


def _fit_models(
    density: Any, epochs: int, seed: int, X: np.ndarray, y: np.ndarray
) -> tuple[dict[str, Any], dict[str, float]]:
    """Fit the three models; returns their wall seconds, too."""
    from dipedl.baselines import EDL as EvidentialNetwork
    from dipedl.density import FlowDensity
    from dipedl.networks import MLP, MaskedAutoregressive, TorchClassifier, Training

    def fit_model(name: str, model: Any) -> None:
        start = time.perf_counter()
        models[name] = model.fit(X, y)
        seconds[name] = round(time.perf_counter() - start, 3)

    def as_published(network: Any, density: Any, normalizer: Any) -> DIPClassifier:
        steps: dict[str, Any] = {
            "prior": 1.0,
            "calibrator": "passthrough",
            "features": "passthrough",
            "cv": "in-sample",
        }
        return DIPClassifier(network, density, normalizer=normalizer, **steps)

    models: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    training = Training(epochs=epochs, batch_size=128, learning_rate=1e-3, device="cpu", n_jobs=1)
    network = TorchClassifier(MLP((64, 64)), training, random_state=seed, precision="float64")
    decayed = replace(training, weight_decay=5e-3)
    evidence: dict[str, Any] = {"evidence": "relu", "annealing_epochs": 20, "random_state": seed}
    if density is None:
        flow = MaskedAutoregressive(transforms=5, hidden=(64,))
        density = FlowDensity(flow, training=training, validation_fraction=0.0, random_state=seed)
    fit_model(EDL, EvidentialNetwork(MLP((64, 64)), decayed, **evidence))
    fit_model(RAW, as_published(network, clone(density), Identity()))
    # the same network and the same density: only the normaliser differs
    parts = FrozenEstimator(models[RAW].estimator_), FrozenEstimator(models[RAW].density_)
    fit_model(SCORED, as_published(*parts, ZScore()))
    seconds[SCORED] = round(seconds[RAW] + seconds[SCORED], 3)
    return models, seconds


def _dead_classes(model: Any, X: np.ndarray) -> list[int]:
    evidence = np.asarray(model.predict_dirichlet(X).concentration) - 1
    return [k for k in range(evidence.shape[1]) if not (evidence[:, k] > 0).any()]
