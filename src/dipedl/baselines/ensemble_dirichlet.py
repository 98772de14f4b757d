"""The Dirichlet that has the moments of an ensemble's class probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..answers import Decisions
from ..dirichlet import DIRICHLET_KINDS, Dirichlet, concentration_of_samples
from ..inputs import validate_inputs
from ..maths.arrays import check_choice
from .deep_ensemble import DeepEnsemble
from .post_hoc import PostHoc

__all__ = ["EnsembleDirichlet"]


@dataclass(eq=False, repr=False)
class EnsembleDirichlet(Decisions, PostHoc):
    r"""A Dirichlet with the mean and the summed variances of sampled class probabilities.

    .. math:: \alpha = S m, \qquad S + 1 = \frac{1 - \sum_c m_c^2}{\sum_c v_c},

    with m and v the mean and the variance of the probabilities over the members of an ensemble or
    the passes of a network. Where they disagree the strength S is small. Every uncertainty of a
    Dirichlet is then that of the ensemble, in closed form.

    Parameters
    ----------
    estimator : classifier with ``sample_proba``, optional
        A `DeepEnsemble` or an `MCDropout`; None is ``DeepEnsemble()``. A copy is fitted; one in
        `sklearn.frozen.FrozenEstimator` is used as it is.

    Attributes
    ----------
    classes_, estimator_, n_features_in_
        As of `MaxSoftmax`.

    Raises
    ------
    TypeError
        From ``fit``: the estimator has no method ``sample_proba``.

    Notes
    -----
    The strength lies between 0.05 and a million. A small one alone says little: for a sure mean a
    small disagreement is large, so inputs are ranked by the mutual information.

    References
    ----------
    Minka, "Estimating a Dirichlet distribution" (2000), section 1, moments as starting point; of
    ensembles: Malinin, Mlodozeniec, Gales, "Ensemble distribution distillation", ICLR (2020).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import ExtraTreesClassifier
    >>> from dipedl.baselines import DeepEnsemble, EnsembleDirichlet
    >>> X, y = load_iris(return_X_y=True)
    >>> ensemble = DeepEnsemble(ExtraTreesClassifier(20, max_depth=3))
    >>> model = EnsembleDirichlet(ensemble).fit(X, y)
    >>> model.predict_dirichlet(X[:1]).mean.round(1)
    array([[1., 0., 0.]])
    """

    def _template(self) -> Any:
        return DeepEnsemble() if self.estimator is None else self.estimator

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        if not hasattr(self._template(), "sample_proba"):
            raise TypeError(
                "estimator must have a method sample_proba, as DeepEnsemble and MCDropout have, "
                f"got {self.estimator!r}"
            )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of inputs X (n, d), the means of the Dirichlets, shape (n, k)."""
        return np.asarray(self.predict_dirichlet(X).mean)

    def predict_dirichlet(self, X: Any) -> Dirichlet:
        """The Dirichlet of each of the n inputs X (n, d)."""
        check_is_fitted(self, "estimator_")
        samples = self.estimator_.sample_proba(validate_inputs(self, X))
        return Dirichlet(concentration_of_samples(samples))

    def uncertainty(self, X: Any, kind: str = "epistemic") -> np.ndarray:
        """Uncertainty of each input X (n, d), shape (n,).

        The `kind` is one of the Dirichlet's: "epistemic", the mutual information of the label and
        its probabilities in nats, "vacuity", "total", "aleatoric", "differential_entropy".
        """
        check_choice("kind", kind, DIRICHLET_KINDS)
        return np.asarray(getattr(self.predict_dirichlet(X), kind))
