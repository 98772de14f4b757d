"""A suite whose class probabilities are known: what its rows say of intervals, and its tables."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dipedl import DIPClassifier, Dirichlet
from dipedl.dirichlet import concentration_of_samples
from dipedl_bench import load_rows, load_suite
from dipedl_bench.datasets import load_known_truth
from dipedl_bench.datasets.splits import make_splits
from dipedl_bench.results.known_truth import BY_CONFIDENCE, BY_DENSITY
from dipedl_bench.results.store import Store
from dipedl_bench.running.methods import run_methods
from dipedl_bench.running.training import train_part
from dipedl_bench.spec.plan import plan
from dipedl_bench.spec.suite import MeasureEntry
from dipedl_bench.tables.blocks import markdown
from dipedl_bench.tables.measures import evaluate
from dipedl_bench.tables.pairs import (
    error_frame,
    interval_frame,
    methods_with_intervals,
    problem_frame,
    uncovered_frame,
)
from dipedl_bench.tables.table import bench_table

SUITE = load_suite("second-order")


def cell_of(methods, dataset="gaussians-3-200", classifier="logistic", profile="smoke"):
    """The cell of a data set and a classifier with some methods."""
    axes = {"methods": methods, "datasets": [dataset], "classifiers": [classifier]}
    (cell,) = plan(SUITE, profile, "second-order.toml", **axes)
    return cell


def run_cell(cell, out):
    """Do all parts of a cell here; gives why a method has no row."""
    store = Store(out, "second-order", cell.heads[0]["profile"])
    for part in cell.parts[:-1]:
        if not store.has_arrays(*cell.key(part)):
            train_part(cell, part, store)
    return run_methods(cell, store)


def data_of(cell):
    return cell.heads[0]["config"]["data"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    assert run_cell(cell_of(["evidence", "default", "paper"]), out) == {}
    own = ["evidence", "default", "deep-ensemble", "mc-dropout", "edl", "postnet"]
    assert run_cell(cell_of(own, classifier="network"), out) == {}
    return out


def test_the_truth_goes_with_its_rows_and_inputs_are_standardised():
    splits = make_splits(data_of(cell_of(["default"])), 0)
    given = load_known_truth("gaussians", {"k": 3, "d": 5}, n_samples=200, n_test=500)
    scaler = StandardScaler().fit(given.X_train)
    for split, X, P in (
        ("test", given.X_test, given.truth["test"]),
        ("ood/far", given.ood["far"], given.truth["far"]),
    ):
        mine, theirs = splits.X[split], scaler.transform(X)
        assert len(mine) == len(splits.truth[split]) == 100
        at = [np.flatnonzero(np.isclose(theirs, row).all(axis=1))[0] for row in mine]
        np.testing.assert_array_equal(splits.truth[split], P[at])


def test_rows_say_how_often_the_truth_lies_in_the_intervals(stored):
    """Against a model that is fitted here, and thirds that are sorted here."""
    splits = make_splits(data_of(cell_of(["default"])), 0)
    X, y = (np.concatenate([of["train"], of["validation"]]) for of in (splits.X, splits.y))
    model = LogisticRegression(max_iter=500, random_state=0)
    found = DIPClassifier(model, random_state=0).fit(X, y).predict_dirichlet(splits.X["test"])
    P = splits.truth["test"]
    (row,) = [
        row
        for row in load_rows("second-order", "smoke", stored)
        if (row["classifier"], row["method"]) == ("logistic", "default")
    ]
    metrics = row["metrics"]
    low, high = found.credible_interval(0.95)
    # An end of an interval may be a probability of 1e-12, and be it but for rounding.
    inside = (low - 1e-9 <= P) & (P <= high + 1e-9)
    assert metrics["coverage_95"] == pytest.approx(inside.mean())
    assert metrics["width_95"] == pytest.approx((high - low).mean())
    gap = np.linalg.norm(splits.X["test"][:, None] - X, axis=2)
    order = np.argsort(np.sort(gap, axis=1)[:, 9])
    assert metrics["coverage_95_densest"] == pytest.approx(inside[order[:34]].mean())
    assert metrics["coverage_95_sparsest"] == pytest.approx(inside[order[-33:]].mean())
    low, high = found.credible_interval(0.5)
    assert metrics["coverage_50"] == pytest.approx(((low <= P) & (P <= high)).mean())
    assert {"coverage_95/far", "interval_score_95/far", "error_correlation"} <= set(metrics)


def test_the_dirichlet_of_samples_has_their_mean_and_variance():
    samples = np.random.default_rng(0).dirichlet([3, 2, 1], size=(7, 5))
    found = Dirichlet(concentration_of_samples(samples))
    np.testing.assert_allclose(found.mean, samples.mean(axis=0))
    summed = samples.var(axis=0, ddof=1).sum(axis=1)
    np.testing.assert_allclose(found.variance.sum(axis=1), summed)
    alike = concentration_of_samples(np.repeat(samples[:1], 4, axis=0))
    assert np.isfinite(alike).all() and (alike.sum(axis=1) >= 1e6 - 1).all()


@pytest.mark.slow
def test_a_frozen_classifier_is_not_fitted_on_the_rows_that_are_given(tmp_path):
    """Against the first half of the rows, and the second, put together here."""
    cell = cell_of(["frozen"])
    assert run_cell(cell, tmp_path) == {}
    (row,) = load_rows("second-order", "smoke", tmp_path)
    splits = make_splits(data_of(cell), 0)
    X, y = (np.concatenate([of["train"], of["validation"]]) for of in (splits.X, splits.y))
    model = LogisticRegression(max_iter=500, random_state=0).fit(X[:100], y[:100])
    clf = DIPClassifier(FrozenEstimator(model), random_state=0)
    found = clf.fit(X[100:], y[100:]).predict_dirichlet(splits.X["test"])
    low, high = found.credible_interval(0.95)
    P = splits.truth["test"]
    assert row["metrics"]["coverage_95"] == pytest.approx(((low <= P) & (P <= high)).mean())
    assert row["metrics"]["width_95"] == pytest.approx((high - low).mean())
    assert row["seconds"]["classifier"] == 0 and row["n"]["train"] == 200


def test_a_network_of_its_own_has_backbone_and_training_of_the_classifier(tmp_path, monkeypatch):
    from dipedl.baselines import EDL

    seen = []
    monkeypatch.setattr(EDL, "fit", lambda self, X, y: seen.append(self) or 1 / 0)
    run_cell(cell_of(["edl"], classifier="network"), tmp_path)
    assert seen[0].backbone.hidden == (64,) and seen[0].training.epochs == 1


def test_selected_rows_weigh_what_they_stand_for(tmp_path):
    dataset = "weighted-gaussians-2500"
    data = data_of(cell_of(["default"], dataset, profile="cpu"))
    whole = {key: value for key, value in data.items() if key != "selected"}
    some, every = (make_splits(config, 1) for config in (data, whole))
    y = np.concatenate([some.y[s] for s in ("train", "validation")])
    w = np.concatenate([some.weights[s] for s in ("train", "validation")])
    counts = np.bincount(np.concatenate([every.y[s] for s in ("train", "validation")]))
    assert len(y) < 0.7 * counts.sum() and not every.weights
    # Binomial shares of 1/4, weighed by 4: 5 standard deviations.
    assert (abs(np.bincount(y, w) - counts) <= 5 * np.sqrt(3 * counts)).all()
    assert set(w) == {1.0, 4.0}
    assert run_cell(cell_of(["paper", "bootstrap"], dataset, profile="cpu"), tmp_path) == {}
    paper, bootstrap = load_rows("second-order", "cpu", tmp_path)
    assert paper["metrics"]["coverage_95"] > 0
    assert "sample_weight" in bootstrap["refused"]


def test_tables_say_what_the_rows_say(stored):
    rows = load_rows("second-order", "smoke", stored)
    found = bench_table(rows)
    value = {
        (r["classifier"], r["method"], name): of for r in rows for name, of in r["metrics"].items()
    }
    assert methods_with_intervals(found) == [
        "evidence",
        "default",
        "paper",
        "deep-ensemble",
        "mc-dropout",
        "edl",
        "postnet",
    ]
    by_method = interval_frame(found).set_axis(methods_with_intervals(found)).T
    ours = by_method["default"]
    kinds = ("logistic", "network")
    mean = np.mean([value[kind, "default", "coverage_95"] for kind in kinds])
    assert ours["lines"] == "2" and ours["95 %"].startswith(f"{mean:.2f} (")
    score = value["network", "edl", "interval_score_95"]
    own = value["network", "default", "interval_score_95"]
    there = by_method["edl"][["score", "our score there"]]
    assert list(there) == [f"{score:.2f}", f"{own:.2f}"]
    by_error = error_frame(found).set_axis(methods_with_intervals(found)).T["edl"]
    for name in ("squared_error", "squared_error/far"):
        title = "far: squared error" if "far" in name else "squared error"
        for method, end in (("edl", ""), ("default", ", ours there")):
            number = float(by_error[title + end])
            assert number == pytest.approx(value["network", method, name], abs=6e-4)
    third = uncovered_frame(found)
    for n, name in enumerate((*BY_DENSITY, *BY_CONFIDENCE)):
        for end, rows_of in (("", "test rows"), ("/far", "far rows")):
            shares = {kind: value[kind, "default", f"coverage_95_{name}{end}"] for kind in kinds}
            low = {f"gaussians-3-200, {k} {of:.3f}" for k, of in shares.items() if of < 0.8}
            assert set(filter(None, third[rows_of][n].split("; "))) == low
    assert third["far rows"].any()
    was, now = (value["logistic", method, "coverage_95"] for method in ("evidence", "default"))
    text = f"{was:.2f} → {now:.2f}"
    by_line = problem_frame(found).set_index("data")
    assert list(by_line) == list(kinds)
    assert by_line.loc["gaussians-3-200", "logistic"] == text
    assert text in markdown(bench_table(rows))


def test_a_measure_against_every_baseline_knows_what_is_better(stored):
    """Of two methods with the same rows but one number, the lower score is ahead."""
    rows = load_rows("second-order", "smoke", stored)
    bare = [row for row in rows if row["method"] == "evidence"]
    for shift, metric, met in (
        (-0.1, "interval_score_95", True),
        (0.1, "interval_score_95", False),
        (0.1, "error_correlation", True),
    ):
        ours = [
            row
            | {"method": "default", "group": "ours", "config_hash": "other"}
            | {"metrics": row["metrics"] | {metric: row["metrics"][metric] + shift}}
            for row in bare
        ]
        entry = MeasureEntry(statement="s", what="baselines", metric=metric, found="{best:.3f}")
        measure = evaluate(entry, bench_table([*bare, *ours]))
        best = np.mean([row["metrics"][metric] for row in bare])
        assert (measure.met, measure.found.partition(";")[0]) == (met, f"{best:.3f}")
