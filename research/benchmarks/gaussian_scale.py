"""Gaussian densities against every peer: seconds, memory and accuracy, and how they grow.

``python benchmarks/gaussian_scale.py`` writes results/gaussian_scale.json and the picture
docs/images/gaussian_scale.png, in a quarter of an hour on two idle cores. With OMP_NUM_THREADS=1
seconds are CPU seconds, which mean the same on a busy machine. The peer beside scikit-learn and
PyTorch take part where it is installed: pytorch-ood, with torchvision.
"""

import gc
import os
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import harness
import numpy as np
import torch
from harness import in_new_process, paired_seconds, peak_kib, round_numbers
from matplotlib.figure import Figure
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.mixture import GaussianMixture

from dipedl.density import GaussianDensity, GDADensity

OURS, OURS32, TIED = "ours", "ours, float32 rows", "ours, tied"
QDA, EIGEN, LDA, DDU = "QDA (svd)", "QDA (eigen)", "LDA", "torch, as DDU"
MVN, MVN32 = "torch MultivariateNormal", "torch MultivariateNormal, float32"
#: Most n p p at which a method is asked to fit; and k n p p, to score.
MOST, MOST_SCORED = {QDA: 1e10, LDA: 1e10}, 1e12
#: Problems (n, p, k): three lines through the first, and one that is long.
BASE = (100_000, 64, 10)
LINES = {
    "n": [(10_000, 64, 10), BASE, (1_000_000, 64, 10)],
    "p": [(100_000, 16, 10), BASE, (100_000, 256, 10), (100_000, 640, 10)],
    "k": [(100_000, 64, 2), BASE, (100_000, 64, 100), (100_000, 64, 1000)],
}
LONG = (10_000_000, 16, 10)
GRID = [*dict.fromkeys(problem for line in LINES.values() for problem in line), LONG]
MEMORY = (1_000_000, 64, 10)
LONG_PEERS = (OURS, OURS32, DDU, EIGEN)
ACCURACY = [(16, 1.0), (16, 1e4), (256, 1.0), (256, 1e4), (256, 1e7)]
SCORED, REPEATS, THREADS = 8192, 3, torch.get_num_threads()
CLOCK = "CPU" if THREADS == 1 else "wall"
#: From so many n p p on, a third of the repetitions.
LARGE = 1e9


def key(problem: tuple[int, int, int]) -> str:
    return "n = {:,}, p = {}, k = {}".format(*problem)


def data(n: int, p: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of k Gaussians; each class has its own mean, and each feature its own scale."""
    rng = np.random.default_rng(seed)
    means = np.random.default_rng(1).standard_normal((k, p))
    y = rng.integers(0, k, n)
    y[: 2 * k] = np.arange(2 * k) % k
    X = rng.standard_normal((n, p))
    X *= np.geomspace(0.1, 10, p)
    X += means[y]
    return X, y


def times(problem: tuple[int, int, int]) -> dict[str, Any]:
    """Seconds of all that fit and score one problem, in turn."""
    n, p, k = problem
    X, y = data(n, p, k)
    calls = fits(X, y, k)
    if problem == LONG:
        calls = {name: calls[name] for name in LONG_PEERS}
    clock = time.process_time if CLOCK == "CPU" else time.perf_counter
    repeats = REPEATS if n * p * p < LARGE else max(1, REPEATS // 3)
    found: dict[str, Any] = {"fit": paired_seconds(calls, repeats, clock)}
    if problem != LONG:
        Q, _ = data(SCORED, p, k, seed=2)
        found["score"] = paired_seconds(scores(X, y, Q, k), repeats, clock)
    return found


def memory(name: str, problem: tuple[int, int, int]) -> float:
    """Most bytes that a fit takes beside its rows, in this process; a small fit comes first."""
    n, p, k = problem
    fits(*data(4 * p * k, p, k), k)[name]()
    call = fits(*data(n, p, k), k)[name]
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_kib()
    call()
    return (peak_kib() - before) * 1024


def fits(X: np.ndarray, y: np.ndarray, k: int) -> dict[str, Callable[[], Any]]:
    """Return by name a call that fits to float64 rows X (n, p) with labels y (n,).

    Ours is asked for float32 rows too; pytorch-ood computes in float32 alone.
    """
    rows, labels = X.astype(np.float32), torch.from_numpy(y)
    calls = {
        OURS: lambda: GDADensity().fit(X, y),
        OURS32: lambda: GDADensity().fit(rows, y),
        TIED: lambda: GDADensity("tied").fit(X, y),
        DDU: lambda: as_ddu(torch.from_numpy(X), labels, k),
        QDA: lambda: QuadraticDiscriminantAnalysis(tol=1e-9).fit(X, y),
        EIGEN: lambda: QuadraticDiscriminantAnalysis(solver="eigen", tol=1e-9).fit(X, y),
        LDA: lambda: LinearDiscriminantAnalysis().fit(X, y),
    }
    calls |= {
        name.partition(" / ")[2]: partial(detector.fit_features, torch.from_numpy(rows), labels)
        for name, detector in pytorch_ood().items()
    }
    size = X.size * X.shape[1]
    return {name: call for name, call in calls.items() if size <= MOST.get(name, np.inf)}


def scores(X: np.ndarray, y: np.ndarray, Q: np.ndarray, k: int) -> dict[str, Callable[[], Any]]:
    """Return by name a call that scores the rows Q (m, p) after a fit to X and y."""
    density, tied = GDADensity().fit(X, y), GDADensity("tied").fit(X, y)
    qda = QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=1e-3, tol=1e-9).fit(X, y)
    lda = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    mixture, Q32 = as_mixture(density), Q.astype(np.float32)
    calls = {
        OURS: lambda: density.score_samples(Q),
        OURS32: lambda: density.score_samples(Q32),
        TIED: lambda: tied.score_samples(Q),
        "QDA": lambda: qda.predict_log_proba(Q),
        LDA: lambda: lda.predict_log_proba(Q),
        "GaussianMixture": lambda: mixture.score_samples(Q),
    }
    size = k * Q.size * Q.shape[1]
    if size <= MOST_SCORED:
        calls |= {MVN: in_torch(density, Q), MVN32: in_torch(density, Q32)}
    rows, labels = torch.from_numpy(X.astype(np.float32)), torch.from_numpy(y)
    for name, detector in pytorch_ood().items():
        fitted = detector.fit_features(rows, labels)
        answer = partial(fitted.predict_features, torch.from_numpy(Q32))
        calls[name.partition(" / ")[2]] = answer
    return calls


def as_ddu(X: torch.Tensor, y: torch.Tensor, k: int) -> torch.distributions.Distribution:
    """Means and covariances of the classes, as Mukhoti et al. fit them: in double, with jitter."""
    with torch.no_grad():
        means = torch.stack([X[y == c].mean(0) for c in range(k)])
        centred = [X[y == c] - means[c] for c in range(k)]
        covariances = torch.stack([d.T @ d / (len(d) - 1) for d in centred])
        jitter = 1e-6 * torch.eye(X.shape[1], dtype=X.dtype)
        return torch.distributions.MultivariateNormal(means, covariances + jitter)


def pytorch_ood() -> dict[str, Any]:
    """Return its detectors of features, to be fitted; none where it is not installed."""
    names = {"tied": "Mahalanobis", "full": "GMM"} if find_spec("pytorch_ood") else {}
    return {
        f"{form} / pytorch-ood {name}": getattr(
            import_module(f"pytorch_ood.detector.{name.lower()}"), name
        )(None)
        for form, name in names.items()
    }


def means_and_covariances(density: GDADensity) -> tuple[np.ndarray, np.ndarray]:
    """Means (k, p) and covariances (k, p, p) that a fitted density uses."""
    parts = zip(density.moments_, density.shrinkage_, density.target_, strict=True)
    eye, means = np.eye(density.n_features_in_), [m.mean for m in density.moments_]
    return np.stack(means), np.stack([(1 - s) * m.covariance + s * t * eye for m, s, t in parts])


def in_torch(density: GDADensity, Q: np.ndarray) -> Callable[[], Any]:
    parts = (torch.from_numpy(part.astype(Q.dtype)) for part in means_and_covariances(density))
    normal, rows = torch.distributions.MultivariateNormal(*parts), torch.from_numpy(Q)

    def score() -> torch.Tensor:
        with torch.no_grad():
            # In chunks: its n x k x p numbers would not fit otherwise.
            parts = [normal.log_prob(c[:, None, :]) for c in rows.split(256)]
            return torch.logsumexp(torch.cat(parts), dim=1) - np.log(normal.loc.shape[0])

    return score


def as_mixture(density: GDADensity) -> GaussianMixture:
    means, covariances = means_and_covariances(density)
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
    exact = exact_log_density(X, Q)
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


def exact_log_density(X: np.ndarray, Q: np.ndarray) -> np.ndarray:
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


def parts() -> dict[str, Callable[[], Any]]:
    """Return the measurements by name."""
    found: dict[str, Callable[[], Any]] = {
        f"error, p = {p}, condition {condition:g}": partial(errors, p, condition)
        for p, condition in ACCURACY
    }
    for name in (OURS, OURS32, DDU, QDA, EIGEN):
        found[f"memory: {name}"] = partial(in_new_process, memory, name, MEMORY)
    return found | {key(of): partial(in_new_process, times, of) for of in GRID}


def draw(values: dict[str, Any], file: Path) -> None:
    """Seconds of a fit along each line."""
    names, figure = (OURS, DDU, EIGEN, QDA, LDA), Figure(figsize=(10, 3.4), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    for axis, (along, problems) in zip(axes, LINES.items(), strict=True):
        at = [problem["npk".index(along)] for problem in problems]
        for name, style in zip(names, ("o-", "s--", "^--", "v--", "x:"), strict=True):
            axis.loglog(at, [seconds_of(values, q, name) for q in problems], style)
        fixed = zip("npk", BASE, strict=True)
        title = ", ".join(f"{letter} = {value:,}" for letter, value in fixed if letter != along)
        axis.set(xlabel=along, title=title)
        axis.set_xticks(at, labels=[f"{value:,}" for value in at])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds of a fit")
    axes[0].legend(names, frameon=False, fontsize="small")
    figure.savefig(file, dpi=120)


def seconds_of(values: dict[str, Any], problem: tuple[int, int, int], name: str) -> float:
    return float(values.get(key(problem), {}).get("fit", {}).get(name, np.nan))


def measure() -> harness.Values:
    values: dict[str, Any] = {"load": 0.0}
    for name, part in parts().items():
        load = round(os.getloadavg()[0], 1)
        values |= {name: round_numbers(part()), "load": max(values["load"], load)}
    draw(values, harness.ROOT / "docs" / "images" / "gaussian_scale.png")
    return values


if __name__ == "__main__":
    harness.main(__file__, measure)
