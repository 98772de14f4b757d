"""The categorical-Dirichlet models that the theory of evidential learning starts from.

In the independent model (ICD) every observation has class probabilities of its own; in the tempered
one its likelihood is raised to the power nu; in the covariate-indexed one observations at the same
x share theirs.

References
----------
Carlotti, Gligić, Farahi, Definitions 2.1 and 2.6, Propositions 2.2 and 2.7, and the appendix on the
covariate-indexed model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dirichlet import Dirichlet
from ..maths.arrays import Array, class_indices

__all__ = ["covariate_indexed_posterior", "icd_posterior", "icd_predictive"]


def icd_posterior(y: np.ndarray, prior: Array, *, nu: float = 1.0) -> Dirichlet:
    """Posterior Dir(prior + nu e_y) of each observation's own class probabilities.

    Parameters
    ----------
    y : integer array, shape (n,)
        Class indices 0..k-1.
    prior : array-like, shape (k,)
        Prior concentration, > 0.
    nu : float, default=1.0
        Exponent of the likelihood, > 0; 1 is the untempered model.

    Examples
    --------
    >>> import numpy as np
    >>> icd_posterior(np.array([2]), np.ones(3), nu=10.0).concentration
    array([[ 1.,  1., 11.]])
    """
    prior = np.asarray(prior, dtype=np.float64)
    rows = np.broadcast_to(prior, (len(y), len(prior)))
    labels = class_indices(y, len(rows), len(prior))
    return Dirichlet(rows, prior=prior).update(np.eye(len(prior))[labels], nu=nu)


def icd_predictive(prior: Array) -> np.ndarray:
    """Posterior predictive of a new observation, shape (k,): the prior mean, whatever was observed.

    The independent model shares nothing between observations, tempered or not.

    Parameters
    ----------
    prior : array-like, shape (k,)
        Prior concentration, > 0.
    """
    return np.asarray(Dirichlet(np.asarray(prior, dtype=np.float64)[None, :]).mean[0])


def covariate_indexed_posterior(
    X: Any, y: np.ndarray, X_new: Any, prior: Array, *, nu: float = 1.0
) -> Dirichlet:
    """Posterior Dir(prior + nu * counts at x) for each row of X_new; its mean is the predictive.

    An x that was never observed keeps the prior, which is why the model is useless where x is
    continuous.

    Parameters
    ----------
    X : array-like, shape (n, d)
        Observed covariates; equal rows share their class probabilities.
    y : integer array, shape (n,)
        Class indices 0..k-1.
    X_new : array-like, shape (m, d)
        Covariates to ask about.
    prior : array-like, shape (k,)
        Prior concentration, > 0.
    nu : float, default=1.0
        Exponent of the likelihood, > 0.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0], [0], [1]]), np.array([0, 1, 1])
    >>> covariate_indexed_posterior(X, y, [[0], [1], [2]], np.ones(2)).concentration
    array([[2., 2.],
           [1., 2.],
           [1., 1.]])
    """
    prior = np.asarray(prior, dtype=np.float64)
    X, X_new = np.asarray(X), np.asarray(X_new)
    points, where = np.unique(np.concatenate([X, X_new]), axis=0, return_inverse=True)
    where = where.reshape(-1)
    counts = np.zeros((len(points), len(prior)))
    np.add.at(counts, (where[: len(X)], class_indices(y, len(X), len(prior))), 1.0)
    rows = np.broadcast_to(prior, (len(X_new), len(prior)))
    return Dirichlet(rows, prior=prior).update(counts[where[len(X) :]], nu=nu)
