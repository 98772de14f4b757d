"""What a fitted method predicts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...protocols import EvidentialClassifier
from .._assertions import require, same
from .toy import METHODS, ROUNDING, data, fitted


def check_probabilities(estimator: Any, X: Any = None, y: Any = None) -> None:
    """`predict_proba` gives rows of the simplex, and `predict` the label of the largest."""
    X, y = data(X, y)
    model = fitted(estimator, X, y)
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
    X, y = data(X, y)
    model = fitted(estimator, X, y)
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
    X, y = data(X, y)
    model = fitted(estimator, X, y)
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
    X, y = data(X, y)
    model = fitted(estimator, X, y)
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
    X, y = data(X, y)
    model = fitted(estimator, X, y)
    for name in METHODS[1:]:
        ask = getattr(model, name)
        same(ask(X), ask(X), 0.0, f"{estimator}: {name} asked twice")


def check_rows_are_answered_independently(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Chunks and permutations of the rows change nothing but the last digits."""
    X, y = data(X, y)
    model = fitted(estimator, X, y)
    order = np.random.default_rng(0).permutation(len(X))
    for name in METHODS[1:]:
        ask = getattr(model, name)
        whole = ask(X)
        for size in (1, 7):
            parts = [ask(X[i : i + size]) for i in range(0, len(X), size)]
            what = f"{estimator}: {name} in chunks of {size}"
            same(np.concatenate(parts), whole, ROUNDING, what)
        same(ask(X[order]), whole[order], ROUNDING, f"{estimator}: {name} of permuted rows")


def check_labels_may_be_strings(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Other names for the same classes give the same answers, under these names."""
    X, y = data(X, y)
    classes, numbers = np.unique(y, return_inverse=True)
    names = np.array([f"class {i:03d}" for i in range(len(classes))])
    model, named = fitted(estimator, X, y), fitted(estimator, X, names[numbers])
    require(
        np.array_equal(named.classes_, names),
        f"{estimator}: classes_ must be {names.tolist()}, got {named.classes_}",
    )
    require(np.isin(named.predict(X), names).all(), f"{estimator}: predict must give strings")
    what = f"{estimator}: predict_proba with strings for labels"
    same(named.predict_proba(X), model.predict_proba(X), ROUNDING, what)
