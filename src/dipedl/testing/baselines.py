"""Public conformance checks for methods with an uncertainty: `UncertaintyClassifier`, tested.

Every check is a function ``check(estimator, X=None, y=None)`` that raises AssertionError, with the
method and what it did wrong, and else returns None. In a test suite::

    @pytest.mark.parametrize("check", dipedl.testing.baseline_checks(), ids=lambda c: c.__name__)
    def test_my_method(check):
        check(MyMethod())

X and y are the data to fit on, if the method needs some of a certain kind (images of some size);
there must be three classes or more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._baselines.answers import (
    check_asking_twice,
    check_dirichlet,
    check_higher_is_less_sure,
    check_labels_may_be_strings,
    check_probabilities,
    check_rows_are_answered_independently,
    check_uncertainty,
)
from ._baselines.fits import (
    check_fit_forgets,
    check_global_randomness_is_left_alone,
    check_it_is_an_uncertainty_classifier,
    check_parameters,
    check_pickle,
    check_same_seed_same_model,
    check_unfitted_is_refused,
    check_validation_data,
)
from ._baselines.inputs import (
    check_bad_labels_are_refused,
    check_inputs_are_left_alone,
    check_nan_and_inf_are_refused,
    check_number_types,
    check_wrong_width_is_refused,
)
from ._baselines.toy import METHODS

__all__ = ["BASELINE_CHECKS", "baseline_checks", "check_baseline"]


def check_baseline(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Run every check of `BASELINE_CHECKS` on a method.

    Parameters
    ----------
    estimator : classifier
        Unfitted, with ``fit``, ``predict``, ``predict_proba`` and ``uncertainty``; it is never
        changed. Whatever of its ``random_state`` parameters is None is set to 0.
    X : array-like, shape (n, d), optional
        Inputs; default: 60 rows of 16 numbers in [0, 1], which are 4 x 4 images.
    y : array-like, shape (n,), optional
        Labels of three classes or more, at least ten rows each.

    Raises
    ------
    AssertionError
        At the first check that fails.
    TypeError
        If a method is missing.

    Examples
    --------
    >>> from dipedl.baselines import MaxSoftmax
    >>> from dipedl.testing import check_baseline
    >>> check_baseline(MaxSoftmax())
    """
    for name in ("fit", *METHODS):
        if not hasattr(estimator, name):
            raise TypeError(
                "estimator must have the methods fit, predict, predict_proba and uncertainty, "
                f"got {estimator!r} without {name}"
            )
    for check in baseline_checks():
        check(estimator, X, y)


def baseline_checks() -> list[Callable[..., None]]:
    """The checks, for ``pytest.mark.parametrize``."""
    return list(BASELINE_CHECKS)


#: Every check, in the order in which `check_baseline` runs them.
BASELINE_CHECKS: list[Callable[..., None]] = [
    check_it_is_an_uncertainty_classifier,
    check_probabilities,
    check_uncertainty,
    check_higher_is_less_sure,
    check_dirichlet,
    check_asking_twice,
    check_rows_are_answered_independently,
    check_labels_may_be_strings,
    check_same_seed_same_model,
    check_fit_forgets,
    check_parameters,
    check_unfitted_is_refused,
    check_wrong_width_is_refused,
    check_nan_and_inf_are_refused,
    check_bad_labels_are_refused,
    check_inputs_are_left_alone,
    check_global_randomness_is_left_alone,
    check_number_types,
    check_validation_data,
    check_pickle,
]
