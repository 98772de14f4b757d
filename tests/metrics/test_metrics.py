"""Metrics against scikit-learn and plain loops on small data full of ties; what they refuse."""

import doctest
import inspect
import math
from importlib import import_module
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, average_precision_score, roc_auc_score, roc_curve

from dipedl import metrics
from dipedl.metrics import (
    accuracy,
    augrc,
    aupr_out,
    aurc,
    balanced_accuracy,
    brier_score,
    class_recall,
    ece,
    fpr_at_tpr,
    nll,
    ood_auroc,
    risk_coverage_curve,
)

#: Rounding of sums of at most a few hundred terms of order one.
EXACT = {"rtol": 1e-12, "atol": 1e-13}

_TIED = st.sampled_from([-np.inf, -2.5, -1.0, 0.0, 0.1, 0.5, 1.0, 3.0, np.inf])
_FREE = st.floats(-1e3, 1e3, width=32)


def scores(max_size=25):
    """Uncertainties (n,): either few values, so that ties abound, or any finite floats."""
    return st.one_of(
        st.lists(_TIED, min_size=1, max_size=max_size),
        st.lists(_FREE, min_size=1, max_size=max_size),
    ).map(np.array)


@st.composite
def labelled(draw):
    """Class indices (n,) and probabilities (n, k) with repeated rows and tied classes."""
    n, k = draw(st.integers(1, 25)), draw(st.integers(2, 5))
    counts = draw(
        st.lists(
            st.lists(st.integers(0, 4), min_size=k, max_size=k).filter(any), min_size=n, max_size=n
        )
    )
    y = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    counts = np.array(counts, dtype=float)
    return np.array(y), counts / counts.sum(axis=1, keepdims=True)


@st.composite
def answers(draw, max_n=25):
    """Return correctness (n,) and uncertainty (n,) of answers."""
    uncertainty = draw(scores(max_size=max_n))
    n = len(uncertainty)
    correct = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return np.array(correct), uncertainty


def stacked(u_in, u_out):
    """Labels (OOD = 1) and dense ranks for scikit-learn, which refuses infinities."""
    _, rank = np.unique(np.concatenate([u_in, u_out]), return_inverse=True)
    return np.repeat([0, 1], [len(u_in), len(u_out)]), rank


@given(labelled())
def test_accuracy_agrees_with_sklearn(data):
    y, proba = data
    np.testing.assert_allclose(accuracy(y, proba), accuracy_score(y, proba.argmax(1)), **EXACT)


@given(labelled())
def test_recall_agrees_with_a_loop(data):
    y, proba = data
    guess = [list(row).index(max(row)) for row in proba]
    recalls = class_recall(y, proba)
    assert recalls.shape == (proba.shape[1],)
    for k, recall in enumerate(recalls):
        of_class = [guess[i] == k for i in range(len(y)) if y[i] == k]
        expected = sum(of_class) / len(of_class) if of_class else np.nan
        np.testing.assert_allclose(recall, expected, **EXACT)
    np.testing.assert_allclose(balanced_accuracy(y, proba), np.nanmean(recalls), **EXACT)


@given(labelled())
def test_brier_score_agrees_with_a_loop(data):
    y, proba = data
    total = 0.0
    for label, row in zip(y, proba, strict=True):
        total += sum((p - (1.0 if c == label else 0.0)) ** 2 for c, p in enumerate(row))
    np.testing.assert_allclose(brier_score(y, proba), total / len(y), **EXACT)


@given(labelled())
def test_log_loss_agrees_with_a_loop_and_is_infinite_where_a_true_class_has_no_mass(data):
    y, proba = data
    masses = [row[label] for label, row in zip(y, proba, strict=True)]
    expected = math.inf if 0 in masses else -sum(map(math.log, masses)) / len(y)
    np.testing.assert_allclose(nll(y, proba), expected, **EXACT)


def test_log_loss_keeps_what_float32_and_sklearn_cannot():
    """A probability of 1e-300 is 690.8 nats; a clip at the machine epsilon would say 36."""
    assert nll([1], [[1.0, 1e-300]]) == pytest.approx(300 * math.log(10), rel=1e-12)
    assert math.copysign(1, nll([0, 1], np.eye(2))) == 1  # 0.0, not -0.0


def naive_ece(y, proba, n_bins):
    """Bin by bin: confidences in (b/n_bins, (b+1)/n_bins]; all positive, so bin 0 needs no care."""
    confidence, total = proba.max(axis=1), 0.0
    for b in range(n_bins):
        inside = [i for i, c in enumerate(confidence) if b / n_bins < c <= (b + 1) / n_bins]
        if b == n_bins - 1:  # sums of floats may end a rounding above 1
            inside += [i for i, c in enumerate(confidence) if c > 1]
        if inside:
            acc = np.mean([proba[i].argmax() == y[i] for i in inside])
            total += len(inside) / len(y) * abs(acc - np.mean(confidence[inside]))
    return total


@given(labelled(), st.integers(1, 30))
def test_calibration_error_agrees_with_a_loop(data, n_bins):
    np.testing.assert_allclose(ece(*data, n_bins=n_bins), naive_ece(*data, n_bins), **EXACT)
    np.testing.assert_allclose(ece(*data), naive_ece(*data, 15), **EXACT)


def binary(confidence, hit):
    """Labels and probabilities with these confidences (all > 1/2) and these hits."""
    c = np.asarray(confidence, dtype=float)
    return 1 - np.asarray(hit, dtype=int), np.column_stack([c, 1 - c])


@pytest.mark.parametrize("n_bins", [2, 3, 7, 15, 59])
def test_an_edge_belongs_to_the_bin_below(n_bins):
    """A hit on the edge and a miss just below cancel in one bin; a miss just above is apart."""
    for i in range(n_bins // 2 + 1, n_bins):
        edge = i / n_bins
        below = ece(*binary([edge, np.nextafter(edge, 0)], [True, False]), n_bins=n_bins)
        above = ece(*binary([edge, np.nextafter(edge, 1)], [True, False]), n_bins=n_bins)
        assert below == pytest.approx(abs(0.5 - edge), abs=1e-12)
        assert above == pytest.approx(0.5, abs=1e-12)


SHARES = st.sampled_from([0.05, 0.3, 0.5, 0.8, 0.9, 0.95, 1.0])


@given(scores(), scores())
def test_auroc_agrees_with_sklearn(u_in, u_out):
    expected = roc_auc_score(*stacked(u_in, u_out))
    np.testing.assert_allclose(ood_auroc(u_in, u_out), expected, **EXACT)


@given(scores(), scores())
def test_aupr_agrees_with_sklearn(u_in, u_out):
    expected = average_precision_score(*stacked(u_in, u_out))
    np.testing.assert_allclose(aupr_out(u_in, u_out), expected, **EXACT)


@given(scores(), scores(), SHARES)
def test_fpr_agrees_with_sklearn(u_in, u_out, tpr):
    value = fpr_at_tpr(u_in, u_out, tpr=tpr)
    # by default sklearn drops thresholds on straight pieces of the curve, and the rate is off
    fpr, recall, _ = roc_curve(*stacked(u_in, u_out), drop_intermediate=False)
    np.testing.assert_allclose(value, fpr[np.argmax(recall >= tpr)], **EXACT)
    if tpr == 0.95:
        assert fpr_at_tpr(u_in, u_out) == value


def test_an_exact_share_is_enough():
    """19 of 20 is 95 %; asking for a hair more takes the twentieth as well."""
    u_in, u_out = [0.5], np.arange(20.0)
    assert fpr_at_tpr(u_in, u_out) == fpr_at_tpr(u_in, u_out, tpr=0.95) == 0.0
    assert fpr_at_tpr(u_in, u_out, tpr=np.nextafter(0.95, 1)) == 1.0


def curve_of_order(correct):
    """Error rates of answers already in order, one prefix at a time."""
    wrong = [not c for c in correct]
    return [sum(wrong[:m]) / m for m in range(1, len(wrong) + 1)]


def naive_curve(correct, uncertainty):
    """Mean over every order of the rows, each then sorted stably: ties come in every order."""
    curves = []
    for order in permutations(range(len(correct))):
        by_certainty = sorted(order, key=lambda i: uncertainty[i])
        curves.append(curve_of_order([correct[i] for i in by_certainty]))
    return np.mean(curves, axis=0)


@given(answers(max_n=6))
def test_curve_is_the_mean_over_all_orders_of_ties(data):
    curve = risk_coverage_curve(*data)
    np.testing.assert_allclose(curve.risk, naive_curve(*data), **EXACT)
    n = len(data[0])
    np.testing.assert_allclose(curve.coverage, [m / n for m in range(1, n + 1)], **EXACT)


@given(answers(max_n=6))
def test_areas_against_all_orders(data):
    correct, uncertainty = data
    expected = naive_curve(correct, uncertainty).mean()
    best = min(np.mean(curve_of_order(order)) for order in permutations(correct))
    np.testing.assert_allclose(aurc(correct, uncertainty), expected, **EXACT)
    np.testing.assert_allclose(aurc(correct, ~np.asarray(correct)), best, **EXACT)


@given(answers())
def test_generalised_area_agrees_with_the_auroc_of_sklearn(data):
    """Traub et al. 2024: errors that are ranked above right answers, and those among errors."""
    correct, uncertainty = data
    wrong, error_rate = ~correct, 1 - correct.mean()
    expected = error_rate**2 / 2
    if 0 < error_rate < 1:
        auroc = roc_auc_score(wrong, np.unique(uncertainty, return_inverse=True)[1])
        expected += (1 - auroc) * error_rate * (1 - error_rate)
    np.testing.assert_allclose(augrc(correct, uncertainty), expected, **EXACT)


@given(answers())
def test_without_ties_it_is_the_plain_curve(data):
    correct, uncertainty = data
    position = np.argsort(np.argsort(uncertainty, kind="stable"))
    ordered = correct[np.argsort(position)]
    np.testing.assert_allclose(
        risk_coverage_curve(correct, position).risk, curve_of_order(ordered), **EXACT
    )


P = [[0.5, 0.5], [0.2, 0.8]]
NAN, X = float("nan"), np.arange(4.0)


def of(proba):
    return brier_score(np.zeros(len(proba), dtype=int), proba)


def mean(x):
    return x.mean()


def two_samples(a, b):
    return 0.0


two_samples.kind = "ood"

#: Call, error, and a pattern with the named argument and what came.
CASES = [
    (lambda: brier_score([0], P), ValueError, "y and proba .*same length, got 1 and 2"),
    (lambda: brier_score([0, 2], P), ValueError, r"y must be in 0\.\.1 .*2 columns, got 0 to 2"),
    (lambda: brier_score([-1, 1], P), ValueError, r"y must be in 0\.\.1 .*-1 to 1"),
    (lambda: brier_score(["a", "b"], P), TypeError, "y must hold integer class indices.*<U1"),
    (lambda: brier_score([0.0, 1.0], P), TypeError, "y must hold integer.*float64"),
    (lambda: brier_score([True, False], P), TypeError, "y must hold integer.*bool"),
    (lambda: brier_score(np.eye(2, dtype=int), P), ValueError, r"y must .*\(n,\).*\(2, 2\)"),
    (lambda: brier_score(np.zeros(0, dtype=int), P), ValueError, "y must not be empty"),
    (lambda: brier_score([0, 0], [[1.0], [1.0]]), ValueError, r"proba must have .*two.*\(2, 1\)"),
    (lambda: brier_score([0, 1], [0.2, 0.8]), ValueError, r"proba must have shape \(n, k\)"),
    (lambda: of(np.zeros((0, 3))), ValueError, r"proba must not be empty.*\(0, 3\)"),
    (lambda: of([[0.5, 0.5], [0.5, 0.6]]), ValueError, "rows of proba must sum .*1.1 in row 1"),
    (lambda: of([[1.5, -0.5]]), ValueError, "proba must hold finite .*-0.5 in row 0"),
    (lambda: of([[NAN, 1.0], [0.5, 0.5]]), ValueError, "proba .*nan in row 0.*1 of 2 rows"),
    (lambda: of([[np.inf, 0.0]]), ValueError, "proba must hold finite"),
    (lambda: of([[0.5, 0.5], [1.0]]), ValueError, "proba must be an array.*ragged"),
    (lambda: of([["half", "half"]]), TypeError, "proba must hold real numbers.*<U4"),
    (lambda: of(np.ma.array(P, mask=np.eye(2, dtype=bool))), ValueError, "proba .*mask"),
    (lambda: ece([0, 1], P, n_bins=0), ValueError, "n_bins must be an integer >= 1, got 0"),
    (lambda: ece([0, 1], P, n_bins=15.0), TypeError, "n_bins must be an integer.*15.0"),
    (lambda: ood_auroc([0.0, NAN, NAN], [1.0]), ValueError, "uncertainty_in must .*2 NaN"),
    (lambda: ood_auroc([0.0], []), ValueError, "uncertainty_out must not be empty"),
    (lambda: ood_auroc([[0.0]], [1.0]), ValueError, r"uncertainty_in must have shape .*\(1, 1\)"),
    (lambda: ood_auroc([1j], [1.0]), TypeError, "uncertainty_in must hold real .*complex128"),
    (lambda: aurc([0, 1], [0.1, 0.2]), TypeError, "correct must be boolean.*int64"),
    (lambda: aurc([True], [0.1, 0.2]), ValueError, "correct and uncertainty .*got 1 and 2"),
    (lambda: fpr_at_tpr([0.0], [1.0], tpr=0), ValueError, r"tpr must be in \(0, 1\].*, got 0"),
    (lambda: fpr_at_tpr([0.0], [1.0], tpr=1.01), ValueError, r"tpr must be in \(0, 1\].*1.01"),
    (lambda: fpr_at_tpr([0.0], [1.0], tpr=NAN), ValueError, r"tpr must be in \(0, 1\].*, got nan"),
    (lambda: fpr_at_tpr([0.0], [1.0], tpr="95%"), TypeError, "tpr must be a number .*got '95%'"),
]


@pytest.mark.parametrize(("call", "error", "message"), CASES)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert type(caught.value) is error


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_softmax_of_any_precision_passes(rng, dtype):
    logits = rng.normal(size=(200, 10)).astype(dtype)
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert proba.dtype == dtype
    assert 0 < of(proba) < 2


@pytest.mark.parametrize("miss", [-2e-3, 2e-3])
def test_row_sums_off_by_more_than_float16_rounding_are_refused(miss):
    with pytest.raises(ValueError, match="sum to 1"):
        of([[0.5, 0.5 + miss]])
    assert of([[0.5, 0.5 + miss / 4]]) > 0


def test_any_array_like_of_numbers_passes():
    assert ood_auroc((1, 2), np.array([3], dtype=np.uint8)) == 1
    assert ood_auroc([False, True], [True]) == 0.75
    assert brier_score(np.array([0, 1], dtype=np.uint64), P) == pytest.approx(0.29)


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
