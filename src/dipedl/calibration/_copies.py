"""Rows that occur more than once where values are so fine that none should."""

from __future__ import annotations

import warnings

import numpy as np

from .crossfit import row_hash

#: A column of which more than this share of different rows have a value of their own is continuous.
_FINE = 0.5
#: Of fewer different rows nothing can be said.
_FEWEST = 30


def warn_of_copies(Z: np.ndarray) -> int:
    """How many rows of features Z (n, p) are copies of others, with a warning if any is.

    None where no column is continuous: rows of a few categories repeat, and so will new ones.
    """
    first = np.unique(row_hash(Z), return_index=True)[1]
    copies = len(Z) - len(first)
    if not copies or not _continuous(Z[first]):
        return 0
    warnings.warn(
        f"{copies} of {len(Z)} rows are copies of other rows, and their values are too fine for "
        "chance: copies are kept together, so that no row is held out of a fit on its copy; drop "
        "duplicates, or count them by sample_weight",
        UserWarning,
        stacklevel=5,
    )
    return copies


def _continuous(Z: np.ndarray) -> bool:
    distinct = [len(np.unique(column)) for column in Z.T]
    return len(Z) >= _FEWEST and max(distinct) > _FINE * len(Z)
