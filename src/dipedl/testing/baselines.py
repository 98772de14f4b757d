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

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from ..protocols import EvidentialClassifier, UncertaintyClassifier
from ._shared import METHODS, SHARED_CHECKS, Subject, conformance, refuses, require, same

__all__ = ["baseline_checks", "check_baseline"]


def check_baseline(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Run every check of `baseline_checks` on a method, beside scikit-learn's ``check_estimator``.

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
    subject = Subject.of_method(estimator, X, y)
    for check in baseline_checks():
        check(subject)


@conformance
def check_probabilities(s: Subject) -> None:
    """`predict_proba` gives rows of the simplex, and `predict` the label of the largest."""
    model, classes = s.fit_model(), np.unique(s.y)
    require(isinstance(model, UncertaintyClassifier), "no UncertaintyClassifier")
    require(
        np.array_equal(model.classes_, classes),
        f"classes_ must be {classes}, got {model.classes_}",
    )
    for rows in (s.X, s.X[:1]):
        P, labels = model.predict_proba(rows), model.predict(rows)
        shape = (len(rows), len(classes))
        require(P.shape == shape, f"predict_proba must have shape {shape}, got {P.shape}")
        on_simplex = (P >= 0).all() and (np.abs(P.sum(axis=1) - 1) < 1e-6).all()
        require(on_simplex, "predict_proba gives rows outside the simplex")
        require(
            labels.shape == (len(rows),) and np.isin(labels, s.y).all(),
            f"predict must give one label of y per row, got {labels}",
        )
        taken = P[np.arange(len(rows)), np.searchsorted(classes, labels)]
        least = P.max(axis=1) - 1e-6
        require((taken >= least).all(), "predict differs from the largest of predict_proba")


@conformance
def check_higher_is_less_sure(s: Subject) -> None:
    """Inputs half-way between the classes are more uncertain, on average, than training rows."""
    model, parts = s.fit_model(), [s.X[s.y == label] for label in np.unique(s.y)]
    between = np.mean([part[: min(map(len, parts))] for part in parts], axis=0)
    inside, outside = model.uncertainty(s.X).mean(), model.uncertainty(between).mean()
    require(
        inside < outside,
        f"uncertainty is {inside:.3g} on training rows and {outside:.3g} half-way between the "
        "classes; higher must be less sure",
    )


@conformance
def check_dirichlet(s: Subject) -> None:
    """Check that the means of `predict_dirichlet` are `predict_proba`; if it is offered."""
    if not hasattr(s.thing, "predict_dirichlet"):
        return
    model = s.fit_model()
    require(isinstance(model, EvidentialClassifier), "no EvidentialClassifier")
    answer, shape = model.predict_dirichlet(s.X), (len(s.X), len(np.unique(s.y)))
    require(
        answer.concentration.shape == shape,
        f"concentrations must have shape {shape}, got {answer.concentration.shape}",
    )
    what = "predict_dirichlet(X).mean against predict_proba"
    same(answer.mean, model.predict_proba(s.X), 1e-9, what)


@conformance
def check_labels_may_be_strings(s: Subject) -> None:
    """Other names for the same classes give the same answers, under these names."""
    classes, numbers = np.unique(s.y, return_inverse=True)
    names = np.array([f"class {i:03d}" for i in range(len(classes))])
    model, named = s.fit_model(), s.fit_model(s.X, names[numbers])
    require(
        np.array_equal(named.classes_, names),
        f"classes_ must be {names.tolist()}, got {named.classes_}",
    )
    require(np.isin(named.predict(s.X), names).all(), "predict must give strings")
    what = "predict_proba with strings for labels"
    same(named.predict_proba(s.X), model.predict_proba(s.X), s.rounding, what)


@conformance
def check_bad_labels_are_refused(s: Subject) -> None:
    """No labels, too few labels, one class and real numbers raise ValueError."""
    y = s.y
    cases = {
        "y=None": None,
        "a label too few": y[:-1],
        "a single class": np.full(len(y), y[0]),
        "labels that are real numbers": np.linspace(0.1, 1.9, len(y)),
    }
    for what, bad in cases.items():
        refuses(f"fit with {what}", ValueError, s.new().fit, s.X, bad)


@conformance
def check_global_randomness_is_left_alone(s: Subject) -> None:
    """Neither `fit` nor an answer draws from the global generators, nor seeds them."""
    s.fit_model()  # whatever is imported on first use is imported
    before = _global_states()
    model = s.fit_model(s.X, s.y)
    for name in METHODS:
        getattr(model, name)(s.X)
    moved = [name for name, state in _global_states().items() if state != before[name]]
    require(not moved, f"changed the global random state of {moved}")


def _global_states() -> dict[str, str]:
    states = {"random": repr(random.getstate()), "numpy": repr(np.random.get_state())}  # noqa: NPY002
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        states["torch"] = repr(torch.get_rng_state().tolist())
        states["torch threads"] = repr(torch.get_num_threads())
    return states


@conformance
def check_validation_data(s: Subject) -> None:
    """``fit(X, y, validation=(X, y))`` works, where ``fit`` has that parameter."""
    model = s.new()
    if has_fit_parameter(model, "validation"):
        try:
            model.fit(s.X, s.y, validation=(s.X, s.y))
        except Exception as error:
            raise AssertionError(f"refuses validation data: {error!r}") from error


def baseline_checks() -> list[Callable[..., None]]:
    """Return all checks in the order of their runs, for ``pytest.mark.parametrize``."""
    return [
        *SHARED_CHECKS,
        check_probabilities,
        check_higher_is_less_sure,
        check_dirichlet,
        check_labels_may_be_strings,
        check_bad_labels_are_refused,
        check_global_randomness_is_left_alone,
        check_validation_data,
    ]
