"""Density-aware evidential deep learning (DAEDL)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, cat

from ..answers import Decisions
from ..density.base import as_density, fit_density, log_density
from ..density.gaussian import GDADensity
from ..dirichlet import Dirichlet
from ..networks.evidential_losses import evidence_from_logits, mse_bayes_risk
from ..networks.torch_classifier import TorchEstimator
from .evidential import Evidential

__all__ = ["DAEDL"]

_PRIOR = 1e-6
_TOP = 300.0
_LEAST = 1e-9


@dataclass(eq=False, repr=False, kw_only=True)
class DAEDL(Evidential, Decisions, TorchEstimator):
    r"""Density-aware EDL: the logits are scaled by the density of the features.

    It is trained as EDL with :math:`\alpha = 10^{-6} + \exp(\mathrm{logits})`. A Gaussian per class
    is then fitted to the features of the training rows, and an input with log-density q gets

    .. math:: \alpha = \exp(d \cdot \mathrm{logits}), \qquad
        d = \frac{\max(q, q_{min}) - q_{min}}{q_{max} - q_{min}},

    the extremes being those of the training rows.

    Parameters
    ----------
    backbone : backbone, optional
        One of `dipedl.networks`; None is ``MLP()``. For images: ``LeNet5()``. The authors'
        networks are spectrally normalised.
    kl_weight : float, default=0.05
        Weight of the KL on misleading evidence, >= 0; not annealed.
    density : density estimator, optional
        Of the features, as for `dipedl.DIPClassifier`; None is ``GDADensity()``, with equal class
        weights and OAS shrinkage. A copy is fitted.
    training, image_shape, random_state, class_weight : optional
        As of `EDL`.

    Attributes
    ----------
    classes_, class_weight_, module_, image_shape_, n_features_in_, history_
        As of `EDL`.
    density_ : density estimator
        Fitted on the features of the training rows, without augmentation.
    density_range_ : tuple of float
        Smallest and largest log-density of the training rows, in nats.

    Notes
    -----
    Far from the data the Dirichlet is the uniform one, its `prior`. An input near the data with
    negative logits has a smaller total concentration, and also a vacuity of 1; ``uncertainty``
    ranks by ``K / S``, as the authors do, and all inputs below the smallest training density tie.
    Their labels do not: concentrations differ from one by a billionth, in the order of the logits,
    so that ``predict`` and ``predict_proba`` agree.

    Differences from the released code: the loss is the mean over a batch, not the sum; a singular
    covariance is shrunk, not jittered; validation is in evaluation mode and does not train batch
    normalisation; the density is fitted on clean inputs, not on augmented ones.

    The released code adds the least of 1e-308, 1e-307, ... to a covariance that makes it positive
    definite. ``GDADensity(shrinkage=1e-15)`` comes close to that; more shrinkage doubts more.

    References
    ----------
    Yoon, Kim, "Uncertainty estimation by density aware evidential deep learning", ICML 2024.

    Examples
    --------
    >>> from dipedl.baselines import DAEDL
    >>> from dipedl.datasets import load_digits
    >>> from dipedl.networks import Training
    >>> data = load_digits()
    >>> daedl = DAEDL(training=Training(epochs=10, batch_size=32, learning_rate=3e-3))
    >>> daedl = daedl.fit(data.X_train, data.y_train)
    >>> daedl.score(data.X_test, data.y_test) > 0.9, daedl.predict_proba(100 * data.X_test[:1])
    (True, array([[0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125]]))
    """

    kl_weight: float = 0.05
    density: Any = None

    def _fit_head(self, X: Any, y: Any, **run: Any) -> None:
        features = self.transform(X)
        density = GDADensity() if self.density is None else self.density
        self.density_ = fit_density(as_density(density, self.random_state), features, y, None)
        scores = log_density(self.density_, features)
        if np.isinf(scores).any():
            raise ValueError(
                f"density gave -inf for {int(np.isinf(scores).sum())} of the {len(scores)} rows it "
                "was fitted on; such scores cannot scale logits: use another density"
            )
        self.density_range_ = float(scores.min()), float(scores.max())

    def predict_dirichlet(self, X: Any) -> Dirichlet:
        """The Dirichlet ``exp(d * logits)`` of each of the n inputs X (n, d)."""
        d, logits = self._typicality_and_logits(X)
        # With d = 0 all classes would tie, and argmax would take the first. Concentrations that
        # differ from one by a billionth keep their order.
        least = _LEAST / np.maximum(np.abs(logits).max(axis=1, keepdims=True), 1.0)
        return Dirichlet(np.exp(np.clip(np.maximum(d, least) * logits, -_TOP, _TOP)))

    def readable_density(self, X: Any) -> tuple[Any, np.ndarray, Any]:
        """Return the density behind the score, what it sees of X (n, p), and its transformer."""
        return self.density_, self.transform(X), self

    def _log_evidence(self, X: Any) -> np.ndarray:
        d, logits = self._typicality_and_logits(X)
        return np.asarray(logsumexp(d * logits, axis=1))

    def _typicality_and_logits(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return d (n, 1), from 0 to 1 among the training rows, and logits (n, k) of X."""
        check_is_fitted(self, "density_range_")
        both = self.apply_network(X, _features_and_logits)
        k, (low, high) = len(self.classes_), self.density_range_
        # Not clipped above: beyond the most typical training row the evidence still grows.
        scores = np.maximum(log_density(self.density_, both[:, :-k]), low)
        return ((scores - low) / (high - low + 1e-12))[:, None], both[:, -k:]

    def _loss(self, outputs: Tensor, target: Tensor, *, epoch: int) -> Tensor:
        alpha = _PRIOR + evidence_from_logits(outputs, "exp")
        return self._with_kl(mse_bayes_risk(alpha, target), alpha, target, self.kl_weight)


def _features_and_logits(module: Any, chunk: Tensor) -> Tensor:
    features = module.features(chunk)
    return cat([features, module.head(features)], dim=1)
