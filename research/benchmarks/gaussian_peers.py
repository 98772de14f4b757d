"""Gaussians of labelled rows by this library and by others: what fits, what scores, what is exact.

The peers beside scikit-learn and PyTorch take part where they can be found: ``pip install --no-deps
--target DIR pytorch-ood pyod river numba llvmlite``, and ``PYTHONPATH=DIR``.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from head_speed import pytorch_ood
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.mixture import GaussianMixture

from dipedl.density import GaussianDensity, GDADensity

OURS, OURS32, TIED = "ours", "ours, float32 rows", "ours, tied"
QDA, EIGEN, LDA, DDU = "QDA (svd)", "QDA (eigen)", "LDA", "torch, as DDU"
EM, PYOD, KNN, RIVER = "GaussianMixture, one step", "PyOD GMM, one step", "PyOD kNN", "river"
MVN, MVN32 = "torch MultivariateNormal", "torch MultivariateNormal, float32"
#: Most n p p at which a method is asked to fit; and k n p p, to score.
MOST = {QDA: 1e10, LDA: 1e10, EM: 2e8, PYOD: 2e8, KNN: 5e7, RIVER: 5e7}
MOST_SCORED = {MVN: 1e12, MVN32: 1e12, KNN: 1e9}
Calls = dict[str, Callable[[], Any]]


def fits(X: np.ndarray, y: np.ndarray, k: int) -> Calls:
    """By name, what fits to float64 rows X (n, p) with labels y (n,).

    Ours is asked for float32 rows too; pytorch-ood computes in float32 alone.
    """
    rows, labels = X.astype(np.float32), torch.from_numpy(y)
    calls: Calls = {
        OURS: lambda: GDADensity().fit(X, y),
        OURS32: lambda: GDADensity().fit(rows, y),
        TIED: lambda: GDADensity("tied").fit(X, y),
        DDU: lambda: as_ddu(torch.from_numpy(X), labels, k),
        QDA: lambda: QuadraticDiscriminantAnalysis(tol=1e-9).fit(X, y),
        EIGEN: lambda: QuadraticDiscriminantAnalysis(solver="eigen", tol=1e-9).fit(X, y),
        LDA: lambda: LinearDiscriminantAnalysis().fit(X, y),
        EM: lambda: one_step(GaussianMixture(k, max_iter=1, init_params="random"), X),
    }
    calls |= {
        name.partition(" / ")[2]: _fitting(detector, torch.from_numpy(rows), labels)
        for name, detector in pytorch_ood().items()
    }
    if find_spec("pyod") and find_spec("numba"):
        mixture, knn = (getattr(import_module(f"pyod.models.{m.lower()}"), m) for m in _PYOD)
        calls[PYOD] = lambda: one_step(mixture(k, max_iter=1, init_params="random"), X)
        calls[KNN] = lambda: knn().fit(X)
    if find_spec("river"):
        calls[RIVER] = lambda: with_river(X, y, k)
    size = X.size * X.shape[1]
    return {name: call for name, call in calls.items() if size <= MOST.get(name, np.inf)}


def scores(X: np.ndarray, y: np.ndarray, Q: np.ndarray, k: int) -> Calls:
    """By name, what scores the rows Q (m, p) after a fit to X and y."""
    density, tied = GDADensity().fit(X, y), GDADensity("tied").fit(X, y)
    qda = QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=1e-3, tol=1e-9).fit(X, y)
    lda = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    mixture, Q32 = as_mixture(density), Q.astype(np.float32)
    calls: Calls = {
        OURS: lambda: density.score_samples(Q),
        OURS32: lambda: density.score_samples(Q32),
        TIED: lambda: tied.score_samples(Q),
        "QDA": lambda: qda.predict_log_proba(Q),
        LDA: lambda: lda.predict_log_proba(Q),
        "GaussianMixture": lambda: mixture.score_samples(Q),
    }
    size = k * Q.size * Q.shape[1]
    if size <= MOST_SCORED[MVN]:
        calls |= {MVN: in_torch(density, Q), MVN32: in_torch(density, Q32)}
    rows, labels = torch.from_numpy(X.astype(np.float32)), torch.from_numpy(y)
    for name, detector in pytorch_ood().items():
        fitted = detector.fit_features(rows, labels)
        calls[name.partition(" / ")[2]] = _scoring(fitted, torch.from_numpy(Q32))
    if find_spec("pyod") and find_spec("numba") and size <= MOST_SCORED[KNN]:
        knn = import_module("pyod.models.knn").KNN().fit(X[:10_000])
        calls[KNN] = lambda: knn.decision_function(Q)
    return calls


_PYOD = ("GMM", "KNN")


def _fitting(detector: Any, X: torch.Tensor, y: torch.Tensor) -> Callable[[], Any]:
    return lambda: detector.fit_features(X, y)


def _scoring(detector: Any, Q: torch.Tensor) -> Callable[[], Any]:
    return lambda: detector.predict_features(Q)


def as_ddu(X: torch.Tensor, y: torch.Tensor, k: int) -> torch.distributions.Distribution:
    """Means and covariances of the classes, as Mukhoti et al. fit them: in double, with jitter."""
    with torch.no_grad():
        means = torch.stack([X[y == c].mean(0) for c in range(k)])
        centred = [X[y == c] - means[c] for c in range(k)]
        covariances = torch.stack([d.T @ d / (len(d) - 1) for d in centred])
        jitter = 1e-6 * torch.eye(X.shape[1], dtype=X.dtype)
        return torch.distributions.MultivariateNormal(means, covariances + jitter)


def one_step(model: Any, X: np.ndarray) -> Any:
    """A mixture after one step of EM from random responsibilities: it has no labels."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def with_river(X: np.ndarray, y: np.ndarray, k: int) -> list[Any]:
    import pandas as pd
    from river.covariance import EmpiricalCovariance

    found = []
    for c in range(k):
        covariance = EmpiricalCovariance(ddof=0)
        covariance.update_many(pd.DataFrame(X[y == c]))
        found.append(covariance)
    return found


def shrunk(density: GDADensity) -> tuple[np.ndarray, np.ndarray]:
    """Means (k, p) and covariances (k, p, p) that a fitted density uses."""
    parts = zip(density.moments_, density.shrinkage_, density.target_, strict=True)
    eye = np.eye(density.n_features_in_)
    return (
        np.stack([m.mean for m in density.moments_]),
        np.stack([(1 - s) * m.covariance + s * t * eye for m, s, t in parts]),
    )


def in_torch(density: GDADensity, Q: np.ndarray) -> Callable[[], Any]:
    means, covariances = (torch.from_numpy(part.astype(Q.dtype)) for part in shrunk(density))
    normal, rows = torch.distributions.MultivariateNormal(means, covariances), torch.from_numpy(Q)

    def score() -> torch.Tensor:
        with torch.no_grad():
            # In chunks: its n x k x p numbers would not fit otherwise.
            parts = [normal.log_prob(c[:, None, :]) for c in rows.split(256)]
            return torch.logsumexp(torch.cat(parts), dim=1) - np.log(len(means))

    return score


def as_mixture(density: GDADensity) -> GaussianMixture:
    means, covariances = shrunk(density)
    mixture = GaussianMixture(len(means))
    mixture.means_, mixture.weights_ = means, np.full(len(means), 1 / len(means))
    lower = np.linalg.cholesky(covariances)
    eye = np.broadcast_to(np.eye(means.shape[1]), lower.shape)
    mixture.precisions_cholesky_ = np.linalg.solve(lower, eye).swapaxes(1, 2)
    return mixture


def errors(p: int, condition: float, n: int = 4000, rows: int = 64) -> dict[str, float]:
    """Largest error in nats of the log-density of new rows, against extended precision.

    One Gaussian, whose standard deviations along random directions range over the square root of
    `condition`; rows are of float32, so that all are given the same numbers.
    """
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((p, p)))[0]
    root = np.geomspace(1, condition**-0.5, p) * turn
    X = (rng.standard_normal((n + rows, p)) @ root.T).astype(np.float32)
    X, Q32 = X[:n].astype(np.float64), X[n:]
    Q = Q32.astype(np.float64)
    density = GaussianDensity(shrinkage=None).fit(X)
    by_class = GDADensity(shrinkage=None).fit(X, np.zeros(n, int))
    exact = extended(X, Q)
    calls = {
        OURS: lambda: density.score_samples(Q),
        OURS32: lambda: density.score_samples(Q32),
        MVN: in_torch(by_class, Q),
        MVN32: in_torch(by_class, Q32),
        "GaussianMixture": lambda: as_mixture(by_class).score_samples(Q),
    }
    found = {}
    for name, call in calls.items():
        try:
            found[name] = float(np.abs(np.asarray(call(), np.longdouble) - exact).max())
        except ValueError:
            # Its covariance is singular in that type.
            found[name] = None
    return found


def extended(X: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Log-densities of rows Q under the Gaussian fitted to X, all in 64-bit mantissas."""
    X, Q = X.astype(np.longdouble), Q.astype(np.longdouble)
    mean = X.mean(axis=0)
    D = X - mean
    rest, p = np.dot(D.T, D) / len(X), X.shape[1]
    white, log_det = (Q - mean).T.copy(), np.longdouble(0)
    # Cholesky's columns one by one, each at once divided into the rows.
    for j in range(p):
        pivot = rest[j, j]
        log_det += np.log(pivot)
        column = rest[j + 1 :, j] / np.sqrt(pivot)
        white[j] /= np.sqrt(pivot)
        white[j + 1 :] -= column[:, None] * white[j]
        rest[j + 1 :, j + 1 :] -= column[:, None] * column
    square = (white * white).sum(axis=0)
    return -(p * np.log(2 * np.longdouble(np.pi)) + log_det + square) / 2
