"""The guarantee: on inputs that it flags no model is surer than its bare classifier."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs, make_classification
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from dipedl import DIPClassifier
from dipedl.apps.monitor.windows import held_out_rows
from dipedl.calibration import Temperature
from dipedl.density import GDADensity
from dipedl.dirichlet import entropy
from dipedl.evidence_model import calibrate_in_share, sharpening_range, sharpening_ranks
from dipedl.explanation import diagnose
from dipedl.held_out import HeldOut
from dipedl.pretrained import DIPModule
from weekly import sample_of


@pytest.fixture(scope="module")
def study(benchmark):
    """The benchmark that looks at a million inputs; these are a few of them."""
    return benchmark("guarantee")


class PerClassIsotonic:
    """A calibrator that is no temperature: one-vs-rest, and then normalised."""

    def fit(self, P, y, sample_weight=None):
        self.maps_ = [
            IsotonicRegression(out_of_bounds="clip").fit(P[:, c], y == c) for c in range(P.shape[1])
        ]
        return self

    def transform(self, P):
        Q = np.column_stack([m.predict(P[:, c]) for c, m in enumerate(self.maps_)]) + 1e-9
        return Q / Q.sum(axis=1, keepdims=True)


def small(n=500):
    return make_classification(n, 6, n_informative=4, n_classes=3, random_state=1)


@pytest.mark.parametrize(
    ("classifier", "density"),
    [
        *(("forest", "gaussians"), ("logistic", "neighbours"), ("bayes", "relative")),
    ],
)
def test_no_flagged_input_is_surer_than_the_bare_classifier(classifier, density, study, rng):
    X, y = small()
    parts = study.CLASSIFIERS[classifier], study.DENSITIES[density]
    clf = DIPClassifier(*parts, random_state=0).fit(X, y)
    ask = study.of_classifier(clf)
    for rows in (study.wild(X, 2000, rng), study.at_threshold(ask, X, 400, rng)):
        inputs, flagged, violations = study.counts(ask, rows, study.ROUNDING)
        assert (inputs, flagged > 100, violations) == (len(rows), True, 0)


def test_the_timid_classifiers_here_are_sharpened_on_typical_inputs(study):
    X, y = study.rows()
    clf = DIPClassifier(study.CLASSIFIERS["forest"], random_state=0).fit(X, y)
    assert clf.evidence_.calibrator_.temperature_ < 0.8
    scores, (_, high) = clf.score_samples(X), clf.evidence_.sharpening_
    typical = X[scores >= high]
    bare = clf.estimator_.predict_proba(typical)
    sharpened = bare ** (1 / clf.evidence_.temperature_)
    sharpened /= sharpened.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.proba_and_scores(typical)[0], sharpened, rtol=1e-9)
    assert sharpened.max(axis=1).mean() > bare.max(axis=1).mean() + 0.05


def test_the_guarantee_holds_with_a_calibrator_that_is_no_temperature(study, rng):
    X, y = small()
    clf = DIPClassifier(GaussianNB(), GDADensity(), calibrator=PerClassIsotonic()).fit(X, y)
    assert study.counts(study.of_classifier(clf), study.wild(X, 4000, rng), 1e-12)[2] == 0
    bare = clf.estimator_.predict_proba(X)
    full, none = (
        calibrate_in_share(clf.evidence_.calibrator_, bare, w, None) for w in np.eye(2)[:, :1]
    )
    surer = (full.max(1) > bare.max(1)) | (entropy(full) < entropy(bare))
    assert surer.any() and not surer.all()
    np.testing.assert_array_equal(none[surer], bare[surer])
    np.testing.assert_array_equal(none[~surer], full[~surer])


class Sharpening:
    """A calibrator that makes every answer surer, with a temperature."""

    temperature_ = 0.5

    def fit(self, P, y, sample_weight=None):
        return self

    def transform(self, P):
        return P**2 / (P**2).sum(axis=1, keepdims=True)


class OwnTemperature(Temperature):
    """A temperature of another class: what it gives is mixed."""


@pytest.mark.parametrize("calibrator", [None, Temperature(), OwnTemperature(), Sharpening()])
def test_confidence_is_that_of_the_calibrated_classifier_without_the_density(calibrator, rng):
    X, y = small()
    timid = LogisticRegression(C=1e-3)
    clf = DIPClassifier(timid, GDADensity(), calibrator=calibrator).fit(X, y)
    Q = X + rng.normal(size=X.shape)
    expected = clf.classifier_proba(Q).max(axis=1)
    assert (expected > clf.estimator_.predict_proba(Q).max(axis=1) + 0.01).mean() > 0.5
    np.testing.assert_allclose(clf.answers(Q).confidence, expected, rtol=1e-12)
    bare = clf.evidence_.held_out_.bare_proba
    full = clf.evidence_.calibrate_in_full(bare).max(axis=1)
    np.testing.assert_allclose(held_out_rows(clf).confidence, full, rtol=1e-12)


@pytest.mark.parametrize("score", ["fused", "density"])
def test_the_guarantee_holds_for_modules(score, study):
    X = torch.randn(800, 2, generator=torch.Generator().manual_seed(0))
    y = (X[:, 0] > 0).long()
    network = torch.nn.Linear(2, 2, bias=False)
    network.weight.data.copy_(torch.tensor([[-0.3, 0.0], [0.3, 0.0]]))
    model = DIPModule(network.eval(), score=score).fit_density([(X, y)])
    assert float(model.head.temperature) < 0.8
    Q = torch.from_numpy(study.wild(X.double().numpy(), 20_000, np.random.default_rng(0))).float()
    flagged = model.predict_ood(Q) == -1
    bare = torch.softmax(network(Q), dim=1)
    P = model(Q).mean
    assert int(flagged.sum()) > 2000
    assert not (P.max(1).values > bare.max(1).values + 1e-6)[flagged].any()
    typical = model.score_samples(X) >= model.head.sharp_in_full
    bare_typical = torch.softmax(network(X[typical]), dim=1).max(1).values
    assert (model(X[typical]).mean.max(1).values > bare_typical).float().mean() > 0.9


def test_the_range_begins_at_the_alarm_threshold_and_ends_at_the_median_at_the_latest(rng):
    scores = np.sort(rng.normal(size=1000))
    assert sharpening_ranks(HeldOut(scores, ""), scores[49]) == range(49, 500)
    weights = np.repeat([1.0, 3.0], 500)
    median = sharpening_ranks(HeldOut(scores, "", weights), scores[49])[-1]
    assert scores[median] == np.sort(np.repeat(scores, weights.astype(int)))[999]
    # Where no input can be flagged the lowest finite score takes the place of the threshold.
    assert sharpening_ranks(HeldOut(np.r_[-np.inf, scores], ""), -np.inf)[0] == 1
    assert not sharpening_ranks(HeldOut(np.full(2, -np.inf), ""), 0.0)
    low, high = sharpening_range(np.full(9, -1e6), 0, 4)
    assert np.float32(low) < np.float32(high)


@pytest.mark.parametrize(
    "calibrator", sample_of([None, Temperature(), OwnTemperature(), Sharpening()], 0, 2)
)
def test_losses_before_the_calibrator_are_those_of_the_bare_classifier(calibrator):
    X, y = make_blobs(600, centers=3, cluster_std=3.0, random_state=0)
    timid = LogisticRegression(C=1e-4)
    clf = DIPClassifier(timid, GDADensity(), calibrator=calibrator).fit(X, y)
    assert clf.evidence_.calibrator_.temperature_ < 0.8
    bare = DIPClassifier(timid, GDADensity(), calibrator="passthrough").fit(X, y)
    P, labels = bare.evidence_.held_out_.proba, bare.evidence_.held_out_.labels
    (numbers,) = (f.numbers for f in diagnose(clf).findings if "nll_before" in f.numbers)
    nll = -np.log(P[np.arange(len(P)), labels]).mean()
    assert numbers["nll_before"] == pytest.approx(nll, rel=1e-9)
