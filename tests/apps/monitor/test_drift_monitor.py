"""The monitor: what it notices, what it refuses, how it is saved and added."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import dipedl
from dipedl import DIPClassifier, DriftMonitor
from dipedl.answers import Answers
from dipedl.apps.monitor.windows import compare_counts, count_rows, learn_column
from dipedl.baselines import Mahalanobis
from dipedl.density import GDADensity
from weekly import sample_of


def rows(n, seed, moved=0.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 3)) + 3 * y[:, None] + moved, y


@pytest.fixture(scope="module")
def clf():
    return DIPClassifier(density=GDADensity(), random_state=0).fit(*rows(600, 0))


@pytest.fixture
def monitor(clf):
    return DriftMonitor().fit(clf, rows(800, 1)[0])


def evidence(monitor):
    return monitor.report().evidence


def test_a_shift_raises_an_alarm_and_the_same_rows_do_not(clf, monitor):
    quiet = monitor.update(clf, rows(4000, 2)[0])
    assert (quiet.alarm, quiet.rows, quiet.batches) == (False, 4000, 1)
    loud = monitor.update(clf, rows(2000, 3, moved=1.2)[0])
    assert "p_values" in loud.alarms
    assert loud.window.differs and len(loud.window.changed) == 3
    # An alarm stays.
    assert monitor.update(clf, rows(4000, 4)[0]).alarm


def test_rows_that_are_too_typical_are_noticed_with_fresh_rows(clf):
    X = rows(1000, 5)[0]
    dull = X[np.argsort(clf.p_value(X))[700:]]
    report = DriftMonitor().fit(clf, rows(800, 1)[0]).update(clf, dull)
    assert report.alarms == ("p_values",)


def test_false_alarms_of_many_streams_and_references(clf):
    """At a rate of 20 %, over references of 100 rows and streams of 1,000."""
    stream = clf.answers(rows(25 * 1000, 31)[0])
    reference = rows(25 * 100, 30)[0]
    alarms = []
    for i in range(25):
        monitor = DriftMonitor(0.2).fit(clf, reference[i * 100 :][:100], columns=())
        alarms.append(monitor.update_answers(part(stream, i * 1000, 1000)).alarm)
    assert np.mean(alarms) <= 0.2


def part(answers, first, n):
    some = slice(first, first + n)
    return Answers(
        answers.labels[some],
        answers.dirichlet[some],
        answers.p_values[some],
        answers.flagged[some],
        answers.confidence[some],
    )


def test_estimated_accuracy_is_near_the_measured_one(clf, monitor):
    X, y = rows(3000, 6)
    report = monitor.update(clf, X, labels=y)
    assert report.estimated_accuracy.low <= report.accuracy.value <= report.estimated_accuracy.high
    right = clf.predict(X) == y
    brier = ((clf.predict_proba(X) - np.eye(2)[y]) ** 2).sum(axis=1)
    assert report.accuracy.value == right.mean()
    assert report.brier.value == pytest.approx(brier.mean())


def test_windows_of_usual_rows_do_not_differ_from_a_reference_of_cross_fitting():
    """The final model finds new rows more typical: a KS distance of 0.2 here."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(3300, 40)), rng.integers(0, 2, 3300)
    clf = DIPClassifier(random_state=0).fit(X[:300], y[:300])
    monitor = DriftMonitor(window=500).fit(clf)
    for part in np.split(X[300:], 6):
        report = monitor.update(clf, part)
    assert (report.windows, report.windows_differ) == (6, 0)
    assert monitor.update(clf, 2 * X[300:800]).window.differs


def two_and_six(n, seed, moved=0.0):
    """Rows of two columns that decide, and six that do not and may move."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 8))
    X[:, :2] += 2 * y[:, None]
    X[:, 2:] += moved
    return X, y


TIMID = RandomForestClassifier(40, min_samples_leaf=15, max_features=2, random_state=0)


@pytest.mark.parametrize("estimator", [LogisticRegression(), TIMID], ids=["linear", "timid forest"])
@pytest.mark.parametrize("moved", sample_of([0.0, 1.0, 2.0], 0, 2))
def test_estimated_accuracy_does_not_fall_with_vacuity_where_the_classifier_is_right(
    estimator, moved
):
    clf = DIPClassifier(estimator, GDADensity(), random_state=0).fit(*two_and_six(1200, 0))
    X, y = two_and_six(4000, 1, moved)
    report = DriftMonitor(window=2000).fit(clf).update(clf, X, labels=y)
    answers = clf.answers(X)
    assert answers.confidence == pytest.approx(clf.classifier_proba(X).max(axis=1))
    if moved:
        with_evidence = answers.dirichlet.mean.max(axis=1).mean()
        assert with_evidence < report.accuracy.value - 0.04
    for one in (report, report.window):
        assert one.estimated_accuracy.value == pytest.approx(one.accuracy.value, abs=0.03)


def test_answers_say_what_the_model_says(clf, monitor):
    other = clone(monitor).fit(clf, rows(800, 1)[0])
    X = rows(500, 7)[0]
    assert other.update_answers(clf.answers(X), X) == monitor.update(clf, X)


def test_the_cut_into_batches_plays_no_part_at_each_bet(clf, monitor):
    other = clone(monitor).fit(clf, rows(800, 1)[0])
    X = rows(600, 8)[0]
    monitor.update(clf, X)
    for part in np.split(X, [50, 300]):
        other.update(clf, part)
    assert evidence(other) == pytest.approx(evidence(monitor))


def test_an_empty_batch_changes_nothing(clf, monitor):
    before = monitor.update(clf, rows(100, 9)[0])
    assert monitor.update(clf, np.empty((0, 3))) == before
    assert monitor.update(clf, []) == before


def broken(clf, X, value):
    answers = clf.answers(X)
    p = answers.p_values.copy()
    p[3] = value
    return Answers(answers.labels, answers.dirichlet, p, answers.flagged, answers.confidence)


LABELS = {
    "list": lambda y, known: np.where(known, y.astype(object), None).tolist(),
    "float": lambda y, known: pd.Series(np.where(known, y, np.nan)),
    "Int64": lambda y, known: pd.Series(y).astype("Int64").where(known),
    "Int8 array": lambda y, known: pd.Series(y).astype("Int8").where(known).array,
    "objects": lambda y, known: pd.Series(y).astype(object).where(known, pd.NA),
    "categories": lambda y, known: pd.Series(y).astype("category").where(known),
    "frame": lambda y, known: pd.DataFrame({"y": pd.Series(y).astype("Int64").where(known)}),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_with_gaps_of_any_kind_are_known_where_they_are(clf, monitor, kind):
    X, y = rows(300, 13)
    known = np.arange(300) % 3 == 0
    report = monitor.update(clf, X, labels=LABELS[kind](y, known))
    assert report.accuracy.rows == 100
    assert report.accuracy.value == (clf.predict(X) == y)[known].mean()


def test_labels_of_which_none_is_known_measure_nothing(clf, monitor):
    labels = pd.Series([pd.NA] * 300, dtype="Int64")
    assert monitor.update(clf, rows(300, 13)[0], labels=labels).accuracy is None


EMPTY = {
    "categories": lambda n: pd.Categorical([None] * n),
    "categories with levels": lambda n: pd.Categorical([None] * n, categories=["a", "b"]),
    "objects": lambda n: np.full(n, None),
    "numbers": lambda n: np.full(n, np.nan),
    "Int64": lambda n: pd.array([pd.NA] * n, dtype="Int64"),
    "texts": lambda n: pd.array([pd.NA] * n, dtype="string"),
}


@pytest.mark.parametrize("values", [["a", "b"], [1.0, 2.0]])
@pytest.mark.parametrize("kind", EMPTY)
def test_a_column_of_gaps_alone_may_go_on_empty_and_is_noticed_when_it_is_filled(kind, values):
    column = learn_column("c", pd.Series(EMPTY[kind](500)))
    empty = count_rows(column, pd.Series(EMPTY[kind](400)))
    assert empty.tolist() == [0, 400] and compare_counts(column.counts, empty)[1] > 0.5
    filled = count_rows(column, pd.Series(values * 100 + [None] * 200))
    assert filled.tolist() == [200, 200] and compare_counts(column.counts, filled)[1] < 1e-6


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "object", "float64"])
def test_gaps_make_no_levels_of_numbers(dtype):
    numbers = pd.Series(np.arange(300.0))
    column = learn_column("c", numbers.astype(dtype).where(numbers % 10 > 0))
    assert column.levels is None and len(column.cuts) == 11
    for other in ("Int64", "float64", "object"):
        window = numbers.astype(other).where(numbers >= 100)
        assert count_rows(column, window)[-1] == 100 and count_rows(column, window).sum() == 300


def forest():
    """A model of the same density, and so of the same held-out scores."""
    other = RandomForestClassifier(5, random_state=0)
    return DIPClassifier(other, density=GDADensity(), random_state=0).fit(*rows(600, 0))


FEW, SOME = rows(10, 0)[0], rows(60, 12)[0]


@pytest.mark.parametrize(
    ("call", "error", "argument"),
    [
        (lambda m, clf: m.update(forest(), FEW), ValueError, "made for the model"),
        (lambda m, clf: m.update(clf, SOME, labels=[1]), ValueError, "labels"),
        *(
            (lambda m, clf, n=n: m.update_answers(clf.answers(SOME), SOME[:n]), ValueError, "X")
            for n in (3, 0)
        ),
        *(
            (lambda m, clf, p=p: m.update_answers(broken(clf, SOME, p)), ValueError, "at row 3")
            for p in (np.nan, -0.1, 1.5)
        ),
        (lambda m, clf: m.update(clf, SOME, batch="a"), TypeError, "batch"),
        (lambda m, clf: m + DriftMonitor().fit(clf), ValueError, "began as copies"),
        (lambda m, clf: DriftMonitor().fit(object()), TypeError, "model"),
        (lambda m, clf: DriftMonitor(2.0).fit(clf), ValueError, "false_alarm_rate"),
        (lambda m, clf: DriftMonitor(window=0).fit(clf), ValueError, "window"),
        (lambda m, clf: DriftMonitor().fit(clf, rows(20, 0)[0]), ValueError, "at least 50 rows"),
        (lambda m, clf: DriftMonitor().update(clf, FEW), NotFittedError, "not fitted"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_counted(clf, monitor, call, error, argument):
    with pytest.raises(error, match=argument):
        call(monitor, clf)
    assert monitor.report().rows == 0 and monitor.batches_ == 0


def test_batches_that_come_again_or_out_of_order_are_refused(clf, monitor):
    X = rows(60, 12)[0]
    monitor.update(clf, X, batch=7)
    for number in (7, 6):
        with pytest.raises(ValueError, match="batch must be larger than 7"):
            monitor.update(clf, X, batch=number)
    assert monitor.update(clf, X, batch=9).rows == 120


def test_columns_by_name(clf):
    X, y = rows(600, 0)
    table = pd.DataFrame(X, columns=list("abc"))
    model = DIPClassifier(density=GDADensity(), random_state=0).fit(table, y)
    monitor = DriftMonitor(window=500).fit(
        model, pd.DataFrame(rows(800, 1)[0], columns=list("abc"))
    )
    new = pd.DataFrame(rows(500, 2)[0], columns=list("abc")).assign(b=lambda t: t.b * 1.6)
    assert [name for name, _ in monitor.update(model, new).window.changed] == ["b"]
    with pytest.raises(ValueError, match="lacks the columns \\['c'\\]"):
        monitor.update_answers(model.answers(new), new[["a", "b"]])


def test_a_monitor_goes_on_from_its_file(clf, monitor, tmp_path):
    monitor.update(clf, *rows(1500, 13))
    dipedl.save(monitor, tmp_path / "state")
    again = dipedl.load(tmp_path / "state")
    assert again.update(clf, *rows(1500, 14)) == monitor.update(clf, *rows(1500, 14))
    assert again.windows_ == monitor.windows_


@pytest.mark.parametrize(
    ("name", "value"),
    [("rows_", -1), ("counts_", np.zeros(3)), ("wealth_", {}), ("usual_", {"flagged": 2.0})],
)
def test_a_state_that_does_not_fit_together_is_not_saved(name, value, clf, tmp_path):
    """The same checks as on reading a forged file."""
    monitor = DriftMonitor().fit(clf)
    setattr(monitor, name, value)
    with pytest.raises(TypeError, match="DriftMonitor"):
        dipedl.save(monitor, tmp_path / "state")


def test_the_sum_is_one_batch_of_all_rows(clf):
    # By the held-out rows of the model, with which no p-value ties.
    X, y = rows(900, 15, moved=0.4)
    parts = [DriftMonitor().fit(clf) for _ in range(3)]
    for one, some in zip(parts, np.split(np.arange(900), [200, 500]), strict=True):
        one.update(clf, X[some], y[some])
    whole = DriftMonitor().fit(clf)
    whole.update(clf, X, y)
    left, right = (parts[0] + parts[1]) + parts[2], parts[0] + (parts[1] + parts[2])
    for total in (left, right):
        np.testing.assert_array_equal(total.counts_, whole.counts_)
        np.testing.assert_array_equal(total.open_.ranks, whole.open_.ranks)
        np.testing.assert_allclose(total.sums_.confidence, whole.sums_.confidence)
        assert total.report().accuracy == whole.report().accuracy
    assert evidence(left) == pytest.approx(evidence(right))
    gains = whole.reference_.gains(np.zeros_like(whole.counts_), whole.counts_)
    expected = np.log(0.5 + 0.5 * np.exp(gains).mean())
    assert evidence(left)["p_values"] == pytest.approx(expected)


def test_a_baseline_is_watched_too():
    X, y = rows(600, 0)
    model = Mahalanobis().fit(X, y).calibrate(*rows(500, 16))
    monitor = DriftMonitor().fit(model)
    assert monitor.reference_.both
    assert not monitor.update(model, rows(2000, 17)[0]).alarm
    assert monitor.update(model, rows(2000, 18, moved=1.5)[0]).alarm


def test_a_network_is_watched_too():
    torch = pytest.importorskip("torch")
    from dipedl import DIPModule

    X, y = rows(600, 0)
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    pairs = [(torch.tensor(X).float(), torch.tensor(y))]
    module = DIPModule(network).fit_density(pairs)
    monitor = DriftMonitor().fit(module)
    report = monitor.update(module, torch.tensor(rows(2000, 19, moved=6.0)[0]).float())
    assert report.alarm


def test_the_report_in_words_as_json_and_as_gauges(clf, monitor):
    report = monitor.update(clf, *rows(1000, 20))
    assert json.loads(json.dumps(report.to_dict()))["rows"] == 1000
    text, page = str(report), report._repr_html_()
    for line in ("Alarm:", "1,000 in 1 batch\n", "800 given rows", "Estimated accuracy:"):
        assert line in text
    assert "Last window" in page and "<script" not in page
    gauges = report.gauges()
    assert gauges["drift_alarm"] == 0.0 and gauges["drift_rows"] == 1000.0
    assert all(type(value) is float for value in gauges.values())
