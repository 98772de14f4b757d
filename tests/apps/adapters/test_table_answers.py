"""Models that answer a table with a table, and the functions of SQL made of them."""

import numpy as np
import pytest

from weekly import sample_of

pytest.importorskip("typer")
pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

import pandas as pd
import pyarrow as pa
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier

import dipedl
from dipedl import DIPClassifier, OODDetector
from dipedl.apps.adapters import TableAnswers, register_duckdb, table_answers
from dipedl.apps.table.reading import open_table
from dipedl.apps.table.score import ScoreRequest, score_table
from dipedl.apps.table.table_model import encode_rows, read_model
from dipedl.density import GDADensity
from passengers import keep_model

X, Y = load_iris(return_X_y=True, as_frame=True)
LEVELS = np.array(["red", "green", "blue"])[np.arange(150) % 3]
MIXED = X.iloc[:, :2].assign(colour=pd.Categorical(LEVELS))


def fitted(rows, estimator=None):
    return DIPClassifier(estimator, GDADensity(), cv=2, random_state=0).fit(rows, Y)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return keep_model(tmp_path_factory.mktemp("adapters"))


class Connection:
    """Holds what DuckDB would be given."""

    def __init__(self):
        self.functions = {}

    def create_function(self, name, function, given, type_, **settings):
        assert settings == {"type": "arrow", "null_handling": "special"}
        self.functions[name] = function, given, type_


def test_answers_are_those_of_the_model():
    clf = fitted(X)
    found = TableAnswers(clf).predict(X)
    answers = clf.answers(X)
    assert list(found) == ["label", "p_0", "p_1", "p_2", "vacuity", "p_value", "flagged"]
    assert (found["label"] == answers.labels.astype(str)).all()
    np.testing.assert_array_equal(found[["p_0", "p_1", "p_2"]], answers.dirichlet.mean)
    np.testing.assert_array_equal(found["vacuity"], answers.dirichlet.vacuity)
    np.testing.assert_array_equal(found["p_value"], answers.p_values)
    np.testing.assert_array_equal(found["flagged"], answers.flagged)


def test_columns_come_by_name_and_arrays_in_the_order_of_the_fit():
    ours = TableAnswers(fitted(X))
    expected = ours.predict(X)
    pd.testing.assert_frame_equal(
        ours.predict(X.assign(more="")[[*X.columns[::-1], "more"]]), expected
    )
    pd.testing.assert_frame_equal(ours.predict(X.to_numpy()), expected)
    unnamed = TableAnswers(fitted(X.to_numpy()))
    assert list(unnamed.kinds) == ["x0", "x1", "x2", "x3"]
    pd.testing.assert_frame_equal(unnamed.predict(X.to_numpy()), expected)
    by_number = X.set_axis(range(4), axis=1)
    numbered = TableAnswers(fitted(by_number))
    pd.testing.assert_frame_equal(numbered.predict(by_number), expected)
    with pytest.raises(ValueError, match=r"the table lacks the column 'petal width \(cm\)'"):
        ours.predict(X.iloc[:, :3])


def test_a_model_of_the_command_line_reads_columns_as_it_does(kept, tmp_path):
    path = str(kept / "model.dipedl")
    new = pd.read_csv(kept / "new.csv")
    found = table_answers._load_pyfunc(path).predict(new)
    out = tmp_path / "answers.csv"
    score_table(
        read_model(kept / "model.dipedl"), open_table(kept / "new.csv"), out, ScoreRequest()
    )
    told = pd.read_csv(out)
    assert (found["label"] == told["label"]).all()
    np.testing.assert_allclose(found["vacuity"], told["vacuity"], rtol=1e-6)
    kinds = TableAnswers(dipedl.load(path)).kinds
    assert kinds["sex"] == "category" and kinds["fare"] == "numeric" and "name" not in kinds
    with pytest.raises(ValueError, match=r"row 3, column 'fare': 'much' is no finite number"):
        TableAnswers(dipedl.load(path)).predict(
            new.assign(fare=new["fare"].astype(object).where(new.index != 3, "much"))
        )


def test_what_is_no_classifier_is_refused():
    with pytest.raises(TypeError, match="model must be a fitted DIPClassifier, got OODDetector"):
        TableAnswers(OODDetector())


def test_functions_of_sql_get_arrow_and_give_arrow():
    clf, connection = fitted(MIXED, HistGradientBoostingClassifier(max_iter=5)), Connection()
    calls = register_duckdb(connection, clf, "a")
    assert calls[1] == 'a_vacuity("sepal length (cm)", "sepal width (cm)", "colour")'
    assert list(connection.functions) == ["a_label", "a_vacuity", "a_p_value", "a_flagged"]
    new = MIXED.assign(colour=np.where(np.arange(150) < 5, "violet", LEVELS))
    columns = [pa.chunked_array([pa.array(new[name])]) for name in new]
    answers = clf.answers(new)
    expected = {
        "a_label": answers.labels.astype(str).tolist(),
        "a_vacuity": answers.dirichlet.vacuity.tolist(),
        "a_p_value": answers.p_values.tolist(),
        "a_flagged": answers.flagged.tolist(),
    }
    for name, (function, given, _) in connection.functions.items():
        assert given == ["DOUBLE", "DOUBLE", "VARCHAR"]
        assert function(*columns).to_pylist() == expected[name]


def test_a_query_on_parquet(kept, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    clf = dipedl.load(kept / "model.dipedl")
    new = pd.read_csv(kept / "new.csv")
    new.to_parquet(tmp_path / "new.parquet")
    with duckdb.connect() as connection:
        label, vacuity, _, flagged = register_duckdb(connection, clf)
        query = f"SELECT passenger, {label}, {vacuity}, {flagged} FROM '{tmp_path}/new.parquet'"
        found = connection.sql(f"{query} WHERE {vacuity} > 0.01 ORDER BY passenger").fetchall()
    answers = TableAnswers(clf).predict(new)
    some = answers["vacuity"] > 0.01
    assert 0 < some.sum() < len(new) and new["age"].isna().any()
    rows = zip(
        new["passenger"], answers["label"], answers["vacuity"], answers["flagged"], strict=True
    )
    assert found == [tuple(row) for row, on in zip(rows, some, strict=True) if on]


@pytest.fixture(scope="module")
def of_a_table(tmp_path_factory):
    """A table with a date, truths, codes and decimal commas, and its model by the shell."""
    from dipedl.apps.table.fit import FitRequest, fit_table
    from dipedl.apps.table.table_model import save_model

    folder, n = tmp_path_factory.mktemp("dates"), 120
    x = np.random.default_rng(0).normal(size=n)
    table = pd.DataFrame(
        {
            "x": x,
            "day": pd.date_range("2020-01-01", periods=n).astype(str),
            "on": np.resize(["yes", "no", "no"], n),
            "code": np.resize(["1", "2", "3"], n),
            "price": [f"{v:.2f}".replace(".", ",") for v in x],
            "note": [f"note {i}" for i in range(n)],
        }
    )
    table.assign(y=np.where(x > 0, "a", "b")).to_csv(folder / "data.csv", index=False)
    order = FitRequest("y", model="linear", types={"code": "category"})
    save_model(fit_table(open_table(folder / "data.csv"), order).model, folder / "m.dipedl")
    return dipedl.load(folder / "m.dipedl"), table


METHODS = [
    *("predict", "predict_proba", "p_value", "predict_ood", "predict_set", "explain", "answers"),
    *("uncertainty", "score_samples", "predict_dirichlet", "classifier_proba"),
]


@pytest.mark.parametrize("method", sample_of(METHODS, 1, 3, 5, 6, 7))
def test_a_model_of_the_shell_takes_its_table_and_the_inputs_made_of_it(method, of_a_table):
    clf, table = of_a_table
    inputs = encode_rows(clf, table)
    assert list(inputs) == list(clf.feature_names_in_) != list(table)
    whole, made = getattr(clf, method)(table), getattr(clf, method)(inputs)
    if method in ("explain", "answers", "predict_dirichlet"):
        assert repr(whole) == repr(made)
    else:
        np.testing.assert_array_equal(whole, made)


def test_rows_of_a_table_are_answered_whatever_their_index(of_a_table):
    clf, table = of_a_table
    answer = TableAnswers(clf).predict
    expected = answer(table.reset_index(drop=True))["p_value"].to_numpy()
    for rows in (np.arange(len(table))[::-1], np.arange(0, len(table), 2), [3, 3, 1]):
        found = answer(table.reset_index(drop=True).iloc[rows])["p_value"]
        np.testing.assert_array_equal(found.to_numpy(), expected[rows])
