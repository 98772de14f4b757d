"""A gap is a gap, whatever stands for it: NaN, None, pandas.NA, null of polars or of Arrow."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dipedl import DIPClassifier, DriftMonitor, OODDetector, baselines
from dipedl.density import GDADensity
from dipedl.inputs import validate_rows
from weekly import sample_of

NAMES = ["a", "b", "whole", "yes"]
rng = np.random.default_rng(0)
X = np.column_stack([rng.normal(size=(90, 2)), rng.integers(5, size=90), rng.integers(2, size=90)])
Y = (X[:, 0] + X[:, 2] > 2).astype(int)
GAPS = X.copy()
GAPS[::9, 1], GAPS[::7, 2], GAPS[::8, 3] = np.nan, np.nan, np.nan


def frame(rows):
    return pd.DataFrame(rows, columns=NAMES)


def nullable(rows):
    table = frame(rows).astype({"a": "Float64", "b": "Float64", "whole": "Int64"})
    table["yes"] = frame(rows).yes.map({0.0: False, 1.0: True}).astype("boolean")
    return table


def objects(gap):
    def made(rows):
        table = frame(rows).astype(object)
        return table.where(table.notna(), gap)

    return made


def arrow(rows):
    pytest.importorskip("pyarrow")
    return nullable(rows).convert_dtypes(dtype_backend="pyarrow")


def polars(rows):
    made = pytest.importorskip("polars").DataFrame(rows, schema=NAMES)
    return made.fill_nan(None)


def arrow_table(rows):
    return pytest.importorskip("pyarrow").table(nullable(rows))


KINDS = {
    "pandas": frame,
    "nullable": nullable,
    "objects with None": objects(None),
    "objects with NA": objects(pd.NA),
    "array with NA": lambda rows: objects(pd.NA)(rows).to_numpy(),
    "arrow": arrow,
    "table of arrow": arrow_table,
    "polars": polars,
}
FOREST = DIPClassifier(RandomForestClassifier(5, random_state=0), GDADensity(), random_state=0)
LINEAR = DIPClassifier(LogisticRegression(), GDADensity(), cv=2)


@pytest.fixture(scope="module")
def expected():
    return clone(FOREST).fit(GAPS, Y).predict_proba(GAPS)


@pytest.mark.parametrize("kind", sample_of(KINDS, 1, 2, 4, 5, 7))
def test_who_takes_gaps_gives_the_answers_of_nan(kind, expected):
    rows = KINDS[kind](GAPS)
    found = clone(FOREST).fit(rows, Y).predict_proba(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", sample_of(KINDS, 0, 2, 5))
@pytest.mark.parametrize("model", [LINEAR, OODDetector(LINEAR)], ids=["classifier", "detector"])
def test_who_takes_none_refuses_them_in_fit_and_in_answers(kind, model):
    rows, gaps = KINDS[kind](X), KINDS[kind](GAPS)
    with pytest.raises(
        ValueError, match=rf"must be finite, got NaN .*row 0, column ({NAMES[1]!r}|1); impute"
    ):
        clone(model).fit(gaps, Y)
    fitted = clone(model).fit(rows, Y)
    with pytest.raises(
        ValueError, match=rf"must be finite, got NaN .*row 0, column ({NAMES[1]!r}|1); impute"
    ):
        fitted.score_samples(gaps)


def test_what_has_no_gap_stays_as_it_is_and_the_given_table_is_not_changed():
    whole, gaps = nullable(X), objects(pd.NA)(GAPS)
    assert validate_rows(whole) is whole
    before = gaps.copy()
    assert validate_rows(gaps).isna().equals(gaps.isna())
    assert gaps.equals(before) and gaps.iloc[0, 1] is pd.NA


def test_a_table_of_arrow_gives_the_answers_of_its_rows_in_pandas():
    pa = pytest.importorskip("pyarrow")
    rows = frame(GAPS).assign(job=["cook", "clerk", None] * 30)
    rows["city"] = pd.Categorical(["x", "y", "y"] * 30)
    steps = ColumnTransformer(
        [("words", OneHotEncoder(), ["job", "city"]), ("gaps", SimpleImputer(), NAMES)]
    )
    model = DIPClassifier(make_pipeline(steps, LogisticRegression()), GDADensity(), cv=2)
    table = pa.table({name: pa.array(rows[name], from_pandas=True) for name in rows})
    of_pandas, of_arrow = clone(model).fit(rows, Y), clone(model).fit(table, pa.array(Y))
    assert list(of_arrow.feature_names_in_) == list(rows)
    for method in ("predict_proba", "p_value", "predict_set", "predict"):
        found = getattr(of_arrow, method)(table)
        np.testing.assert_array_equal(found, getattr(of_pandas, method)(rows))
    for given in (table, rows):
        assert str(of_arrow.explain(given.slice(0, 1) if given is table else given[:1])[0])
        report = DriftMonitor(window=30).fit(of_arrow, table).update(of_arrow, given)
        assert report.window.changed == ()
    detector = OODDetector(DIPClassifier(density=GDADensity())).fit(table.select(NAMES[:1]))
    np.testing.assert_array_equal(
        detector.predict(table.select(NAMES[:1])), detector.predict(rows[NAMES[:1]])
    )


def test_text_with_gaps_of_a_nullable_type():
    """scikit-learn's encoder refuses pandas.NA, and knows NaN as a level."""
    job = pd.Series(["cook", "clerk", None] * 30)
    pipeline = make_pipeline(
        ColumnTransformer([("job", OneHotEncoder(), ["job"]), ("a", "passthrough", ["a"])]),
        LogisticRegression(),
    )
    answers = [
        DIPClassifier(pipeline, GDADensity(), cv=2).fit(rows, Y).predict_proba(rows)
        for kind in (object, "string")
        for rows in [frame(X).assign(job=job.where(job.notna(), np.nan).astype(kind))]
    ]
    np.testing.assert_allclose(*answers)


def test_the_text_that_numpy_makes_of_a_gap_is_a_gap_unless_the_fit_had_such_a_level():
    jobs = np.array([["cook"], ["clerk"], [np.nan]] * 30, dtype=object)
    model = DIPClassifier(make_pipeline(OneHotEncoder(), LogisticRegression()), GDADensity(), cv=2)
    for rows, names in ((jobs, "missing"), (jobs.astype(str), "= 'nan'")):
        clf = clone(model).fit(rows, Y)
        found = clf.predict_proba(jobs.astype(str))
        np.testing.assert_array_equal(found, clf.predict_proba(rows))
        assert names in str(clf.explain(jobs.astype(str)[2:3])[0])


def labels(gap, kind=object):
    y = pd.Series(np.array(["no", "yes"], dtype=object)[Y])
    y[3] = gap
    return y.astype(kind)


@pytest.mark.parametrize(
    "y",
    [
        labels(None),
        labels(np.nan),
        labels(pd.NA),
        labels(None, "string"),
        labels(None, "category"),
        pd.Series(Y, dtype="Int64").mask(np.arange(90) == 3),
        np.where(np.arange(90) == 3, np.nan, Y),
    ],
    ids=["None", "NaN", "NA", "string", "category", "Int64", "float"],
)
def test_labels_with_gaps_are_refused_by_row(y):
    message = r"y must hold a label for each row.* 1 of 90 rows, the first at row 3; drop"
    fitted = clone(LINEAR).fit(X, Y)
    for ask in (
        lambda: clone(LINEAR).fit(X, y),
        lambda: fitted.calibrate(X, y),
        lambda: baselines.MaxSoftmax().fit(X, y),
        lambda: OODDetector().fit(X, y),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


def test_a_mask_over_labels_is_no_case_for_an_imputer():
    hidden = np.ma.array(Y, mask=np.arange(90) == 3)
    weights = np.ma.array(np.ones(90), mask=np.arange(90) == 3)
    fitted = clone(LINEAR).fit(X, Y)
    for name, ask in {
        "y": lambda: clone(LINEAR).fit(X, hidden),
        "calibration rows: y": lambda: clone(LINEAR).fit(X, Y, calibration=(X, hidden)),
        "sample_weight": lambda: fitted.calibrate(X, Y, weights),
    }.items():
        with pytest.raises(ValueError, match=rf"^{name} must not be masked.*rows out$"):
            ask()


DATED = frame(X).assign(when=pd.date_range("2020", periods=90))
KEPT = ("kept", "passthrough", ["a", "when"])
LEVELS = ("levels", OneHotEncoder(sparse_output=False), ["yes"])


@pytest.mark.parametrize(
    "steps",
    [
        ColumnTransformer([LEVELS], remainder="passthrough"),
        ColumnTransformer([LEVELS, KEPT]),
        ColumnTransformer([KEPT]).set_output(transform="pandas"),
    ],
    ids=["remainder", "passthrough", "pandas"],
)
@pytest.mark.parametrize("kind", ["pandas", "objects", "polars"])
def test_dates_that_the_steps_let_through_are_refused_by_name(steps, kind):
    """scikit-learn reads those of polars as microseconds."""
    table = DATED.assign(when=DATED.when.dt.date) if kind == "objects" else DATED
    if kind == "polars":
        table = pytest.importorskip("polars").DataFrame(table.to_dict("list"))
    model = DIPClassifier(
        make_pipeline(clone(steps), RandomForestClassifier(3)), GDADensity(), cv=2
    )
    with pytest.raises(ValueError, match=r"dates in column 'when'.*month, weekday"):
        model.fit(table, Y)


def test_dates_that_the_steps_encode_go_through():
    encoded = ColumnTransformer([("when", OneHotEncoder(handle_unknown="ignore"), ["when"]), KEPT])
    encoded.set_params(transformers=[encoded.transformers[0], ("a", "passthrough", ["a"])])
    table = DATED.assign(when=DATED.when.dt.month.map("2020-{:02}-01".format).astype("M8[s]"))
    clf = DIPClassifier(make_pipeline(encoded, LogisticRegression()), GDADensity(), cv=2).fit(
        table, Y
    )
    assert np.isfinite(clf.score_samples(table)).all()


def test_dates_elsewhere_have_the_remedy_too():
    with pytest.raises(ValueError, match="dates in column 0, and a density"):
        DIPClassifier(RandomForestClassifier(3)).fit(DATED[["when"]].to_numpy(), Y)
    scaled = ColumnTransformer([("scaled", StandardScaler(), ["a", "when"])])
    for model in (DIPClassifier, baselines.MaxSoftmax):
        with pytest.raises(ValueError, match="dates in column 'when', and a density"):
            model(make_pipeline(scaled, LogisticRegression())).fit(DATED, Y)


def test_tables_of_other_libraries_are_refused_with_the_remedy():
    lazy = pytest.importorskip("polars").DataFrame(X, schema=NAMES).lazy()
    with pytest.raises(
        TypeError, match=r"got polars's LazyFrame; convert it first.*X\.collect\(\)"
    ):
        DIPClassifier().fit(lazy, Y)
