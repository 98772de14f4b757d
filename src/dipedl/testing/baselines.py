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

import pickle
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import has_fit_parameter

from ..maths.seeds import seeded_clone
from ..protocols import EvidentialClassifier, UncertaintyClassifier
from ._shared import (
    check_fit_forgets,
    check_inputs_are_left_alone,
    check_nan_and_inf_are_refused,
    check_same_seed_same_model,
    check_unfitted_is_refused,
    check_wrong_width_is_refused,
    refuses,
    require,
    rows_are_independent,
    same,
)
from ._toys import METHODS, ROUNDING, fitted_method, images

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


def check_probabilities(estimator: Any, X: Any = None, y: Any = None) -> None:
    """`predict_proba` gives rows of the simplex, and `predict` the label of the largest."""
    X, y = images(X, y)
    model = fitted_method(estimator, X, y)
    for rows in (X, X[:1]):
        P, labels = model.predict_proba(rows), model.predict(rows)
        shape = (len(rows), len(np.unique(y)))
        require(
            P.shape == shape, f"{estimator}: predict_proba must have shape {shape}, got {P.shape}"
        )
        on_simplex = (P >= 0).all() and (np.abs(P.sum(axis=1) - 1) < 1e-6).all()
        require(on_simplex, f"{estimator}: predict_proba gives rows outside the simplex")
        require(
            labels.shape == (len(rows),) and np.isin(labels, y).all(),
            f"{estimator}: predict must give one label of y per row, got {labels}",
        )
        taken = P[np.arange(len(rows)), np.searchsorted(np.unique(y), labels)]
        require(
            (taken >= P.max(axis=1) - 1e-6).all(),
            f"{estimator}: predict differs from the largest of predict_proba",
        )


def check_uncertainty(estimator: Any, X: Any = None, y: Any = None) -> None:
    """`uncertainty` gives one finite float64 per row."""
    X, y = images(X, y)
    model = fitted_method(estimator, X, y)
    for rows in (X, X[:1]):
        u = model.uncertainty(rows)
        require(
            isinstance(u, np.ndarray) and u.dtype == np.float64 and u.shape == (len(rows),),
            f"{estimator}: uncertainty must be a float64 array of shape ({len(rows)},), got "
            f"{type(u).__name__} of {getattr(u, 'dtype', '?')}, {np.shape(u)}",
        )
        require(np.isfinite(u).all(), f"{estimator}: uncertainty of training rows is not finite")


def check_higher_is_less_sure(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Inputs half-way between the classes are more uncertain, on average, than training rows."""
    X, y = images(X, y)
    model = fitted_method(estimator, X, y)
    parts = [X[y == label] for label in np.unique(y)]
    between = np.mean([part[: min(map(len, parts))] for part in parts], axis=0)
    inside, outside = model.uncertainty(X).mean(), model.uncertainty(between).mean()
    require(
        inside < outside,
        f"{estimator}: uncertainty is {inside:.3g} on training rows and {outside:.3g} half-way "
        "between the classes; higher must be less sure",
    )


def check_dirichlet(estimator: Any, X: Any = None, y: Any = None) -> None:
    """The means of `predict_dirichlet` are `predict_proba`; if it is offered."""
    if not hasattr(estimator, "predict_dirichlet"):
        return
    X, y = images(X, y)
    model = fitted_method(estimator, X, y)
    require(isinstance(model, EvidentialClassifier), f"{estimator}: no EvidentialClassifier")
    answer = model.predict_dirichlet(X)
    shape = (len(X), len(np.unique(y)))
    require(
        answer.concentration.shape == shape,
        f"{estimator}: concentrations must have shape {shape}, got {answer.concentration.shape}",
    )
    what = f"{estimator}: predict_dirichlet(X).mean against predict_proba"
    same(answer.mean, model.predict_proba(X), 1e-9, what)


def check_asking_twice(estimator: Any, X: Any = None, y: Any = None) -> None:
    """The same question has the same answer, bit for bit."""
    X, y = images(X, y)
    model = fitted_method(estimator, X, y)
    for name in METHODS[1:]:
        ask = getattr(model, name)
        same(ask(X), ask(X), 0.0, f"{estimator}: {name} asked twice")


def check_rows_are_answered_independently(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Chunks and permutations of the rows change nothing but the last digits."""
    X, y = images(X, y)
    model = fitted_method(estimator, X, y)
    for name in METHODS[1:]:
        rows_are_independent(getattr(model, name), X, ROUNDING, f"{estimator}: {name}")


def check_labels_may_be_strings(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Other names for the same classes give the same answers, under these names."""
    X, y = images(X, y)
    classes, numbers = np.unique(y, return_inverse=True)
    names = np.array([f"class {i:03d}" for i in range(len(classes))])
    model, named = fitted_method(estimator, X, y), fitted_method(estimator, X, names[numbers])
    require(
        np.array_equal(named.classes_, names),
        f"{estimator}: classes_ must be {names.tolist()}, got {named.classes_}",
    )
    require(np.isin(named.predict(X), names).all(), f"{estimator}: predict must give strings")
    what = f"{estimator}: predict_proba with strings for labels"
    same(named.predict_proba(X), model.predict_proba(X), ROUNDING, what)


def check_it_is_an_uncertainty_classifier(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Fit returns the method itself, then an `UncertaintyClassifier` with sorted labels."""
    X, y = images(X, y)
    model = seeded_clone(estimator, 0)
    require(model.fit(X, y) is model, f"{estimator}: fit must return self")
    require(isinstance(model, UncertaintyClassifier), f"{estimator}: no UncertaintyClassifier")
    require(
        np.array_equal(model.classes_, np.unique(y)),
        f"{estimator}: classes_ must be {np.unique(y)}, got {model.classes_}",
    )


def check_parameters(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Parameters survive a round trip, a clone and a fit; the clone is unfitted."""
    X, y = images(X, y)
    model = seeded_clone(estimator, 0)
    before = _described(model)
    model.fit(X, y)
    require(_described(model) == before, f"{estimator}: fit changed the parameters")
    copy = clone(model)
    require(_described(copy) == before, f"{estimator}: a clone has other parameters")
    copy.set_params(**model.get_params(deep=False))
    require(_described(copy) == before, f"{estimator}: set_params(**get_params()) changes them")
    refuses(estimator, "predict_proba of a clone", NotFittedError, copy.predict_proba, X)


def check_global_randomness_is_left_alone(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Neither `fit` nor an answer draws from the global generators, nor seeds them."""
    X, y = images(X, y)
    fitted_method(estimator, X, y)  # whatever is imported on first use is imported
    before = _global_states()
    model = fitted_method(estimator, X, y)
    for name in METHODS:
        getattr(model, name)(X)
    moved = [name for name, state in _global_states().items() if state != before[name]]
    require(not moved, f"{estimator}: changed the global random state of {moved}")


def check_validation_data(estimator: Any, X: Any = None, y: Any = None) -> None:
    """``fit(X, y, validation=(X, y))`` works, where ``fit`` has that parameter."""
    X, y = images(X, y)
    model = seeded_clone(estimator, 0)
    if has_fit_parameter(model, "validation"):
        try:
            model.fit(X, y, validation=(X, y))
        except Exception as error:
            raise AssertionError(f"{estimator}: refuses validation data: {error!r}") from error


def check_pickle(estimator: Any, X: Any = None, y: Any = None) -> None:
    """A fitted model survives pickling."""
    X, y = images(X, y)
    model = fitted_method(estimator, X, y)
    restored = pickle.loads(pickle.dumps(model))
    for name in METHODS[1:]:
        what = f"{estimator}: {name} after pickling"
        same(getattr(restored, name)(X), getattr(model, name)(X), 0.0, what)


def _described(model: Any) -> dict[str, str]:
    return {name: repr(value) for name, value in model.get_params(deep=False).items()}


def _global_states() -> dict[str, str]:
    states = {"random": repr(random.getstate()), "numpy": repr(np.random.get_state())}  # noqa: NPY002
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        states["torch"] = repr(torch.get_rng_state().tolist())
        states["torch threads"] = repr(torch.get_num_threads())
    return states


def check_bad_labels_are_refused(estimator: Any, X: Any = None, y: Any = None) -> None:
    """No labels, too few labels, one class and real numbers raise ValueError."""
    X, y = images(X, y)
    cases = {
        "y=None": None,
        "a label too few": y[:-1],
        "a single class": np.full(len(y), y[0]),
        "labels that are real numbers": np.linspace(0.1, 1.9, len(y)),
    }
    for what, bad in cases.items():
        refuses(estimator, f"fit with {what}", ValueError, seeded_clone(estimator, 0).fit, X, bad)


def check_number_types(estimator: Any, X: Any = None, y: Any = None) -> None:
    """float32, Fortran order and lists are taken, and answered as the same numbers in float64."""
    X, y = images(X, y)
    X = X.astype(np.float32).astype(np.float64)
    expected = fitted_method(estimator, X, y).predict_proba(X)
    for given in (X.astype(np.float32), np.asfortranarray(X), X.tolist()):
        what = f"{type(given).__name__} of {getattr(given, 'dtype', 'numbers')}"
        try:
            P = fitted_method(estimator, given, y).predict_proba(given)
        except (TypeError, ValueError) as error:
            raise AssertionError(f"{estimator}: {what} is refused: {error}") from error
        # Trained in single precision, not only asked: there is more to lose.
        same(P, expected, 1e-2, f"{estimator}: {what} against an array of float64")


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
