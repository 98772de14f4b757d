"""Toy data, a thing under test fitted on them, and the checks that densities and methods share."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from ..density.base import as_density
from ..maths.seeds import clone_with_seed

METHODS = ("predict", "predict_proba", "uncertainty")


def two_classes(seed: int, n: int = 80, p: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping classes with unlike units: X (n, p) and labels y (n,)."""
    y = np.arange(n) % 2
    noise = np.random.default_rng(seed).normal(size=(n, p))
    return noise * np.linspace(0.5, 2.0, p) + np.where(y, 1.5, -1.5)[:, None], y


def images() -> tuple[np.ndarray, np.ndarray]:
    """60 rows of three classes: noise about one 4 x 4 image each."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    centres = rng.uniform(0.1, 0.9, size=(3, 16))
    return np.clip(centres[y] + rng.normal(scale=0.05, size=(60, 16)), 0, 1), y


def fit(model: Any, X: Any, y: Any) -> Any:
    """Fit a model, with labels if it takes them."""
    return model.fit(X, y) if has_fit_parameter(model, "y") else model.fit(X)


@dataclass(frozen=True, eq=False)
class Subject:
    """A density or a method under test, with data to fit it on.

    `new` makes an unfitted copy, `methods` are what a fitted copy answers, the last of them its
    scores; `other` is another data set, `queries` are rows to ask about, `types` make other inputs
    of X. `rounding` is what two equal fits may differ by, `of_type` what fits to another type of
    number may. The copy that is fitted on X is fitted once, for all checks.
    """

    thing: Any
    X: np.ndarray
    y: np.ndarray
    new: Callable[[], Any]
    other: tuple[np.ndarray, np.ndarray]
    queries: np.ndarray
    types: tuple[Callable[[np.ndarray], Any], ...]
    methods: tuple[str, ...]
    rounding: float
    of_type: float
    allows_nan: bool = False
    _fitted: list[Any] = field(default_factory=list)

    @classmethod
    def of_density(cls, density: Any) -> Subject:
        """Return a density on two classes of a plane."""
        X, y = two_classes(0)
        far = np.concatenate([X, 3 * X[:20], X[:3] + 1e4])
        types = (np.float32, np.float16, np.int64)
        convert = [lambda X, to=to: (8 * X).astype(to) for to in types]
        return cls(
            thing=density,
            X=X,
            y=y,
            new=lambda: as_density(density, 0),
            other=two_classes(1, p=3),
            queries=far,
            types=(*convert, np.asfortranarray, np.ndarray.tolist),
            methods=("score_samples",),
            rounding=1e-12,
            of_type=1e-6,
        )

    @classmethod
    def of_method(cls, estimator: Any, X: Any = None, y: Any = None) -> Subject:
        """Return a method with an uncertainty, on data of its own or on images."""
        X, y = images() if X is None else (np.array(X, dtype=np.float64), np.array(y))
        return cls(
            thing=estimator,
            X=X,
            y=y,
            new=lambda: clone_with_seed(estimator, 0),
            other=(X[::-1], np.roll(y, 1)),
            queries=X[:20],
            types=(lambda X: X.astype(np.float32), np.asfortranarray, np.ndarray.tolist),
            methods=METHODS,
            rounding=1e-4,  # the last digits of a network in float32
            of_type=1e-2,  # trained in single precision, not only asked: there is more to lose
            allows_nan=get_tags(estimator).input_tags.allow_nan,
        )

    def fit_model(self, X: Any = None, y: Any = None) -> Any:
        """Return the copy fitted on X and y, not to be changed, or a new one fitted on others."""
        if X is not None:
            return fit(self.new(), X, y)
        if not self._fitted:
            self._fitted.append(fit(self.new(), self.X, self.y))
        return self._fitted[0]

    def answers(self, model: Any) -> dict[str, Callable[[Any], np.ndarray]]:
        """Return the methods of a fitted copy that answer with numbers, by name."""
        return {name: getattr(model, name) for name in self.methods if name != "predict"}


def conformance(check: Callable[[Subject], None]) -> Callable[..., None]:
    """Make a check of a `Subject` one of a density or a method, which its error names."""

    @wraps(check)
    def run(thing: Any, *data: Any) -> None:
        of = Subject.of_method if hasattr(thing, "uncertainty") else Subject.of_density
        subject = thing if isinstance(thing, Subject) else of(thing, *data)
        try:
            check(subject)
        except AssertionError as error:
            raise AssertionError(f"{subject.thing}: {error}") from error

    return run


def require(condition: Any, message: str) -> None:
    """Raise AssertionError unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def same(got: Any, expected: Any, tolerance: float, what: str) -> None:
    """Raise AssertionError unless the numbers agree, relatively or absolutely."""
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance, err_msg=what)


def refuses(what: str, error: type[Exception], function: Callable[..., Any], *args: Any) -> None:
    """Raise AssertionError unless the call raises that error."""
    try:
        function(*args)
    except error:
        return
    except Exception as other:
        raise AssertionError(f"{what} must raise {error.__name__}, got {other!r}") from other
    raise AssertionError(f"{what} must raise {error.__name__}, but it passed")


@conformance
def check_one_finite_float_per_row(s: Subject) -> None:
    """Fit returns the thing itself; scores are float64, shape (n,), all finite."""
    model, name = s.new(), s.methods[-1]
    require(fit(model, s.X, s.y) is model, "fit must return self")
    for rows in (s.X, s.X[:1]):
        score = getattr(model, name)(rows)
        require(
            isinstance(score, np.ndarray)
            and score.dtype == np.float64
            and score.shape == (len(rows),),
            f"{name} of {len(rows)} rows must be a float64 array of shape ({len(rows)},), got "
            f"{type(score).__name__} of {getattr(score, 'dtype', '?')}, {np.shape(score)}",
        )
        require(np.isfinite(score).all(), f"{name} of training rows is not finite")


@conformance
def check_unfitted_is_refused(s: Subject) -> None:
    """Every question before `fit` raises NotFittedError, also to a clone of a fitted model."""
    for model in (s.new(), clone(s.fit_model())):
        for name in (*s.methods, "predict_dirichlet"):
            if hasattr(model, name):
                refuses(f"unfitted, {name}", NotFittedError, getattr(model, name), s.X)


@conformance
def check_rows_are_independent(s: Subject) -> None:
    """Chunks and permutations of the rows change nothing."""
    order = np.random.default_rng(0).permutation(len(s.queries))
    for name, ask in s.answers(s.fit_model()).items():
        whole = ask(s.queries)
        for size in (1, 7):
            parts = [ask(s.queries[i : i + size]) for i in range(0, len(order), size)]
            what = f"{name} of rows in chunks of {size}"
            same(np.concatenate(parts), whole, s.rounding, what)
        same(ask(s.queries[order]), whole[order], s.rounding, f"{name} of permuted rows")


@conformance
def check_wrong_width_is_refused(s: Subject) -> None:
    """Another number of columns than in fit, or a single axis, raises ValueError."""
    X, model = s.X, s.fit_model()
    for bad in (X[:, :-1], np.column_stack([X, X[:, 0]]), X[0]):
        for name in s.methods:
            what = f"{name} of shape {bad.shape} after fit on {X.shape}"
            refuses(what, ValueError, getattr(model, name), bad)


@conformance
def check_nan_and_inf_are_refused(s: Subject) -> None:
    """NaN and infinity raise ValueError in fit and in every answer, unless its tags allow NaN."""
    if s.allows_nan:
        return
    model = s.fit_model()
    for value in (np.nan, np.inf, -np.inf):
        bad = s.X.copy()
        bad[3, 1] = value
        refuses(f"fit with {value}", ValueError, fit, s.new(), bad, s.y)
        for name in s.methods:
            refuses(f"{name} with {value}", ValueError, getattr(model, name), bad)


@conformance
def check_inputs_are_left_alone(s: Subject) -> None:
    """Neither `fit` nor an answer changes the arrays it was given."""
    X, y = s.X.copy(), s.y.copy()
    model = s.fit_model(X, y)
    for name in ("fit", *s.methods):
        if name != "fit":
            getattr(model, name)(X)
        unchanged = np.array_equal(X, s.X) and np.array_equal(y, s.y)
        require(unchanged, f"{name} changed X or y")


@conformance
def check_number_types(s: Subject) -> None:
    """Other types, Fortran order and lists are taken, and answered as the same float64 numbers."""
    references: dict[bytes, dict[str, Callable[[Any], np.ndarray]]] = {}
    for convert in s.types:
        inputs = convert(s.X)
        what = f"{type(inputs).__name__} of {getattr(inputs, 'dtype', 'numbers')}"
        wide = np.ascontiguousarray(inputs, dtype=np.float64)
        try:
            got = {name: ask(inputs) for name, ask in s.answers(s.fit_model(inputs, s.y)).items()}
        except (TypeError, ValueError) as error:
            raise AssertionError(f"{what} is refused: {error}") from error
        numbers = wide.tobytes()
        if numbers not in references:
            references[numbers] = s.answers(s.fit_model(wide, s.y))
        for name, ask in references[numbers].items():
            same(got[name], ask(wide), s.of_type, f"{name} of {what} against float64")


@conformance
def check_same_seed_same_model(s: Subject) -> None:
    """Two fits with the same seed agree, also of a clone, and so do two calls of a fitted model."""
    first = s.fit_model()
    one, two = s.answers(first), s.answers(fit(clone(first), s.X, s.y))
    for name, ask in one.items():
        answer = ask(s.X)
        same(ask(s.X), answer, 0.0, f"a second call of {name}")
        same(two[name](s.X), answer, s.rounding, f"{name} after a second fit with the same seed")


@conformance
def check_fit_forgets(s: Subject) -> None:
    """Check that a second `fit` starts anew, whatever the data before."""
    again = s.answers(fit(s.fit_model(*s.other), s.X, s.y))
    for name, ask in s.answers(s.fit_model()).items():
        same(again[name](s.X), ask(s.X), s.rounding, f"{name} when fitted a second time")


@conformance
def check_pickle(s: Subject) -> None:
    """Check that a fitted model survives pickling."""
    model = s.fit_model()
    restored = s.answers(pickle.loads(pickle.dumps(model)))
    for name, ask in s.answers(model).items():
        same(restored[name](s.X), ask(s.X), 0.0, f"{name} after pickling")


#: What densities and methods share.
SHARED_CHECKS: list[Callable[..., None]] = [
    check_one_finite_float_per_row,
    check_unfitted_is_refused,
    check_rows_are_independent,
    check_number_types,
    check_nan_and_inf_are_refused,
    check_wrong_width_is_refused,
    check_inputs_are_left_alone,
    check_same_seed_same_model,
    check_fit_forgets,
    check_pickle,
]
