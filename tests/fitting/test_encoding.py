"""The default encoding of tables with text, categories, booleans and gaps."""

import re
import warnings
from decimal import Decimal
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import categories, customers

from dipedl import DIPClassifier, OODDetector
from dipedl.density import GDADensity
from dipedl.features.encoding import table_encoding
from dipedl.features.transformer import fit_feature_transformer, refit_feature_transformer
from weekly import sample_of, sample_of_rows

BOOSTING = HistGradientBoostingClassifier(max_iter=15, random_state=0)
FRAME, Y = customers()
NEW, LABELS = customers(seed=1)


def boosting():
    return BOOSTING


def xgboost():
    return pytest.importorskip("xgboost").XGBClassifier(n_estimators=15, enable_categorical=True)


def lightgbm():
    return pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=15, verbose=-1, n_jobs=1)


def catboost():
    # a tuple: scikit-learn cannot clone what CatBoost makes of a list
    names = ("job", "region")
    options = {"iterations": 15, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return pytest.importorskip("catboost").CatBoostClassifier(cat_features=names, **options)


@pytest.mark.parametrize("make", sample_of([boosting, xgboost, lightgbm, catboost], 0, 3))
def test_a_classifier_that_takes_categories_gets_them_and_the_density_their_encoding(make):
    as_given = (lambda frame: frame) if make is catboost else categories
    clf = DIPClassifier(make(), GDADensity(), random_state=0).fit(as_given(FRAME), Y)
    assert list(clf.classes_) == ["good", "poor"]
    assert isinstance(clf.evidence_.features_["encode"], ColumnTransformer)
    assert clf.score(as_given(NEW), LABELS) > 0.7
    assert (clf.predict_ood(as_given(NEW)) == -1).mean() < 0.12
    unseen = as_given(NEW.assign(job="astronaut"))
    assert (clf.predict_ood(unseen) == -1).all()
    assert np.median(clf.uncertainty(unseen)) > 2 * np.median(clf.uncertainty(as_given(NEW)))


def test_a_new_category_does_not_take_the_code_of_another_one():
    """XGBoost reads codes: 'clerk' of other categories would be read as another job."""
    clf = DIPClassifier(xgboost(), GDADensity()).fit(categories(FRAME), Y)
    alone = categories(NEW.assign(job=np.where(np.arange(len(NEW)) % 2, NEW.job, "astronaut")))
    known = alone.job != "astronaut"
    np.testing.assert_array_equal(
        clf.classifier_proba(alone)[known], clf.classifier_proba(categories(NEW))[known]
    )
    gaps = alone.assign(job=alone.job.where(known))
    np.testing.assert_array_equal(clf.classifier_proba(alone), clf.classifier_proba(gaps))


def encoded(frame, estimator=BOOSTING):
    """The fitted default features of a frame, and what they make of it."""
    y = np.arange(len(frame)) % 2
    features = fit_feature_transformer(None, frame, y, None, 0, estimator)
    return features, features.transform(frame)


def named(features, frame, column):
    """Return by column what the encoder makes of a frame, before it is standardised."""
    inner = features["encode"]
    made = pd.DataFrame(inner.transform(frame), columns=inner.get_feature_names_out())
    return made.filter(like=column).drop(columns=f"new__{column}", errors="ignore")


def new_values(features, frame, column):
    """Return what the encoder says of new values in a column of a frame."""
    inner = features["encode"]
    made = pd.DataFrame(inner.transform(frame), columns=inner.get_feature_names_out())
    return made[f"new__{column}"]


def test_numbers_alone_are_standardised_as_ever():
    for frame in (FRAME[["age", "owner"]], FRAME[["age", "owner"]].astype(object)):
        features, Z = encoded(frame)
        assert type(features) is StandardScaler
        np.testing.assert_allclose(Z, StandardScaler().fit_transform(frame.astype(float)))


def test_gaps_get_the_median_and_a_column_of_their_own():
    features, _ = encoded(FRAME)
    income = named(features, FRAME, "income")
    gaps = FRAME.income.isna()
    np.testing.assert_array_equal(income["missing__missingindicator_income"], gaps)
    filled = income["filled__income"]
    assert filled[gaps].nunique() == 1
    assert filled[gaps].iloc[0] == pytest.approx(filled[~gaps].median())
    # in a column without gaps, a gap is far out
    late = named(features, NEW.assign(age=np.nan), "age")
    assert (late == 10).all().all() and late.shape[1] == 1


def test_levels_are_columns_and_a_new_one_is_none_of_them():
    features, _ = encoded(FRAME)
    jobs = named(features, NEW, "job")
    assert jobs.shape[1] == 4 and (jobs.sum(axis=1) == 1).all()
    unseen = NEW.assign(job="astronaut")
    assert (named(features, unseen, "job") == 0).all().all()
    assert (new_values(features, NEW, "job") == 0).all()
    for new in (unseen, NEW.assign(job=None)):
        assert (new_values(features, new, "job") == -10).all()


def test_gaps_are_a_level_of_a_text():
    frame = FRAME.assign(job=FRAME.job.where(FRAME.age > 30))
    features, _ = encoded(frame)
    jobs = named(features, frame, "job")
    assert jobs.shape[1] == 5 and (jobs.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(jobs.iloc[:, -1], frame.job.isna())
    assert (new_values(features, frame, "job") == 0).all()


def test_where_new_levels_are_usual_they_are_rare_ones():
    rng = np.random.default_rng(0)
    town = pd.Series(rng.choice(["york", "bath"], 300))
    town[:9] = [f"village {i}" for i in range(9)]  # 3 % of the rows have a town of their own
    features, _ = encoded(FRAME.assign(town=town))
    towns = named(features, FRAME.assign(town=["york", "village 3", "nowhere"] * 100), "town")
    assert towns.shape[1] == 2
    assert (towns.sum(axis=1) == [1, 0, 0] * 100).all()
    assert "new__town" not in features["encode"].get_feature_names_out()
    many = FRAME.assign(town=[f"town {i % 25}" for i in range(300)])
    features, _ = encoded(many)
    assert named(features, many, "town").shape[1] == 20


def test_identifiers_are_left_out_with_a_warning():
    frame = categories(FRAME).assign(customer=[f"c{i}" for i in range(300)])
    frame["customer"] = frame.customer.astype("category")
    with pytest.warns(UserWarning, match=r"\['customer'\] of levels that hardly come twice"):
        clf = DIPClassifier(lightgbm(), GDADensity()).fit(frame, Y)
    assert named(clf.evidence_.features_, frame, "customer").shape[1] == 0
    (finding,) = [f for f in clf.diagnose().findings if f.code == "density_features"]
    assert finding.severity == "note" and "does not see customer" in finding.text
    for word in ("numbers (age, owner)", "gaps get the median (income)", "level (job, region)"):
        assert word in finding.text


def test_columns_that_are_empty_or_constant():
    for empty in (None, np.nan):
        frame = FRAME.assign(empty=[empty] * 300, constant=3.0)
        features, Z = encoded(frame)
        assert np.isfinite(Z).all() and (new_values(features, frame, "empty") == 0).all()
    clf = DIPClassifier(lightgbm(), GDADensity())
    clf.fit(categories(frame.assign(empty=np.nan)), Y)
    told = categories(frame.assign(empty=5.0, constant=90.0))
    assert (clf.predict_ood(told) == -1).all()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.date_range("2020", periods=300), "has dates in column 'odd'.*month, weekday or age"),
        (pd.date_range("2020", periods=300).date, "has dates in column 'odd'"),
        (pd.date_range("2020", periods=300, tz="UTC"), "has dates in column 'odd'"),
        (pd.period_range("2020", periods=300), "has dates in column 'odd'"),
        ([1, "a"] * 150, r"mixed types in column 'odd': int, str.*astype\(str\)"),
        ([[1], [2]] * 150, "lists, arrays or records in column 'odd'"),
    ],
    ids=["dates", "objects", "zone", "periods", "mixed", "lists"],
)
def test_columns_without_an_encoding_are_refused(column, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        DIPClassifier(BOOSTING).fit(categories(FRAME).assign(odd=column), Y)


def test_gaps_in_numbers_are_encoded_only_for_classifiers_that_take_them():
    X = FRAME[["age", "income"]]
    for given in (X, X.to_numpy()):
        assert table_encoding(given, BOOSTING) is not None
        assert table_encoding(given, LogisticRegression()) is None
        clf = DIPClassifier(BOOSTING, GDADensity()).fit(given, Y)
        assert np.isfinite(clf.score_samples(given)).all()
        with pytest.raises(ValueError, match=r"got NaN.*column ('income'|1); impute it"):
            DIPClassifier().fit(given, Y)


def test_text_for_a_classifier_that_takes_none():
    with pytest.raises(ValueError, match="could not convert string") as caught:
        DIPClassifier().fit(FRAME.assign(income=1.0), Y)
    assert "which LogisticRegression may not take: give a pipeline" in caught.value.__notes__[0]


def test_infinite_numbers_are_refused():
    with pytest.raises(ValueError, match="got inf at row 0, column 'age'"):
        DIPClassifier(BOOSTING).fit(categories(FRAME).assign(age=np.inf), Y)


def test_names_that_are_no_text_and_a_detector():
    frame = categories(FRAME)
    frame.columns = range(frame.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detector = OODDetector(DIPClassifier(density=GDADensity())).fit(frame)
    new = categories(NEW)
    new.columns = frame.columns
    assert (detector.predict(new) == -1).mean() < 0.12


def test_folds_depend_on_the_content_of_rows_with_text():
    order = np.random.default_rng(0).permutation(300)
    frame = categories(FRAME)
    scores = [
        DIPClassifier(BOOSTING, GDADensity(), cv=3).fit(f, y).evidence_.held_out_.scores
        for f, y in ((frame, Y), (frame.iloc[order].reset_index(drop=True), Y[order]))
    ]
    np.testing.assert_allclose(*scores)


def polars_table(frame):
    polars = pytest.importorskip("polars")
    rows = frame.astype(object).where(frame.notna(), None)
    made = polars.DataFrame({name: rows[name].to_list() for name in frame})
    return made.with_columns(polars.col("job", "region").cast(polars.Categorical))


def test_polars_gives_what_pandas_gives():
    own = DIPClassifier(BOOSTING, GDADensity(), cv=2)
    from_pandas = clone(own).fit(categories(FRAME), Y)
    from_polars = clone(own).fit(polars_table(FRAME), Y)
    assert list(from_polars.feature_names_in_) == list(FRAME)
    new = polars_table(NEW)
    np.testing.assert_allclose(
        from_polars.predict_proba(new), from_pandas.predict_proba(categories(NEW))
    )
    first = from_polars.explain(new[:1])[0].parts[0]["features"]
    assert {entry["name"] for entry in first} <= set(FRAME)
    numbers = new[["age", "owner"]]
    clf = DIPClassifier(random_state=0).fit(numbers, LABELS)
    assert clf.density_.ranking_[0]["pseudo_outliers"] > 0


def test_folds_have_the_features_of_the_fit():
    """Rare levels are lacking in some folds, and scores of other densities do not compare."""
    rng = np.random.default_rng(0)
    town = [f"town {i}" for i in rng.zipf(1.6, 300)]
    frame = categories(FRAME).assign(town=pd.Categorical(town))
    features, Z = encoded(frame)
    for rows in (slice(0, 60), slice(100, 160)):
        again = refit_feature_transformer(features, None, frame[rows], np.arange(60) % 2, None, 0)
        assert again.transform(frame).shape == Z.shape


NUMBERS = np.random.default_rng(0).random((300, 3)).round(4)
SUMS = (NUMBERS[:, 0] + NUMBERS[:, 1] > 1).astype(int)


def decimals(values):
    return pd.Series([Decimal(str(value)) for value in values], index=values.index, dtype=object)


def arrow(values, kind):
    pa = pytest.importorskip("pyarrow")
    return values.astype(pd.ArrowDtype(getattr(pa, kind)()))


def arrow_decimals(values):
    pa = pytest.importorskip("pyarrow")
    return decimals(values).astype(pd.ArrowDtype(pa.decimal128(12, 4)))


#: Columns of texts or of categories that are numbers.
STORED_AS_TEXT = {
    "objects": lambda values: values.astype(str).astype(object),
    "string": lambda values: values.astype(str).astype("string"),
    "Arrow strings": lambda values: arrow(values.astype(str), "string"),
    "categories": lambda values: values.astype(str).astype("category"),
    "categories of numbers": lambda values: values.astype("category"),
}
#: Columns of numbers that are no floats of NumPy.
STORED_OTHERWISE = {
    "objects": lambda values: values.astype(object),
    "nullable": lambda values: values.astype("Float64"),
    "Arrow floats": lambda values: arrow(values, "float64"),
    "decimals": decimals,
    "Arrow decimals": arrow_decimals,
}
READERS = {
    "classifier": lambda: DIPClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()), random_state=0
    ),
    "detector": OODDetector,
}


def stored(convert, columns, values=NUMBERS):
    frame = pd.DataFrame(values, columns=list("abc"))
    return frame.assign(**{name: convert(frame[name]) for name in columns})


def far_off(convert, columns):
    return stored(convert, columns, np.where([False, False, True], 1000.0, NUMBERS[:5]))


@pytest.mark.parametrize(
    ("form", "reader"),
    sample_of_rows(
        [
            *(("objects", "classifier"), ("categories of numbers", "classifier")),
            *((form, "detector") for form in ("Arrow strings", "string", "categories")),
        ],
        *(0, 2),
    ),
)
def test_numbers_stored_as_text_are_named_with_what_makes_them_numbers(form, reader):
    """The classifier reads "0.13" as 0.13, and the density would see a level that never came."""
    frame = stored(STORED_AS_TEXT[form], "c")
    with pytest.warns(UserWarning, match=r"'c'.*X\[\['c'\]\] = X\[\['c'\]\].astype\(float\)"):
        READERS[reader]().fit(frame, SUMS)
    frame[["c"]] = frame[["c"]].astype(float)
    model = READERS[reader]().fit(frame, SUMS)
    ask = model.predict_ood if reader == "classifier" else model.predict
    assert (ask(far_off(lambda values: values, "")) == -1).all()


@pytest.mark.parametrize("form", STORED_AS_TEXT)
@pytest.mark.parametrize("reader", READERS)
def test_a_table_of_nothing_but_numbers_stored_as_text_is_refused_with_the_remedy(form, reader):
    frame = stored(STORED_AS_TEXT[form], "abc")
    with pytest.raises(ValueError, match=r"\['a', 'b', 'c'\].*astype\(float\)"):
        READERS[reader]().fit(frame, SUMS)


@pytest.mark.parametrize(
    ("reader", "dtype", "decimals"),
    [("detector", "object", 2), ("logistic regression", "string", 9), ("boosting", "category", 2)],
)
def test_a_table_of_nothing_but_rare_numbers_in_text_is_refused_with_the_way(
    reader, dtype, decimals
):
    """Of two decimals most values come again, and none is frequent."""
    plain = pd.DataFrame(NUMBERS, columns=list("abc")).round(decimals)
    X, y = plain.map(str).astype(dtype), SUMS
    estimator = LogisticRegression() if reader == "logistic regression" else BOOSTING
    model = OODDetector() if reader == "detector" else DIPClassifier(estimator)
    with pytest.raises(ValueError, match="a column that a density can see") as error:
        model.fit(X, y)
    code = re.search(r"X\[\[.*", str(error.value)).group()
    exec(code, {"X": X})
    pd.testing.assert_frame_equal(X, plain)


@pytest.mark.parametrize("form", ["str", "cat"])
def test_numbers_stored_as_text_in_a_table_of_polars(form):
    polars = pytest.importorskip("polars")
    text = polars.col("c").cast(str)
    plain = polars.DataFrame(dict(zip("abc", NUMBERS.T, strict=True)))
    frame = plain.with_columns(text if form == "str" else text.cast(polars.Categorical))
    with pytest.warns(UserWarning, match=r"pl\.col\(\['c'\]\)\.cast\(str\)\.cast\(float\)"):
        OODDetector().fit(frame)
    assert frame.with_columns(polars.col(["c"]).cast(str).cast(float)).equals(plain)


def test_numbers_stored_as_text_that_come_again_are_named_and_codes_are_not():
    """Of 200 prices 40 came once: a new one is usual, and none is far from the others."""
    prices = [f"{i % 40}.5" if i < 160 else f"{i}.5" for i in range(200)]
    frame = pd.DataFrame({"a": NUMBERS[:200, 0], "price": prices})
    with pytest.warns(UserWarning, match=r"numbers stored as text .*'price'"):
        OODDetector().fit(frame)
    for codes in (frame.astype({"price": "category"}), frame.assign(price=list("1234") * 50)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            OODDetector().fit(codes)


def reader_of_numbers(reader):
    return READERS.get(reader, lambda: DIPClassifier(LogisticRegression(), random_state=0))()


@cache
def fitted_on_numbers(reader):
    return reader_of_numbers(reader).fit(stored(lambda values: values, ""), SUMS)


@pytest.mark.parametrize(
    ("reader", "columns", "form"),
    sample_of_rows(
        [
            *(("bare classifier", "abc", form) for form in STORED_OTHERWISE),
            *(("classifier", "c", form) for form in ("objects", "Arrow decimals")),
            *(("detector", "c", form) for form in ("decimals", "nullable")),
        ],
        0,
        3,
        5,
        8,
    ),
)
def test_numbers_of_any_type_are_numbers(reader, columns, form):
    convert = STORED_OTHERWISE[form]
    model = reader_of_numbers(reader).fit(stored(convert, columns), SUMS)
    plain = fitted_on_numbers(reader)
    ask = "predict" if reader == "detector" else "predict_ood"
    assert (getattr(model, ask)(far_off(convert, columns)) == -1).all()
    np.testing.assert_allclose(
        model.score_samples(stored(convert, columns)),
        plain.score_samples(stored(lambda values: values, "")),
        rtol=1e-6,
    )
