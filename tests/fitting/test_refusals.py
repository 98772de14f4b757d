"""Rows that are refused are found among the others, whatever their place."""

from copy import deepcopy
from decimal import Decimal
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dipedl import DIPClassifier, OODDetector
from dipedl.density import GDADensity
from dipedl.evidence_model import predict_by_halves
from dipedl.inputs import NotComputableError

LARGE = 1e300


def doubled(asked):
    """A part that refuses batches with a large number, in our words or scikit-learn's."""

    def ask(X):
        asked.append(len(X))
        if np.isnan(X).any():
            raise NotComputableError(f"NaN at row {int(np.isnan(X).any(axis=1).argmax())}")
        if (X == LARGE).any():
            raise ValueError("Input X contains infinity or a value too large for dtype('float32').")
        return 2 * X[:, 0], None

    return ask


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_each_row_is_answered_as_it_is_alone(refused):
    X, asked = np.arange(1.0, len(refused) + 1)[:, None], []
    X[refused] = LARGE
    found, nothing = predict_by_halves(doubled(asked), X, lambda: (np.array([-1.0]), None))
    np.testing.assert_array_equal(found, np.where(refused, -1.0, 2 * X[:, 0]))
    assert nothing is None
    # Each refused row is met once in each of the halvings.
    assert len(asked) <= 1 + 2 * sum(refused) * np.ceil(np.log2(max(len(refused), 2)))


@given(st.integers(0, 19), st.integers(0, 19))
def test_a_row_that_is_not_finite_keeps_its_number(place, other):
    X = np.ones((20, 1))
    X[other] = LARGE
    X[place] = np.nan
    with pytest.raises(ValueError, match=f"NaN at row {place}"):
        predict_by_halves(doubled([]), X, lambda: (np.array([-1.0]), None))


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(("entry", "got"), [(np.nan, "NaN"), (np.inf, "inf")])
def test_a_finite_row_that_overflows_is_not_the_one_at_fault(form, entry, got):
    X = np.random.default_rng(0).normal(size=(60, 2)) * 1e-3
    model = DIPClassifier(density=GDADensity()).fit(form(X), np.arange(60) % 2)
    X[0, 0], X[5, 1] = np.finfo(float).max, entry
    with pytest.raises(ValueError, match=f"got {got} at row 5, column"):
        model.predict_ood(form(X))
    X[5, 1] = 0
    assert model.predict_ood(form(X[:6])).tolist()[0] == -1


def test_a_row_that_overflows_beside_one_that_is_imputed_is_unknown():
    X = np.random.default_rng(0).normal(size=(60, 2)) * 1e-3
    X[1, 1] = np.nan
    imputed = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())
    model = DIPClassifier(imputed, GDADensity()).fit(X, np.arange(60) % 2)
    X[0, 0] = np.finfo(float).max
    assert model.predict_ood(X)[:2].tolist() == [-1, 1]


def test_any_other_error_is_raised_at_once():
    asked = []

    def ask(X):
        asked.append(len(X))
        raise ValueError("unknown categories")

    with pytest.raises(ValueError, match="unknown categories"):
        predict_by_halves(ask, np.ones((8, 1)), lambda: (None,))
    assert asked == [8]


Y = np.arange(120) % 2
FRAME = pd.DataFrame(
    {
        "age": np.random.default_rng(0).normal(size=120) + Y,
        "dose": np.random.default_rng(1).normal(size=120),
        "kind": pd.Categorical(np.array(["u", "v", "w"])[np.arange(120) % 3]),
    }
)


@pytest.fixture(scope="module")
def of_table():
    encoded = make_column_transformer(
        (OneHotEncoder(), ["kind"]), (StandardScaler(), ["age", "dose"])
    )
    return DIPClassifier(make_pipeline(encoded, LogisticRegression()), GDADensity()).fit(FRAME, Y)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("kind", FRAME["kind"].cat.codes, "has numbers in column 'kind', and fit had text or cat"),
        ("age", "old", "has text or categories in column 'age', and fit had numbers there"),
        ("age", pd.Timestamp("2020-01-01"), "has dates in column 'age', and fit had numbers there"),
    ],
)
def test_a_column_of_another_type_than_in_the_fit_is_named(of_table, column, values, message):
    with pytest.raises(ValueError, match=message) as caught:
        of_table.predict(FRAME.assign(**{column: values}))
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_rows_of_the_same_new_level_are_refused_together(of_table):
    """One by one, a thousand rows of a new month took 20 seconds."""
    rows = FRAME.assign(kind=FRAME["kind"].cat.add_categories(["x", "y"]))
    rows.loc[::2, "kind"], rows.loc[1::4, "kind"] = "x", "y"
    asked, encode = [], OneHotEncoder.transform

    def counted(self, X):
        asked.append(len(X))
        return encode(self, X)

    with patch.object(OneHotEncoder, "transform", counted):
        P = of_table.predict_proba(rows)
    assert len(asked) <= 10
    alone = [of_table.predict_proba(rows.iloc[[i]])[0] for i in range(6)]
    np.testing.assert_allclose(P[:6], alone, rtol=1e-12)
    assert (P[::2] == 0.5).all() and (P[3::4] != 0.5).all()


ZONE = np.array(["1", "2", "3"])[np.arange(120) % 3]
ZONES = pd.Series(ZONE)
CARRIERS = {
    "int": ZONES.astype(int),
    "float": ZONES.astype(float),
    "object": ZONES.astype(int).astype(object),
    "Decimal": pd.Series([Decimal(f"{zone}.00") for zone in ZONE]),
    "int and float": pd.Series(
        [int(z) if i % 2 else float(z) for i, z in enumerate(ZONE)], dtype=object
    ),
    "Int64": ZONES.astype(int).astype("Int64"),
    "arrow": ZONES.astype(int).astype("int64[pyarrow]"),
    "category": ZONES.astype(int).astype("category"),
    "category of floats": ZONES.astype(float).astype("category"),
    "gaps": ZONES.astype(float).where(ZONES.index > 3),
    "text": ZONES.astype(object),
    "text of arrow": ZONES.astype("string[pyarrow]"),
    "category of text": ZONES.astype("category"),
}
TEXTS = {"text", "text of arrow", "category of text"}


@pytest.fixture(scope="module")
def of_zones():
    """Models of a column of codes by what the fit saw in it: texts, categories or plain numbers."""
    encoded = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["zone"]), remainder="passthrough"
    )
    model = DIPClassifier(make_pipeline(encoded, LogisticRegression()), GDADensity())
    return {of: clone(model).fit(zones(of), Y) for of in ("text", "int", "category of floats")}


def zones(carrier):
    return pd.DataFrame({"zone": CARRIERS[carrier], "age": FRAME["age"]})


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("fit", ["text", "int", "category of floats"])
def test_codes_of_the_other_type_are_refused_and_those_of_the_same_are_known(
    of_zones, fit, carrier
):
    model, X = of_zones[fit], zones(carrier)
    expected = model.predict_proba(zones(fit))
    if (carrier in TEXTS) == (fit == "text"):
        rows = X["zone"].notna().to_numpy()
        np.testing.assert_array_equal(model.predict_proba(X)[rows], expected[rows])
        return
    with pytest.raises(ValueError, match=f"in column 'zone'.* at row {4 * (carrier == 'gaps')}"):
        model.predict_proba(X)
    with pytest.raises(ValueError, match="in column 'zone'"):
        model.classifier_proba(X)


def test_one_number_among_texts_is_refused_with_its_row(of_zones):
    X = zones("text")
    X.loc[7, "zone"] = 2
    with pytest.raises(ValueError, match=r"has numbers in column 'zone'.* 2 at row 7"):
        of_zones["text"].predict(X)
    assert of_zones["text"].predict_ood(X.assign(zone=ZONES + ".0")).tolist() == [-1] * 120


def test_codes_of_the_other_type_in_polars_and_in_an_array_are_refused(of_zones):
    X = pl.DataFrame({"zone": CARRIERS["float"].to_numpy(), "age": FRAME["age"].to_numpy()})
    with pytest.raises(ValueError, match=r"numbers in column 'zone', .*, such as '1' .* 1.0 at"):
        of_zones["text"].predict_proba(X)
    with pytest.raises(ValueError, match="has text or categories in column 'zone'"):
        of_zones["int"].predict(X.with_columns(pl.col("zone").cast(int).cast(str)))
    encoded = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), [0]), remainder="passthrough"
    )
    model = DIPClassifier(make_pipeline(encoded, LogisticRegression()), GDADensity())
    model.fit(zones("float").to_numpy(), Y)
    with pytest.raises(ValueError, match="has text or categories in column 'x0'"):
        model.predict(zones("text").to_numpy())


@pytest.mark.parametrize(("fit", "other"), [("text", "int"), ("int", "text")])
def test_calibration_rows_of_the_other_type_are_refused(of_zones, fit, other):
    """An encoder that ignores new levels took thresholds from rows that it knew nothing of."""
    held_out = zones(other), Y
    with pytest.raises(ValueError, match=r"calibration rows: X has .* in column 'zone'"):
        deepcopy(of_zones[fit]).calibrate(*held_out)
    with pytest.raises(ValueError, match=r"calibration rows: X has .* in column 'zone'"):
        clone(of_zones[fit]).fit(zones(fit), Y, calibration=held_out)


def test_a_gap_that_numpy_made_text_is_a_gap_in_calibration_rows():
    rng = np.random.default_rng(0)
    texts = np.array(["u", "v", "w"])[rng.integers(0, 3, (120, 2))]
    gaps = texts.astype(object)
    gaps[::10, 0] = np.nan
    encoded = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    fit = DIPClassifier(encoded, GDADensity()).fit(gaps, Y)
    by_gap, by_text = (deepcopy(fit).calibrate(rows, Y) for rows in (gaps, gaps.astype(str)))
    np.testing.assert_array_equal(
        by_text.evidence_.held_out_.scores, by_gap.evidence_.held_out_.scores
    )


@pytest.mark.parametrize("gap", [None, np.nan])
def test_rows_in_a_list_keep_the_types_of_their_entries(gap):
    """NumPy makes texts of numbers beside texts, and "nan" of a gap."""
    rows = [[str(zone), float(age)] for zone, age in zip(ZONE, FRAME["age"], strict=True)]
    rows[3][0] = rows[7][1] = gap
    encoded = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), [0]), (SimpleImputer(), [1])
    )
    model = DIPClassifier(make_pipeline(encoded, LogisticRegression()), GDADensity())
    of_list, of_array = (clone(model).fit(X, Y) for X in (rows, np.array(rows, dtype=object)))
    expected = of_array.predict_proba(np.array(rows, dtype=object))
    for fitted in (of_list, of_array):
        np.testing.assert_array_equal(fitted.predict_proba(rows), expected)
    assert of_list.evidence_.columns_[1].kind == "number"


def test_beside_rows_of_weight_zero_a_row_keeps_its_number():
    X, w = np.random.default_rng(0).normal(size=(60, 2)), np.r_[0.0, 0.0, np.ones(58)]
    X[30, 1] = 1e6
    with pytest.warns(UserWarning, match=r"rows \[30\]"):
        DIPClassifier(density=GDADensity()).fit(X, np.arange(60) % 2, sample_weight=w)


def test_text_for_a_model_of_numbers_is_named():
    detector = OODDetector(DIPClassifier(density=GDADensity())).fit(FRAME[["age"]].to_numpy())
    with pytest.raises(ValueError, match="has text or categories in column 'x0', and fit had num"):
        detector.predict([["a"]])


def test_a_level_that_an_encoder_refuses_is_unknown_and_refuses_no_other_row(of_table):
    new = FRAME[:4].assign(kind=["u", "z", "w", "u"])
    P = of_table.predict_proba(new)
    np.testing.assert_array_equal(P[[0, 2, 3]], of_table.predict_proba(FRAME[:4])[[0, 2, 3]])
    np.testing.assert_array_equal(P[1:2], of_table.predict_proba(new[1:2]))
    assert of_table.uncertainty(new)[1] == 1 and of_table.predict_ood(new)[1] == -1


def test_an_error_about_columns_of_the_same_types_stays(of_table):
    with pytest.raises(ValueError, match="must be finite, got NaN at row 0"):
        of_table.predict(FRAME.assign(age=np.nan))
