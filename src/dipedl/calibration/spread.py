"""Squared error of the class probabilities, from held-out rows; the strength it supports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.validation import check_is_fitted

from ..maths.arrays import Array, namespace
from ..protocols import atomic
from .crossfit import row_hash

__all__ = ["Spread"]

#: With fewer rows nothing is estimated.
_FEWEST = 20
#: Rows that the error is estimated on, at most; it needs no more.
_MOST = 5000
#: One strength does not do for all classes if one has fewer rows than this share of the mean, or if
#: the mean confidence is higher.
RARE, SURE = 0.1, 0.98
#: Strength below which intervals of small probabilities are too narrow: that of so many labels.
LOW = 3.0
#: Squared error where nothing is estimated.
_UNKNOWN = 1.0
#: Bounds of the strength. At the lowest, intervals are widest where no class is nearly sure; those
#: of probabilities near 0 or 1 are narrow again, since nearly all mass lies at the end.
_LOWEST, _HIGHEST, _TINY = 0.5, 1e6, 1e-300
#: With few rows neither part is sure: the error is at least that of a fit of so many parameters.
_PARAMETERS = 10
#: Squared widths of the kernels, in units of the mean squared distance of two rows over two.
_WIDTHS = (0.3, 1.0, 3.0)
_LANDMARKS = 150
#: Features beyond which there is no kernel of each feature alone, and no linear one.
_MOST_ALONE, _MOST_LINEAR = 20, 64
#: Bumps of a kernel of one feature.
_BUMPS = 8
#: Ratios of the variance of the error to that of the labels.
_RATIOS = np.logspace(-5, 2, 36)
#: The likelihood-ratio test of one parameter, 95 %, in nats.
_ADMITTED = float(stats.chi2.ppf(0.95, 1) / 2)


class Spread(BaseEstimator):
    r"""Strength of the Dirichlet that the error of its mean supports; nothing is fitted again.

    The squared error ``e^2 = mean |p - P(Y|x)|^2`` is estimated, and typical inputs get the
    strength S at which the Dirichlet expects that error, ``mean sum_c p_c (1 - p_c) / (S + 1) =
    e^2``. With less evidence than the typical input has, S falls as the cube root of the evidence.

    Three parts add up to e^2:

    - What can be seen in the residuals ``onehot(y) - p`` of held-out rows. Labels are independent,
      so what neighbours have in common is error: it is a Gaussian process in x, whose variance is
      estimated by maximum likelihood as a variance component (kernels of three widths, and a sum of
      functions of one feature each, all with a linear part). The upper end of its 95 % interval
      counts.
    - What cannot, because it changes from row to row: the variance of the probabilities over
      training sets, by the delete-d jackknife over the fits of the folds
      (`dipedl.calibration.jackknife.Jackknife`). Of a classifier that was not fitted again, the
      variance that a Gaussian process has when it learns the labels of the held-out rows stands
      for it.
    - The error of a fit of ten parameters to as many rows, which counts where these are few.

    Attributes
    ----------
    strength_ : float
        S of an input with the typical evidence, at least 1/2.
    error_, variance_ : float
        The estimated e^2, and the second part of it.
    refitted_ : bool
        True if the variance is that of the fits of folds.
    log_evidence_ : float
        Median log-evidence of held-out rows: the typical one.
    n_ : float
        Held-out rows (sum of their weights), or groups where there are enough of them.
    rarest_ : float
        Rows of the rarest class, as a share of the mean over classes.
    confidence_ : float
        Mean of the largest probability of a held-out row.

    Notes
    -----
    The cube root is a choice: the error of a local average falls as evidence^(-4 / (4 + d)), which
    is that for d = 8. No held-out row can show an error that changes from row to row, as it cannot
    be told from the noise of the labels.

    References
    ----------
    Patterson, Thompson, "Recovery of inter-block information when block sizes are unequal",
    Biometrika 58 (1971), on components of variance. Williams, Seeger, "Using the Nyström method to
    speed up kernel machines", NeurIPS 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from dipedl import DIPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = DIPClassifier(random_state=0).fit(X[:, :2], y)
    >>> low, high = clf.predict_dirichlet(X[:, :2]).credible_interval(0.95)
    >>> bool(np.log(clf.spread_.strength_) < clf.predict_dirichlet(X[:, :2]).log_evidence.max())
    True
    """

    @atomic
    def fit(
        self,
        Z: np.ndarray,
        mean: np.ndarray,
        y: np.ndarray,
        *,
        typical: float,
        sample_weight: np.ndarray | None = None,
        variance: float | None = None,
        groups: np.ndarray | None = None,
    ) -> Self:
        """Estimate the error on held-out rows.

        Parameters
        ----------
        Z, mean, y : ndarray (m, p), ndarray (m, k), ndarray of int (m,)
            Features, predicted probabilities and class indices of rows that were in no fit.
        typical : float
            Median log-evidence of the rows.
        sample_weight : ndarray, shape (m,), optional
            Counts each row that often.
        variance : float, optional
            Of the probabilities over training sets, summed over classes. Default: that of a
            Gaussian process of the labels.
        groups : ndarray of int, shape (m,), optional
            Group of each row. Rows of a group have errors and noise in common: their mean is one
            row, if there are 20 groups or more; of fewer the error comes out too large.
        """
        w = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
        self.n_ = float(w.sum())
        self.log_evidence_ = float(typical)
        counts = np.bincount(y, w, minlength=mean.shape[1])
        self.refitted_ = variance is not None
        if np.count_nonzero(counts) < 2 or (w > 0).sum() < _FEWEST:
            # Nothing can be estimated: the lowest strength.
            self.error_, self.strength_ = _UNKNOWN, _LOWEST
            self.variance_ = 1.0 if variance is None else float(variance)
            self.rarest_, self.confidence_ = 0.0, 1.0
            return self
        # Rounding may lead beyond one.
        self.rarest_ = min(1.0, float(counts.min() / counts.mean()))
        self.confidence_ = min(1.0, float(np.average(mean.max(axis=1), weights=w)))
        noise = float(np.average(1 - (mean**2).sum(axis=1), weights=w))
        onehot = np.eye(mean.shape[1])[y]
        rows = [Z, onehot - mean, onehot - counts / counts.sum()]
        if groups is not None and len(np.unique(groups)) >= _FEWEST:
            rows, w = _means(rows, groups, w)
            self.n_ = float(w.sum())
        # In an order that depends on what rows hold and not on where they stand.
        order = np.lexsort((w, row_hash(rows[0])))[:_MOST]
        Z, residuals, labels = (part[order] for part in rows)
        w, root = w[order], np.sqrt(w[order])[:, None]
        bases = [_Basis.of(basis * root) for basis in _bases(Z, w)]
        fits = [_explain(residuals * root, basis, w.sum()) for basis in bases]
        likelihood, error, _ = (np.concatenate(part) for part in zip(*fits, strict=True))
        smooth = float(error[likelihood >= likelihood.max() - _ADMITTED].max())
        if variance is None:
            learned = [_explain(labels * root, basis, w.sum()) for basis in bases]
            best = max(learned, key=lambda fit: float(fit.likelihood.max()))
            variance = float(best.unknown[best.likelihood.argmax()])
        self.variance_ = float(variance)
        self.error_ = smooth + self.variance_ + _PARAMETERS * noise / self.n_
        strength = noise / max(self.error_, noise / _HIGHEST, _TINY) - 1
        self.strength_ = float(np.clip(strength, _LOWEST, _HIGHEST))
        return self

    @property
    def supported(self) -> bool:
        """Return whether the error could be estimated; else the strength is the lowest one."""
        return self.error_ != _UNKNOWN

    @property
    def shortfall(self) -> str:
        """Return why intervals are known to fall short, empty where they are not.

        At a low strength nearly all mass lies at 0 and 1, and a small probability above its
        interval.
        """
        causes = {
            "few rows, or one class alone, cannot tell how wrong the probabilities are": (
                not self.supported
            ),
            "a class has few rows": self.rarest_ < RARE,
            "the labels are nearly without noise": self.confidence_ > SURE,
            "the probabilities are far off": self.strength_ < LOW,
        }
        return next((cause for cause, holds in causes.items() if holds), "")

    def strength(self, log_evidence: np.ndarray) -> np.ndarray:
        """Supported strength S of inputs with this log-evidence (n,), shape (n,)."""
        check_is_fitted(self, "strength_")
        return np.asarray(supported_strength(log_evidence, self.strength_, self.log_evidence_))


def supported_strength(log_evidence: Array, strength: Any, typical: Any) -> Array:
    """Strength of a Dirichlet that the error supports at log-evidence (n,), shape (n,).

    `strength` where the evidence is `typical` or more; below, it falls as the cube root of the
    evidence, to 1 at the lowest, or stays at `strength` if that is less.
    """
    xp = namespace(log_evidence)
    low = xp.where(strength < 1, strength, xp.ones_like(log_evidence))
    gap = (log_evidence - typical).clip(max=0.0)
    return low + (strength - low) * xp.exp(gap / 3)


def _means(
    rows: list[np.ndarray], groups: np.ndarray, w: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the mean over each of g groups of rows (m, .), and weights (g,) that are equal."""
    present = np.flatnonzero(w > 0)
    number = np.unique(groups[present], return_inverse=True)[1]
    total = np.bincount(number, w[present])
    means = [
        np.stack([np.bincount(number, w[present] * c) / total for c in part[present].T], axis=1)
        for part in rows
    ]
    return means, np.ones(len(total))


class _Explained(NamedTuple):
    """Of a Gaussian process, by ratio of its variance to that of the noise, each shape (g,).

    The log-likelihood, the posterior mean of its square, and the part of that which is its
    posterior variance: what the rows leave unknown.
    """

    likelihood: np.ndarray
    error: np.ndarray
    unknown: np.ndarray


class _Basis(NamedTuple):
    """A basis B (m, .), the eigenvalues (r,) of B^T B that are not zero, and their vectors."""

    functions: np.ndarray
    eigenvalues: np.ndarray
    vectors: np.ndarray

    @classmethod
    def of(cls, functions: np.ndarray) -> _Basis:
        eigenvalues, vectors = np.linalg.eigh(functions.T @ functions)
        seen = eigenvalues > 1e-10 * eigenvalues[-1]
        return cls(functions, eigenvalues[seen], vectors[:, seen])


def _explain(values: np.ndarray, basis: _Basis, n: float) -> _Explained:
    """Fit processes with the covariance B B^T of a basis to values (m, k); a row sums to zero.

    The k columns share one covariance; `n` is the number of rows behind them.
    """
    functions, eigenvalues, vectors = basis
    squares = ((vectors.T @ (functions.T @ values)) ** 2).sum(axis=1) / eigenvalues
    free = values.shape[1] - 1
    signal = _RATIOS[:, None] * eigenvalues * n / eigenvalues.sum()
    rest = (values**2).sum() - squares.sum()
    noise = ((squares / (1 + signal)).sum(axis=1) + rest) / (n * free)
    shrunk = signal / (1 + signal)
    likelihood = -free / 2 * (n * np.log(np.maximum(noise, _TINY)) + np.log1p(signal).sum(axis=1))
    unknown = noise * free * shrunk.sum(axis=1) / n
    return _Explained(likelihood, (shrunk**2) @ squares / n + unknown, unknown)


def _bases(Z: np.ndarray, w: np.ndarray) -> Iterator[np.ndarray]:
    """Yield bases (m, .) of functions of features (m, p): smooth ones, and sums over features."""
    mean = np.average(Z, axis=0, weights=w)
    scale = np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=w))
    Z = ((Z - mean) / np.where(scale > 0, scale, 1.0))[:, scale > 0]
    m, p = Z.shape
    plain = [np.ones((m, 1))]
    if p <= _MOST_LINEAR:
        plain.append(Z / np.sqrt(max(p, 1)))
    landmarks = Z[: min(_LANDMARKS, m // 2)]
    for width in _WIDTHS if p else ():
        within, to = (rbf_kernel(A, landmarks, 0.5 / (p * width)) for A in (landmarks, Z))
        eigenvalues, vectors = np.linalg.eigh(within)
        seen = eigenvalues > 1e-8 * eigenvalues[-1]
        yield np.column_stack([*plain, to @ (vectors[:, seen] / np.sqrt(eigenvalues[seen]))])
    if p <= _MOST_ALONE:
        bumps = [_bumps(column) / np.sqrt(p) for column in Z.T]
        yield np.column_stack([*plain, *bumps])


def _bumps(values: np.ndarray) -> np.ndarray:
    """Return functions of one feature (m,), each high near one quantile of it, (m, 8)."""
    centers = np.quantile(values, np.linspace(0.02, 0.98, _BUMPS))
    width = max((centers[-1] - centers[0]) / (_BUMPS - 1), 1e-3)
    return np.asarray(np.exp(-0.5 * ((values[:, None] - centers) / width) ** 2))
