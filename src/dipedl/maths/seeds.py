"""Seeds of folds and of estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state


def clone_with_seed(estimator: Any, random_state: Any) -> Any:
    """A clone whose unseeded parts take their seed from `random_state`, unless that is None."""
    copy = clone(estimator)
    if random_state is None or isinstance(copy, FrozenEstimator):
        return copy
    unseeded = sorted(
        name
        for name, value in copy.get_params(deep=True).items()
        if name.split("__")[-1] == "random_state" and value is None
    )
    return copy.set_params(**dict.fromkeys(unseeded, seed(random_state)))


def seed(random_state: Any) -> int:
    """An int from None (always 0: folds are reproducible), an int, a RandomState or a Generator."""
    check_seed(random_state)
    if random_state is None:
        return 0
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    draw = getattr(random_state, "integers", getattr(random_state, "randint", None))
    return int(draw(2**31))  # type: ignore[misc]


def random_state_of(random_state: Any) -> np.random.RandomState:
    """Return scikit-learn's ``check_random_state``, for a Generator too, which draws its seed."""
    check_seed(random_state)
    if isinstance(random_state, np.random.Generator):
        random_state = seed(random_state)
    state: np.random.RandomState = check_random_state(random_state)
    return state


def check_seed(random_state: Any) -> None:
    """Raise TypeError or ValueError unless `seed` can make an int >= 0 of `random_state`."""
    draws = hasattr(random_state, "integers") or hasattr(random_state, "randint")
    if not (random_state is None or isinstance(random_state, int | np.integer) or draws):
        raise TypeError(
            f"random_state must be None, an int, a RandomState or a Generator, got {random_state!r}"
        )
    if isinstance(random_state, int | np.integer) and random_state < 0:
        raise ValueError(f"random_state must be >= 0, got {random_state!r}")
