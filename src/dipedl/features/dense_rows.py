"""Sparse features of few columns, as dense rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import validate_data

#: Sparse rows of more columns than this become components: as many as scikit-learn recommends for
#: latent semantic analysis.
COMPONENTS = 100


def is_narrow(X: Any) -> bool:
    """Return whether X (n, p) is sparse and of so few columns that it is made dense."""
    return bool(sparse.issparse(X) and X.shape[1] <= COMPONENTS)


class DenseRows(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """The same numbers as a dense array."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number of columns."""
        validate_data(self, X, skip_check_array=True)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """X (n, p), sparse or not, as a dense array (n, p)."""
        return X.toarray() if sparse.issparse(X) else np.asarray(X)
