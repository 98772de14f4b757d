"""Windows: tests of columns and of p-values against scipy and naive loops; accuracy."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dipedl.apps.monitor.bets import ReferenceRanks
from dipedl.apps.monitor.windows import (
    Calibration,
    Rows,
    Sums,
    calibrations_of,
    compare_counts,
    count_columns,
    count_rows,
    kolmogorov,
    learn_column,
    learn_columns,
)
from dipedl.columns import Inputs


def test_p_values_of_columns_are_even_over_references_and_windows():
    rng = np.random.default_rng(1)
    p = []
    for _ in range(400):
        column = learn_column("x", rng.normal(size=400))
        p.append(change(column, rng.normal(size=300))[1])
    assert abs(np.mean(np.array(p) < 0.05) - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 400)


def change(column, values):
    return compare_counts(column.counts, count_rows(column, values))


def test_psi_against_a_loop():
    column = learn_column("c", np.array(list("aaabbc") * 20, dtype=object))
    window = count_rows(column, np.array(list("abcccd") * 10, dtype=object))
    assert window.tolist() == [10, 10, 30, 10, 0]
    n, m, psi = 120 + 2.5, 60 + 2.5, 0.0
    for before, here in zip([60, 40, 20, 0, 0], [10, 10, 30, 10, 0], strict=True):
        q, p = (here + 0.5) / m, (before + 0.5) / n
        psi += (q - p) * np.log(q / p)
    assert compare_counts(column.counts, window)[0] == pytest.approx(psi)


def test_a_rare_new_level_once_is_no_change_but_often_is():
    column = learn_column("c", np.array(list("ab") * 300, dtype=object))
    assert change(column, np.array(list("ab") * 200 + ["z"], object))[1] > 0.001
    assert change(column, np.array(list("ab") * 200 + ["z"] * 40, object))[1] < 1e-6


@pytest.mark.parametrize("rows", [(20, 19, 18, 17, 13, 13, 9), (18, 16, 15, 13, 12, 9, 9)])
def test_a_new_level_once_in_a_long_window_is_no_change(rows):
    values = np.repeat(list("abcdefg"), rows).astype(object)
    window = np.append(np.tile(values, 14), "z")
    for column in (learn_column("c", values), Inputs.learn(pd.DataFrame({"c": values}))[0]):
        assert column.counts.tolist() == [*rows, 0, 0]
        assert change(column, window)[1] > 0.01


def test_levels_that_are_written_alike_are_counted_together():
    values = pd.Series([1, "1"] * 100, dtype=object)
    column = Inputs.learn(pd.DataFrame({"c": values}))[0]
    assert len(column.counts) == len(count_rows(column, values)) == 4


@pytest.mark.parametrize("size", [300, 20_000])
@pytest.mark.parametrize("moved", [0.0, 1.0])
def test_a_window_of_any_size_shows_a_change_and_no_other(size, moved):
    rng = np.random.default_rng(2)
    column = learn_column("x", rng.normal(size=1000))
    p = change(column, rng.normal(size=size) + moved)[1]
    assert p < 1e-6 if moved else p > 0.01


@pytest.mark.parametrize(("size", "every"), [(500, 10), (20_000, 20)])
def test_gaps_where_the_reference_had_none_count_in_a_window_of_any_size(size, every):
    column = learn_column("x", np.arange(500.0))
    window = np.resize(np.arange(500.0), size)
    window[::every] = np.nan
    assert count_rows(column, window)[-1] == size // every
    assert change(column, window)[1] < 1e-6


def test_ranges_hold_equal_shares_and_their_upper_ends():
    column = learn_column("x", np.arange(1.0, 101.0))
    assert column.counts.tolist() == [11, *[10] * 8, 9, 0]
    assert count_rows(column, column.cuts[1:-1])[:10].tolist() == [1] * 9 + [0]


@pytest.mark.parametrize("form", [pd.DataFrame, np.asarray])
def test_a_column_with_numbers_in_a_few_of_many_rows_has_a_kind_and_ranges(form):
    X = np.full((30_001, 2), np.nan)
    X[:, 1], X[[8, 20, 29_999], 0] = np.arange(30_001), [1.0, 3.0, 2.0]
    column = Inputs.learn(form(X))[0]
    assert column.kind == "number" and 1 <= column.low < column.high <= 3
    assert column.counts.sum() == pytest.approx(30_001)
    assert column.counts[-1] == pytest.approx(29_998)
    assert compare_counts(column.counts, count_rows(column, X[500:800, 0]))[1] > 0.01
    assert compare_counts(column.counts, count_rows(column, np.full(300, 2.0)))[1] < 1e-9


def test_columns_of_tables_by_name_and_of_arrays_by_place():
    frame = pd.DataFrame({"a": [1.0, 2.0] * 30, "b": ["u", "v"] * 30})
    columns = learn_columns(frame)
    moved = frame[["b", "a"]].assign(extra=0)
    for column, counts in zip(columns, count_columns(columns, moved), strict=True):
        np.testing.assert_allclose(column.counts, counts)
    with pytest.raises(ValueError, match="lacks the columns \\['b'\\]"):
        count_columns(columns, frame[["a"]])
    with pytest.raises(ValueError, match="'a' must hold numbers"):
        count_columns(columns, frame.assign(a="text"))
    assert [column.name for column in learn_columns(np.zeros((3, 2)))] == ["x0", "x1"]


def test_distance_is_that_of_all_ranges():
    counts, sizes = np.array([30.0, 20, 50]), np.array([20.0, 30, 51])
    distance, p = kolmogorov(counts, ranks(sizes, both=True))
    assert distance == pytest.approx(0.3 - 20 / 101)
    assert p == pytest.approx(stats.kstwobign.sf(distance * np.sqrt(50)), rel=1e-6)
    low, p_low = kolmogorov(counts, ranks(sizes, both=False))
    assert (low, p_low) == (distance, pytest.approx(np.exp(-2 * distance**2 * 50)))
    # More typical rows differ from fresh ones alone.
    counts = np.array([5.0, 20, 75])
    assert kolmogorov(counts, ranks(sizes, both=True))[0] > 0.2
    assert kolmogorov(counts, ranks(sizes, both=False)) == (0, 1)


def ranks(sizes, both):
    return ReferenceRanks(np.zeros(2), np.zeros(2), sizes, both)


def labelled(labels):
    proba = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]])
    answers = np.array(["a", "b"], dtype=object)[proba.argmax(axis=1)]
    rows = Rows(np.ones(4), np.zeros(4), np.zeros(4), proba, proba.max(axis=1), answers)
    return Sums.of(rows, np.array(["a", "b"]), labels, calibrations_of(rows))


def test_accuracy_and_brier_of_the_labels_that_are_known():
    sums = labelled(["a", None, "b", "z"])
    assert sums.accuracy.value == pytest.approx(1 / 3)
    wilson = stats.binomtest(1, 3).proportion_ci(method="wilson")
    assert (sums.accuracy.low, sums.accuracy.high) == pytest.approx((wilson.low, wilson.high))
    # A class that the model does not know has the probability 0.
    scores = [0.1**2 * 2, 2 * 0.7**2, 0.4**2 + 0.6**2 + 1]
    assert sums.brier.value == pytest.approx(np.mean(scores))
    assert labelled(None).accuracy is None


@pytest.mark.parametrize("labels", [["a", "b"], [0, 1, 0, 1], [None, 1, None, 1]])
def test_labels_of_another_length_or_type_are_refused(labels):
    with pytest.raises(ValueError, match="labels"):
        labelled(labels)


def reference(n, weights=None):
    """Rows of which a confidence c is right with probability c squared; evidence takes a tenth."""
    rng = np.random.default_rng(4)
    confidence = rng.uniform(0.5, 1, n)
    right = 1.0 * (rng.random(n) < confidence**2)
    P = three_classes(0.9 * confidence)
    return Rows(
        np.ones(n), np.zeros(n), np.zeros(n), P, confidence, np.full(n, "a"), weights, right
    )


def three_classes(largest):
    return np.column_stack([largest, (1 - largest) / 2, (1 - largest) / 2])


def test_estimated_accuracy_is_the_share_right_at_the_same_confidence():
    known = reference(40_000)
    calibrations = calibrations_of(known)
    rng, n = np.random.default_rng(5), 2_000
    confidence = rng.uniform(0.6, 0.7, n)  # less sure than the reference
    P = three_classes(np.full(n, 0.55))
    rows = Rows(np.ones(n), np.zeros(n), np.zeros(n), P, confidence, np.full(n, "a"))
    sums = Sums.of(rows, np.array(list("abc")), None, calibrations)
    found = (sums + sums).estimate(calibrations)
    assert found.value == pytest.approx((confidence**2).mean(), abs=0.02) and found.rows == 2 * n
    # With the evidence the confidence is 0.9 times as large: 0.55 stands for 0.55 / 0.9.
    assert found.low == pytest.approx((0.55 / 0.9) ** 2, abs=0.03) and found.low < found.value
    sampling = calibrations[0](confidence).var() / 2 / n + known.correct.var() / 40_000
    assert found.high - found.value == pytest.approx(1.96 * np.sqrt(sampling), rel=0.1)


def test_a_calibration_is_isotonic_regression_and_weights_count_rows():
    times = np.random.default_rng(6).integers(1, 4, 60)
    one, every = reference(60, 1.0 * times), np.repeat(np.arange(60), times)
    parts = vars(reference(60)) | {"weights": None}
    again = Rows(**{name: v if v is None else v[every] for name, v in parts.items()})
    weighted, repeated = calibrations_of(one)[0], calibrations_of(again)[0]
    at = np.linspace(0.5, 1, 50)
    np.testing.assert_allclose(weighted(at), repeated(at))
    assert (np.diff(weighted(at)) >= 0).all()
    assert weighted(np.array([0.5, 1.0])).tolist() == [weighted.right[0], weighted.right[-1]]
    right = np.average(one.correct, weights=times)
    assert np.average(weighted(one.confidence), weights=times) == pytest.approx(right, abs=0.02)


def test_without_labels_of_the_reference_confidence_is_taken_at_its_word():
    sums = labelled(None)
    confidence = np.array([0.9, 0.8, 0.7, 0.6])
    found = sums.estimate((Calibration(np.array([0.0, 1]), np.array([0.0, 1]), 0.0),) * 2)
    assert found.value == pytest.approx(confidence.mean())
    half = stats.norm.ppf(0.975) * confidence.std() / np.sqrt(4)
    assert found.high - found.value == pytest.approx(half)


def texts_of_arrow(values):
    pa = pytest.importorskip("pyarrow")
    return values.astype(str).mask(values.isna()).astype(pd.ArrowDtype(pa.string()))


FORMS = {
    "objects": lambda values: values.astype(object),
    "objects with NA": lambda values: values.astype(object).mask(values.isna(), pd.NA),
    "nullable": lambda values: values.astype("Float64"),
    "decimals": lambda values: values.map(lambda v: None if np.isnan(v) else Decimal(str(v))),
    "texts": lambda values: values.astype(str).astype(object).mask(values.isna()),
    "texts of Arrow": texts_of_arrow,
}


@pytest.mark.parametrize("form", FORMS)
def test_numbers_have_the_same_ranges_whatever_their_type(form):
    values = pd.Series(np.random.default_rng(3).random(300).round(3))
    values[7] = np.nan
    plain = learn_column("x", values)
    made = learn_column("x", FORMS[form](values))
    np.testing.assert_array_equal(made.cuts, plain.cuts)
    np.testing.assert_array_equal(made.ranges, plain.ranges)
    np.testing.assert_allclose(count_rows(plain, FORMS[form](values)), plain.counts)


@pytest.mark.parametrize("labels", [["1.0", None, "2.0", "3.0"], ["1", None, " 2 ", "3"]])
def test_labels_are_right_however_a_number_is_written(labels):
    proba = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])
    answers = np.array(["1", "2", "2", "1"], object)
    rows = Rows(np.ones(4), np.zeros(4), np.zeros(4), proba, proba.max(axis=1), answers)
    sums = Sums.of(rows, np.array(["1", "2"]), labels, calibrations_of(rows))
    assert sums.accuracy.value == pytest.approx(2 / 3)


#: Ways to write the levels 1, 2 and 3.
LEVELS = {
    "ints": pd.Series(pd.Categorical([1, 2, 3])),
    "floats": pd.Series(pd.Categorical([1.0, 2.0, 3.0])),
    "texts": pd.Series(pd.Categorical(["1", "2", "3"])),
    "texts of floats": pd.Series(pd.Categorical(["1.0", "2.0", "3.0"])),
    "plain numbers": pd.Series([1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("here", LEVELS)
@pytest.mark.parametrize("before", LEVELS)
def test_a_category_is_the_same_however_its_numbers_are_written(before, here):
    column = learn_column("zone", LEVELS[before].sample(900, replace=True, random_state=0))
    window = LEVELS[here].sample(900, replace=True, random_state=1)
    psi, p = change(column, window)
    assert psi < 0.02 and p > 0.01
