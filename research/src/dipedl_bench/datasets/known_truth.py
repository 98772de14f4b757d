"""Problems whose class probabilities P(Y|x) are known, to measure estimates of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax
from sklearn import datasets as bunches
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dipedl.datasets import Dataset

from ..names import refuse_unknown
from .images import load_mnist
from .semi_real import semi_real_spectra
from .tables import load_covertype

__all__ = ["load_known_truth"]

Labelled = tuple[np.ndarray, np.ndarray]
Draw = Callable[[int, np.random.Generator], np.ndarray]
Proba = Callable[[np.ndarray], np.ndarray]
World = tuple[Draw, Proba]
#: Points on each arc that the density of a moon is summed over.
_ARC = 400
#: Rows of a class that training needs, and how often problems are drawn until it has them.
_FEWEST, _ATTEMPTS = 4, 200
#: Share of all rows that training and test rows come from.
_NEAR = 2 / 3
#: Share of the uniform distribution in what a teacher says: no label is certain.
_UNSURE = 0.05


def _covertype() -> Labelled:
    """The ten columns of numbers, all seven kinds of forest."""
    data = load_covertype(left_out=7)
    (other,) = data.ood.values()
    X = np.concatenate([data.X_train, data.X_test, other])[:, :10]
    y = np.concatenate([data.y_train, data.y_test, np.full(len(other), data.n_classes)])
    return X.astype(float), y


def _mnist() -> Labelled:
    """Twenty principal components of 15,000 images."""
    data = load_mnist(ood=())
    rows = np.random.default_rng(0).permutation(len(data.X_train))[:15_000]
    return PCA(20, random_state=0).fit_transform(data.X_train[rows]), data.y_train[rows]


def _spectra() -> Labelled:
    """Twenty principal components of 10,000 semi-real spectra, each of norm one."""
    spectra = semi_real_spectra(10_000, mix={"GALAXY": 0.4, "QSO": 0.3, "STAR": 0.3})
    flux = spectra.flux / np.linalg.norm(spectra.flux, axis=1, keepdims=True)
    components = PCA(20, svd_solver="randomized", random_state=0).fit_transform(flux)
    return components.astype(float), np.asarray(spectra.label)


INPUTS: dict[str, Callable[[], Labelled]] = {
    "digits": lambda: bunches.load_digits(return_X_y=True),
    "covertype": _covertype,
    "mnist": _mnist,
    "spectra": _spectra,
}


def _teachers(d: int) -> dict[str, Any]:
    kernel = Nystroem(gamma=0.3 / d, n_components=200, random_state=0)
    network = MLPClassifier((50,), alpha=1.0, max_iter=60, random_state=0)
    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=0.02, max_iter=500)),
        "forest": RandomForestClassifier(100, min_samples_leaf=10, random_state=0),
        "mlp": make_pipeline(StandardScaler(), network),
        "kernel": make_pipeline(StandardScaler(), kernel, LogisticRegression(max_iter=500)),
    }


def load_known_truth(
    family: str,
    settings: Mapping[str, Any] | None = None,
    *,
    n_samples: int = 1000,
    n_test: int = 1000,
    random_state: int = 0,
) -> Dataset:
    """Labels drawn from known class probabilities, which come with the test rows.

    Training and test rows are the two thirds with the lowest value of a random linear direction;
    the others are the set "far".

    Parameters
    ----------
    family : str
        "gaussians", "logistic", "additive", "moons", "checker" or "rings"; or "taught": real inputs
        with the probabilities that a classifier, fitted to all of them, gives.
    settings : mapping, optional
        Of the family, such as ``{"k": 3, "d": 5}`` (classes and inputs). Those
        of "taught" are ``inputs``, "digits", "covertype", "mnist" or "spectra", and ``teacher``,
        "logistic", "forest", "mlp" or "kernel".
    n_samples, n_test : int, default=1000
        Training rows, and at most so many test rows and far rows.
    random_state : int, default=0
        Seed of the problem and of the rows.

    Returns
    -------
    Dataset
        With ``truth``: the class probabilities of "test" and "far".

    Raises
    ------
    ValueError
        If there is no such family, or a class has too few rows; TypeError for unknown settings.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_known_truth
    >>> data = load_known_truth("moons", {"noise": 0.2, "flip": 0.1}, n_samples=200)
    >>> data.truth["test"].shape
    (1000, 2)
    """
    settings = dict(settings or {})
    refuse_unknown("family", [family], ["taught", *FAMILIES])
    problem = teach(**settings) if family == "taught" else None
    for attempt in range(_ATTEMPTS):
        rng = np.random.default_rng([random_state, attempt])
        if problem is None:
            draw, proba = FAMILIES[family](rng, **settings)
            X = draw(int(1.5 * n_samples) + 3 * n_test + 200, rng)
            P = proba(X)
        else:
            order = rng.permutation(len(problem[0]))
            X, P = (part[order] for part in problem)
        if not np.isfinite(P).all() or P.shape[1] < 2:
            raise ValueError(f"settings must give probabilities of two classes or more: {settings}")
        near = _is_near(X, rng)
        if near.sum() <= n_samples:
            raise ValueError(f"n_samples must be < {near.sum()} for {settings}, got {n_samples}")
        y = (rng.random((len(X), 1)) > P.cumsum(axis=1)[:, :-1]).sum(axis=1)
        train, test = np.split(np.flatnonzero(near)[: n_samples + n_test], [n_samples])
        far = np.flatnonzero(~near)[:n_test]
        if np.bincount(y[train], minlength=P.shape[1]).min() >= _FEWEST:
            break
    else:
        raise ValueError(f"n_samples must give every class {_FEWEST} rows, got {n_samples}")
    return Dataset(
        f"{family}, {n_samples} rows",
        *(X[train], y[train], X[test], y[test]),
        ood={"far": X[far]},
        target_names=tuple(map(str, range(P.shape[1]))),
        truth={"test": P[test], "far": P[far]},
    )


def _is_near(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rows (n,) up to the two-thirds quantile of a random direction."""
    Z = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    along = Z @ rng.normal(size=X.shape[1])
    return np.asarray(along <= np.quantile(along, _NEAR))


@lru_cache(maxsize=2)
def teach(inputs: str, teacher: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs X (n, d) and the teacher's probabilities (n, k)."""
    refuse_unknown("inputs", [inputs], INPUTS)
    X, y = INPUTS[inputs]()
    teachers = _teachers(X.shape[1])
    refuse_unknown("teacher", [teacher], teachers)
    P = teachers[teacher].fit(X, y).predict_proba(X)
    return X, np.asarray((1 - _UNSURE) * P + _UNSURE / P.shape[1])


# Families of problems. Each takes a generator, which draws what differs from seed to seed, and its
# settings, and returns two functions: how inputs are drawn, and P of inputs X (n, d), shape (n, k).


def _gaussians(
    rng: np.random.Generator,
    *,
    k: int,
    d: int,
    apart: float = 2.0,
    weights: Sequence[float] | None = None,
    unequal: bool = False,
) -> World:
    """k Gaussian classes, of one width or of unequal ones, with means `apart` from each other."""
    share = np.full(k, 1 / k) if weights is None else np.asarray(weights) / np.sum(weights)
    means = rng.normal(size=(k, d)) * apart / np.sqrt(2)
    width = np.exp(0.3 * rng.normal(size=k)) if unequal else np.ones(k)

    def draw(m: int, rng: np.random.Generator) -> np.ndarray:
        c = rng.choice(k, m, p=share)
        return np.asarray(means[c] + rng.normal(size=(m, d)) * width[c][:, None])

    def logits(X: np.ndarray) -> np.ndarray:
        squared = ((X[:, None] - means) ** 2).sum(axis=2)
        return np.asarray(np.log(share) - squared / (2 * width**2) - d * np.log(width))

    return draw, _softmax_of(logits)


def _logistic(
    rng: np.random.Generator, *, k: int, d: int, scale: float = 2.0, shift: float = 0.0
) -> World:
    """Logits linear in normal inputs; `shift` is that of the first class."""
    slopes = rng.normal(size=(d, k)) * scale / np.sqrt(d)
    first = shift * np.eye(k)[0]
    return partial(_normal, d), _softmax_of(lambda X: np.asarray(X @ slopes + first))


def _additive(rng: np.random.Generator, *, k: int, d: int, scale: float = 2.0) -> World:
    """Logits that are sums of a sine of each uniform input."""
    height, steps = rng.normal(size=(d, k)), rng.uniform(1, 3, (d, k))
    phase = rng.uniform(0, 6.28, (d, k))

    def logits(X: np.ndarray) -> np.ndarray:
        waves = height * np.sin(steps * X[:, :, None] + phase)
        return np.asarray(1.4 * scale / np.sqrt(d) * waves.sum(axis=1))

    return partial(_uniform, d, 2.0), _softmax_of(logits)


def _moons(rng: np.random.Generator, *, noise: float, flip: float) -> World:
    """Two moons with Gaussian noise, a share `flip` of whose labels is wrong."""
    grid = np.linspace(0, np.pi, _ARC)
    arcs = [_arc(grid, np.full(_ARC, moon)) for moon in range(2)]

    def draw(m: int, rng: np.random.Generator) -> np.ndarray:
        moon, angle = rng.integers(2, size=m), rng.uniform(0, np.pi, m)
        return np.asarray(_arc(angle, moon) + noise * rng.normal(size=(m, 2)))

    def proba(X: np.ndarray) -> np.ndarray:
        squared = [((X[:, None] - arc) ** 2).sum(axis=2) for arc in arcs]
        near = np.stack([logsumexp(-s / (2 * noise**2), axis=1) for s in squared], axis=1)
        return np.asarray((1 - 2 * flip) * softmax(near, axis=1) + flip)

    return draw, proba


def _checker(rng: np.random.Generator, *, top: float = 0.9) -> World:
    """A board of fields in the plane, P from ``1 - top`` to `top`."""

    def proba(X: np.ndarray) -> np.ndarray:
        board = np.sin(np.pi * X[:, 0]) * np.sin(np.pi * X[:, 1])
        p = 0.5 + (top - 0.5) * np.tanh(3 * board)
        return np.column_stack([p, 1 - p])

    return partial(_uniform, 2, 1.5), proba


def _rings(rng: np.random.Generator, *, k: int = 3, d: int = 4) -> World:
    """Classes by the length of normal inputs."""
    radius = np.sqrt(d) * np.linspace(0.6, 1.4, k)

    def logits(X: np.ndarray) -> np.ndarray:
        length = np.linalg.norm(X, axis=1)[:, None]
        return np.asarray(-((length - radius) ** 2) / (2 * 0.35**2))

    return partial(_normal, d), _softmax_of(logits)


def _softmax_of(logits: Callable[[np.ndarray], np.ndarray]) -> Proba:
    return lambda X: np.exp(log_softmax(logits(X), axis=1))


def _normal(d: int, m: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(m, d))


def _uniform(d: int, reach: float, m: int, rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-reach, reach, (m, d))


def _arc(angle: np.ndarray, moon: np.ndarray) -> np.ndarray:
    """Points (m, 2) on the upper moon 0 or the lower moon 1."""
    upper = np.column_stack([np.cos(angle), np.sin(angle)])
    lower = np.column_stack([1 - np.cos(angle), 0.5 - np.sin(angle)])
    return np.where(moon[:, None] == 0, upper, lower)


#: Families by name.
FAMILIES: dict[str, Callable[..., Any]] = {
    "gaussians": _gaussians,
    "logistic": _logistic,
    "additive": _additive,
    "moons": _moons,
    "checker": _checker,
    "rings": _rings,
}
