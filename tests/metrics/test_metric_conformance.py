"""Checks of every metric in the folder: a new file is picked up without an edit here."""

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from dipedl import metrics

FOLDER = Path(metrics.__file__).parent
FILES = sorted(set(FOLDER.glob("*.py")) - {FOLDER / "__init__.py", FOLDER / "metric.py"})
PUBLIC = [getattr(metrics, name) for name in metrics.__all__]
METRICS = [thing for thing in PUBLIC if hasattr(thing, "higher_is_better")]


def module_name(path):
    return ".".join(["dipedl.metrics", *path.relative_to(FOLDER).with_suffix("").parts])


SIGNATURES = {
    "id": ["y", "proba"],
    "ood": ["uncertainty_in", "uncertainty_out"],
    "risk": ["correct", "uncertainty"],
}
#: Kinds whose arrays describe different inputs.
SEPARATE = {"ood"}


def ordinary(kind, seed=0):
    """A random example with ties, of unequal lengths where the arrays are separate."""
    rng = np.random.default_rng(seed)
    proba = rng.integers(1, 5, size=(40, 3)).astype(float)
    proba /= proba.sum(axis=1, keepdims=True)
    return {
        "id": (rng.integers(3, size=40), proba),
        "ood": (rng.integers(0, 9, 40) / 8, rng.integers(3, 15, 30) / 8),
        "risk": (rng.random(40) < 0.7, rng.integers(0, 9, 40) / 8),
    }[kind]


def best(kind):
    y = np.arange(40) % 3
    return {
        "id": (y, np.eye(3)[y]),
        "ood": (np.arange(40.0), np.arange(40.0, 70.0)),
        "risk": (np.arange(40) < 25, np.arange(40.0)),
    }[kind]


def worst(kind):
    y = np.arange(40) % 3
    return {
        "id": (y, np.eye(3)[(y + 1) % 3]),
        "ood": (np.arange(30.0, 70.0), np.arange(30.0)),
        "risk": (np.arange(40) < 25, -np.arange(40.0)),
    }[kind]


def check_returns_a_float(fn):
    assert type(fn(*ordinary(fn.kind))) is float


def check_signature(fn):
    parameters = list(inspect.signature(fn).parameters.values())
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == SIGNATURES[fn.kind]
    assert all(p.default is not p.empty for p in parameters[len(positional) :])


def check_order_of_rows_is_irrelevant(fn):
    arrays = ordinary(fn.kind)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        together = rng.permutation(len(arrays[0]))
        shuffled = [
            a[rng.permutation(len(a))] if fn.kind in SEPARATE else a[together] for a in arrays
        ]
        np.testing.assert_allclose(fn(*shuffled), fn(*arrays), rtol=1e-12, atol=1e-13)


def check_direction_is_true(fn):
    sign = 1 if fn.higher_is_better else -1
    top, bottom = sign * fn(*best(fn.kind)), sign * fn(*worst(fn.kind))
    middle = [sign * fn(*ordinary(fn.kind, seed)) for seed in range(5)]
    assert top > max(middle)
    assert min(middle) > bottom


def check_inputs_are_left_alone(fn):
    arrays = ordinary(fn.kind)
    copies = [a.copy() for a in arrays]
    fn(*arrays)
    for a, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(a, copy)


def check_lists_and_dtypes_are_the_same(fn):
    arrays = ordinary(fn.kind)
    assert fn(*(a.tolist() for a in arrays)) == fn(*arrays)
    halves = [a.astype(np.float32) if a.dtype.kind == "f" else a for a in arrays]
    # compared with the same values in float64: rounding to float32 may move a score across an edge
    widened = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in halves]
    assert fn(*halves) == fn(*widened)


def check_nan_is_refused_by_name(fn):
    arrays = ordinary(fn.kind)
    for i, name in enumerate(SIGNATURES[fn.kind]):
        if arrays[i].dtype.kind == "f":
            broken = [a.copy() for a in arrays]
            broken[i].flat[3] = np.nan
            with pytest.raises(ValueError, match=rf"^{name} must .*(NaN|nan)"):
                fn(*broken)


def check_baseline_is_what_a_constant_score_gets(fn):
    if fn.baseline is not None:
        flat = [np.zeros(len(a)) for a in ordinary(fn.kind)]
        assert fn(*flat) == pytest.approx(fn.baseline(*ordinary(fn.kind)), rel=1e-12)


CHECKS = [check for name, check in list(globals().items()) if name.startswith("check_")]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("fn", METRICS, ids=lambda f: f.__name__)
def test_metric(fn, check):
    check(fn)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_examples_run(path):
    result = doctest.testmod(import_module(module_name(path)))
    assert result.attempted > 1 and result.failed == 0


def test_names_survive_the_import_of_their_files():
    for path in FILES:
        import_module(module_name(path))
    assert all(getattr(metrics, thing.__name__) is thing for thing in PUBLIC)
