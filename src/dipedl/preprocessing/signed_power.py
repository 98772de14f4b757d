"""Powers of features, which shorten long tails."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..maths.arrays import check_number

__all__ = ["SignedPower"]


class SignedPower(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A power, or the logarithm, of the magnitude of each feature, with its sign.

    ``y = sign(x) |x|^e``, or ``y = sign(x) log(1 + |x|)`` for ``exponent=0``.

    After a ReLU most features are small and few are large; a Gaussian fits their square roots
    better. Nothing is learned, so zero stays zero and all folds have the same transform.

    Parameters
    ----------
    exponent : float, default=0.5
        e in [0, 1]: 1 changes nothing, 0 is the logarithm.

    Attributes
    ----------
    n_features_in_ : int
        Number of features p.

    See Also
    --------
    sklearn.preprocessing.PowerTransformer : fits a power to each feature (Yeo-Johnson).

    Notes
    -----
    The logarithm has slope 1 at zero whatever the unit: scale features so that one is a typical
    size. A power has an infinite slope there, and no unit.

    References
    ----------
    Tukey, "On the comparative anatomy of transformations", Ann. Math. Statist. 28 (1957); Yang,
    Liu, Xu, "Free lunch for few-shot learning: distribution calibration", ICLR (2021), equation 3,
    for features of a network.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.preprocessing import SignedPower
    >>> SignedPower(0.5).fit_transform(np.array([[9.0, -4.0, 0.0]]))
    array([[ 3., -2.,  0.]])
    """

    def __init__(self, exponent: float = 0.5) -> None:
        self.exponent = exponent

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check features X (n, p); there is nothing to learn.

        Raises
        ------
        ValueError
            If X is not finite or the exponent is out of its range.
        """
        check_number("exponent", self.exponent, "in [0, 1]", lambda x: 0 <= x <= 1)
        validate_data(self, X, dtype=np.float64)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Powers of features X (n, p), shape (n, p), float64."""
        check_is_fitted(self)
        X = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        size = np.abs(X)
        return np.asarray(np.sign(X) * (size**self.exponent if self.exponent else np.log1p(size)))
