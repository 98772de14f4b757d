"""Public conformance checks for densities: the contract of `dipedl.protocols.Density`, tested.

Every check is a function ``check(density, random_state=0)`` that raises AssertionError, with the
density and what it did wrong, and else returns None. In a test suite::

    @pytest.mark.parametrize("check", dipedl.testing.density_checks(), ids=lambda c: c.__name__)
    def test_my_density(check):
        check(MyDensity())
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._densities.fits import (
    check_clone_and_pickle,
    check_fit_forgets,
    check_merging_equals_fit,
    check_partial_fit_equals_fit,
    check_same_seed_same_model,
    check_sample_weight_is_repetition,
    check_training_order_is_irrelevant,
    check_unfitted_is_refused,
)
from ._densities.inputs import (
    check_constant_feature,
    check_inputs_are_left_alone,
    check_nan_and_inf_are_refused,
    check_number_types,
    check_wrong_width_is_refused,
)
from ._densities.scores import (
    check_far_points_score_lower,
    check_huge_query,
    check_integrates_to_one,
    check_memory_is_linear,
    check_one_finite_float_per_row,
    check_rows_are_scored_independently,
)

__all__ = ["DENSITY_CHECKS", "check_density", "density_checks"]


def check_density(density: Any, *, random_state: int = 0) -> None:
    """Run every check of `DENSITY_CHECKS` on a density.

    Parameters
    ----------
    density : density estimator
        Unfitted, with ``fit`` and ``score_samples``; it is never changed. An object that is no
        scikit-learn estimator is checked as `DIPClassifier` would use it, inside a `CustomDensity`.
        A class attribute ``normalized = False`` says that the density need not integrate to one.
    random_state : int, default=0
        Seed of the toy data, and of every ``random_state`` of the density that is None.

    Raises
    ------
    AssertionError
        At the first check that fails.
    TypeError
        If there is nothing to fit or to score with.

    Examples
    --------
    >>> from dipedl.density import GaussianDensity
    >>> from dipedl.testing import check_density
    >>> check_density(GaussianDensity())
    """
    for name in ("fit", "score_samples"):
        if not hasattr(density, name):
            raise TypeError(
                f"density must have the methods fit and score_samples, got {density!r} "
                f"without {name}"
            )
    for check in density_checks():
        check(density, random_state)


def density_checks() -> list[Callable[..., None]]:
    """The checks, for ``pytest.mark.parametrize``."""
    return list(DENSITY_CHECKS)


#: Every check, in the order in which `check_density` runs them.
DENSITY_CHECKS: list[Callable[..., None]] = [
    check_one_finite_float_per_row,
    check_unfitted_is_refused,
    check_rows_are_scored_independently,
    check_training_order_is_irrelevant,
    check_far_points_score_lower,
    check_memory_is_linear,
    check_integrates_to_one,
    check_partial_fit_equals_fit,
    check_merging_equals_fit,
    check_sample_weight_is_repetition,
    check_constant_feature,
    check_number_types,
    check_nan_and_inf_are_refused,
    check_wrong_width_is_refused,
    check_inputs_are_left_alone,
    check_same_seed_same_model,
    check_fit_forgets,
    check_clone_and_pickle,
    check_huge_query,
]
