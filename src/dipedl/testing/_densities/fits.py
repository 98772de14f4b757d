"""What `fit`, `partial_fit`, `+`, weights, seeds, clones and pickles do."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import has_fit_parameter

from .._assertions import refuses, require, same
from .toy import fit, fitted, new, toy


def check_unfitted_is_refused(density: Any, random_state: int = 0) -> None:
    """`score_samples` before `fit` raises NotFittedError."""
    X, _ = toy(random_state)
    refuses(density, "unfitted, score_samples", NotFittedError, new(density).score_samples, X)


def check_training_order_is_irrelevant(density: Any, random_state: int = 0) -> None:
    """The order of the training rows does not matter.

    For a density with a ``random_state`` another order may act like another seed: then only the
    mean log-density must agree, to half a nat.
    """
    X, y = toy(random_state)
    order = np.random.default_rng(random_state).permutation(len(X))
    score = fitted(density, X, y, random_state).score_samples(X)
    again = fitted(density, X[order], y[order], random_state).score_samples(X)
    if _is_random(density):
        gap = abs(score.mean() - again.mean())
        require(gap < 0.5, f"{density}: training order moves the mean log-density by {gap:.3g}")
    else:
        same(again, score, 1e-8, f"{density}: fitted on permuted rows")


def check_partial_fit_equals_fit(density: Any, random_state: int = 0) -> None:
    """`partial_fit` in any chunks, one row each too, gives what `fit` gives; if offered."""
    if not hasattr(density, "partial_fit"):
        return
    X, y = toy(random_state)
    expected = fitted(density, X, y, random_state).score_samples(X)
    rng = np.random.default_rng(random_state)
    cuts = np.sort(rng.choice(np.arange(1, len(X)), 6, replace=False))
    for chunks in (cuts, np.arange(1, len(X))):
        model = new(density, random_state)
        for rows in np.split(rng.permutation(len(X)), chunks):
            _partial_fit(model, X[rows], y[rows], np.unique(y))
        what = f"{density}: partial_fit in {len(chunks) + 1} chunks against fit"
        same(model.score_samples(X), expected, 1e-9, what)


def check_merging_equals_fit(density: Any, random_state: int = 0) -> None:
    """``a + b`` is the density of the rows of both, and leaves a and b alone; if offered."""
    if not hasattr(density, "__add__"):
        return
    X, y = toy(random_state)
    X, y = np.concatenate([X, X[:10] + 1]), np.concatenate([y, y[:10]])
    expected = fitted(density, X, y, random_state).score_samples(X)
    a = fitted(density, X[:30], y[:30], random_state)
    b = fitted(density, X[30:], y[30:], random_state)
    before = a.score_samples(X), b.score_samples(X)
    same((a + b).score_samples(X), expected, 1e-9, f"{density}: a + b against fit")
    same((b + a).score_samples(X), expected, 1e-9, f"{density}: b + a against fit")
    for model, score in zip((a, b), before, strict=True):
        same(model.score_samples(X), score, 0.0, f"{density}: an operand after the merge")


def check_sample_weight_is_repetition(density: Any, random_state: int = 0) -> None:
    """A weight of m counts a row m times, and a weight of zero leaves it out; if weights are taken.

    Densities with a ``random_state`` are exempt: repeated rows may be another draw.
    """
    if not has_fit_parameter(density, "sample_weight") or _is_random(density):
        return
    X, y = toy(random_state)
    times = np.random.default_rng(random_state).integers(0, 4, len(X))
    X[times == 0] += 1e6
    expected = fitted(density, X.repeat(times, axis=0), y.repeat(times), random_state)
    model = new(density, random_state)
    model.fit(X, y, sample_weight=times.astype(np.float64))
    queries = X[times > 0]
    what = f"{density}: sample_weight against repeated rows"
    same(model.score_samples(queries), expected.score_samples(queries), 1e-8, what)


def check_same_seed_same_model(density: Any, random_state: int = 0) -> None:
    """Two fits with the same seed agree, and so do two calls of `score_samples`."""
    X, y = toy(random_state)
    model = fitted(density, X, y, random_state)
    score = model.score_samples(X)
    same(model.score_samples(X), score, 0.0, f"{density}: a second call of score_samples")
    again = fitted(density, X, y, random_state).score_samples(X)
    same(again, score, 1e-12, f"{density}: a second fit with the same seed")


def check_fit_forgets(density: Any, random_state: int = 0) -> None:
    """A second `fit` starts anew, whatever the number of features before."""
    X, y = toy(random_state)
    model = fitted(density, *toy(random_state + 1, p=3), random_state)
    fit(model, X, y)
    expected = fitted(density, X, y, random_state).score_samples(X)
    same(model.score_samples(X), expected, 1e-12, f"{density}: fitted a second time")


def check_clone_and_pickle(density: Any, random_state: int = 0) -> None:
    """A clone is unfitted and fits the same; a fitted density survives pickling."""
    X, y = toy(random_state)
    model = fitted(density, X, y, random_state)
    score = model.score_samples(X)
    copy = clone(model)
    refuses(density, "score_samples of a clone", NotFittedError, copy.score_samples, X)
    same(fit(copy, X, y).score_samples(X), score, 1e-12, f"{density}: a fitted clone")
    restored = pickle.loads(pickle.dumps(model))
    same(restored.score_samples(X), score, 0.0, f"{density}: after pickling")


def _partial_fit(model: Any, X: np.ndarray, y: np.ndarray, classes: np.ndarray) -> None:
    parameters = inspect.signature(model.partial_fit).parameters
    optional = {"y": y, "classes": classes}
    model.partial_fit(X, **{k: v for k, v in optional.items() if k in parameters})


def _is_random(density: Any) -> bool:
    names = density.get_params() if hasattr(density, "get_params") else ()
    return any(name.split("__")[-1] == "random_state" for name in names)
