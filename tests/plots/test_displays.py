"""Displays ask any estimator, are seen in notebooks."""

import struct
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from dipedl import DIPClassifier
from dipedl.density import GDADensity
from dipedl.plots import (
    EvidenceMapDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    VacuityHistogramDisplay,
)


def data_of(line):
    return np.column_stack(line.get_data())


@pytest.fixture(scope="module")
def iris():
    """100 rows, labelled by names whose order is not that of the numbers, and 50 others."""
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "lily", "rose"])[y]
    others = np.arange(150) % 3 == 0
    return X[~others], names[~others], X[others], names[others]


@pytest.fixture(scope="module")
def bayes(iris):
    return make_pipeline(StandardScaler(), GaussianNB()).fit(*iris[:2])


@pytest.fixture(scope="module")
def dip(iris):
    model = DIPClassifier(GaussianNB(), GDADensity())
    return make_pipeline(StandardScaler(), model).fit(*iris[:2])


def test_reliability_of_any_classifier_is_the_diagram_of_its_answers(iris, bayes):
    *_, X, y = iris
    shown = ReliabilityDisplay.from_estimator(bayes, X, y, min_rows=1, color="red")
    P = bayes.predict_proba(X)
    index = np.array([bayes.classes_.tolist().index(name) for name in y])
    assert shown.line_.get_label() == "Pipeline" and shown.line_.get_color() == "red"
    assert shown.ax_.figure is shown.figure_ and shown.errors_ in shown.ax_.collections
    given = ReliabilityDisplay.from_predictions(y, P, classes=bayes.classes_, min_rows=1)
    np.testing.assert_array_equal(data_of(shown.line_), data_of(given.line_))
    plain = ReliabilityDisplay.from_predictions(index, P, min_rows=1, ax=given.ax_)
    np.testing.assert_array_equal(data_of(plain.line_), data_of(given.line_))
    assert plain.ax_ is given.ax_ and len(given.ax_.lines) == 3
    assert shown.ax_.get_legend() is not None and plain.ax_.get_legend() is None


def test_a_display_is_drawn_again_elsewhere(iris, bayes):
    shown = ReliabilityDisplay.from_estimator(bayes, *iris[2:], min_rows=1)
    first = shown.figure_
    assert shown.plot(n_bins=2, min_rows=1) is shown
    assert shown.figure_ is not first and len(shown.line_.get_xdata()) == 1


def test_risk_is_by_confidence_or_by_a_kind(iris, bayes, dip):
    *_, X, y = iris
    P, wrong = bayes.predict_proba(X), bayes.predict(X) != y
    shown = RiskCoverageDisplay.from_estimator(bayes, X, y, name="bayes")
    order = np.argsort(-P.max(axis=1), kind="stable")
    naive = np.cumsum(wrong[order]) / np.arange(1, len(y) + 1)
    coverage, risk = data_of(shown.line_).T
    ends = np.flatnonzero(np.isin(np.arange(1, len(y) + 1) / len(y), coverage))
    np.testing.assert_allclose(risk[-len(ends) :], naive[ends])
    assert shown.line_.get_label() == "bayes"
    by_kind = RiskCoverageDisplay.from_estimator(dip, X, y, kind="vacuity", ax=shown.ax_)
    right = dip.predict(X) == y
    given = RiskCoverageDisplay.from_predictions(right, dip[-1].uncertainty(dip[:-1].transform(X)))
    np.testing.assert_allclose(data_of(by_kind.line_), data_of(given.line_))
    with pytest.raises(
        TypeError, match=r"must be a DIPClassifier, a DIPModule or a baseline.*GaussianNB"
    ):
        RiskCoverageDisplay.from_estimator(bayes, X, y, kind="vacuity")


@pytest.mark.parametrize("display", [ReliabilityDisplay, RiskCoverageDisplay])
def test_mistakes_are_named(display, iris, bayes):
    *_, X, y = iris
    with pytest.raises(ValueError, match=r"y must hold labels .*'lily'.* got \['tulip'\]; leave"):
        display.from_estimator(bayes, X, np.where(y == "lily", "tulip", y))
    with pytest.raises(TypeError, match="must have predict_proba, got LinearSVC; wrap it"):
        display.from_estimator(LinearSVC().fit(X, y), X, y)
    blind = SimpleNamespace(predict_proba=bayes.predict_proba)
    with pytest.raises(TypeError, match="must have classes_, got SimpleNamespace without"):
        display.from_estimator(blind, X, y)


def test_vacuity_of_known_and_other_inputs(iris, dip):
    _, _, X, _ = iris
    shown = VacuityHistogramDisplay.from_estimator(dip, X, ood={"far": X + 9}, threshold=0.9)
    heights = {name: patch.get_data().values for name, patch in shown.outlines_.items()}
    assert list(heights) == ["ID", "far"] and heights["far"][-1] == pytest.approx(1.0)
    assert heights["ID"].sum() == pytest.approx(1.0) and heights["ID"][-1] < 0.5
    again = VacuityHistogramDisplay.from_predictions(**shown_parts(shown), bins=36)
    np.testing.assert_array_equal(again.outlines_["ID"].get_data().values, heights["ID"])
    with pytest.raises(TypeError, match="must be a DIPClassifier"):
        VacuityHistogramDisplay.from_estimator(GaussianNB().fit(X, np.arange(50) % 2), X)


def shown_parts(shown):
    known, far = shown.vacuity.values()
    return {"vacuity": known, "ood": {"far": far}}


def test_map_asks_the_classifier_at_the_points_it_paints():
    X, y = np.array([[0.0, 0.0], [2.0, 4.0]]), ["a", "b"]
    clf = SimpleNamespace(uncertainty=lambda Z, kind: Z[:, 0] + 10 * Z[:, 1])
    shown = EvidenceMapDisplay.from_estimator(clf, X, y, kind="total", grid=5)
    assert list(shown.image_.get_extent()) == [-1, 3, -2, 6]
    across, up = np.linspace(-1, 3, 5), np.linspace(-2, 6, 5)
    np.testing.assert_allclose(shown.image_.get_array(), across[None, :] + 10 * up[:, None])
    assert shown.image_.origin == "lower" and shown.ax_.get_title() == "total"
    with pytest.raises(ValueError, match=r"X must have shape \(n, 2\), got \(3, 3\)"):
        EvidenceMapDisplay.from_estimator(clf, np.eye(3), y)


def test_maps_can_share_one_scale_and_one_colour_bar():
    X, y = np.array([[0.0, 0.0], [2.0, 4.0]]), [0, 1]
    values = np.linspace(0, 0.25, 9).reshape(3, 3)
    shown = EvidenceMapDisplay(values, (-1.0, 3.0, -2.0, 6.0), X, y)
    own = shown.plot().image_
    assert own.get_clim() == (0, 0.25) and own.colorbar is not None
    shared = shown.plot(top=1.0, colorbar=False)
    assert shared.image_.get_clim() == (0, 1) and shared.figure_.axes == [shared.ax_]


def test_map_of_a_table_is_bright_far_away(iris):
    pd = pytest.importorskip("pandas")
    X, y = iris[:2]
    table = pd.DataFrame(X[:, 2:], columns=["length", "width"])
    clf = DIPClassifier(GaussianNB(), GDADensity()).fit(table, y)
    values = EvidenceMapDisplay.from_estimator(clf, table, y, grid=21).values
    assert values[0, -1] > 0.99 > values.min()


def test_a_notebook_shows_the_figure_once(iris, bayes):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    shown = RiskCoverageDisplay.from_estimator(bayes, *iris[2:])
    picture, size = shown._repr_png_()
    assert picture[1:4] == b"PNG"
    width, height = struct.unpack(">II", picture[16:24])
    assert (width, height) == (2 * size["width"], 2 * size["height"])
    figure, ax = pyplot.subplots()
    assert shown.plot(ax)._repr_png_() is None, "pyplot shows its figures itself"
    pyplot.close(figure)
    assert RiskCoverageDisplay([True], [0.1])._repr_png_() is None
