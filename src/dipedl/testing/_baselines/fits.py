"""What `fit`, seeds, parameters, clones and pickles do."""

from __future__ import annotations

import pickle
import random
import sys
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import has_fit_parameter

from ...fitting.seeds import seeded_clone
from ...protocols import UncertaintyClassifier
from .._assertions import refuses, require, same
from .toy import METHODS, ROUNDING, data, fitted


def check_it_is_an_uncertainty_classifier(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Fit returns the method itself, then an `UncertaintyClassifier` with sorted labels."""
    X, y = data(X, y)
    model = seeded_clone(estimator, 0)
    require(model.fit(X, y) is model, f"{estimator}: fit must return self")
    require(isinstance(model, UncertaintyClassifier), f"{estimator}: no UncertaintyClassifier")
    require(
        np.array_equal(model.classes_, np.unique(y)),
        f"{estimator}: classes_ must be {np.unique(y)}, got {model.classes_}",
    )


def check_same_seed_same_model(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Two fits with the same seed agree."""
    X, y = data(X, y)
    one, two = fitted(estimator, X, y), fitted(estimator, X, y)
    for name in METHODS[1:]:
        what = f"{estimator}: {name} after a second fit with the same seed"
        same(getattr(two, name)(X), getattr(one, name)(X), ROUNDING, what)


def check_fit_forgets(estimator: Any, X: Any = None, y: Any = None) -> None:
    """A second `fit` starts anew."""
    X, y = data(X, y)
    model = fitted(estimator, X[::-1], np.roll(y, 1))
    model.fit(X, y)
    expected = fitted(estimator, X, y)
    for name in METHODS[1:]:
        what = f"{estimator}: {name} when fitted a second time"
        same(getattr(model, name)(X), getattr(expected, name)(X), ROUNDING, what)


def check_parameters(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Parameters survive a round trip, a clone and a fit; the clone is unfitted."""
    X, y = data(X, y)
    model = seeded_clone(estimator, 0)
    before = _described(model)
    model.fit(X, y)
    require(_described(model) == before, f"{estimator}: fit changed the parameters")
    copy = clone(model)
    require(_described(copy) == before, f"{estimator}: a clone has other parameters")
    copy.set_params(**model.get_params(deep=False))
    require(_described(copy) == before, f"{estimator}: set_params(**get_params()) changes them")
    refuses(estimator, "predict_proba of a clone", NotFittedError, copy.predict_proba, X)


def check_unfitted_is_refused(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Every question before `fit` raises NotFittedError."""
    X, y = data(X, y)
    model = seeded_clone(estimator, 0)
    for name in (*METHODS, "predict_dirichlet"):
        if hasattr(model, name):
            ask = getattr(model, name)
            refuses(estimator, f"unfitted, {name}", NotFittedError, ask, X)


def check_global_randomness_is_left_alone(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Neither `fit` nor an answer draws from the global generators, nor seeds them."""
    X, y = data(X, y)
    fitted(estimator, X, y)  # whatever is imported on first use is imported
    before = _global_states()
    model = fitted(estimator, X, y)
    for name in METHODS:
        getattr(model, name)(X)
    moved = [name for name, state in _global_states().items() if state != before[name]]
    require(not moved, f"{estimator}: changed the global random state of {moved}")


def check_validation_data(estimator: Any, X: Any = None, y: Any = None) -> None:
    """``fit(X, y, validation=(X, y))`` works, where ``fit`` has that parameter."""
    X, y = data(X, y)
    model = seeded_clone(estimator, 0)
    if has_fit_parameter(model, "validation"):
        try:
            model.fit(X, y, validation=(X, y))
        except Exception as error:
            raise AssertionError(f"{estimator}: refuses validation data: {error!r}") from error


def check_pickle(estimator: Any, X: Any = None, y: Any = None) -> None:
    """A fitted model survives pickling."""
    X, y = data(X, y)
    model = fitted(estimator, X, y)
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
