"""The guarantee: on inputs that it flags no model is surer than its bare classifier."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from dipedl import DIPClassifier
from dipedl.calibration._sharpening import calibrated_in_share, sharpening_range
from dipedl.calibration.held_out import HeldOut
from dipedl.density import GDADensity, KNNDensity, RelativeDensity
from dipedl.maths.scores import entropy
from dipedl.pretrained import DIPModule

CLASSIFIERS = {
    "forest": RandomForestClassifier(20, min_samples_leaf=8, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=8, learning_rate=0.03, random_state=0),
    "logistic": LogisticRegression(C=1e-3, max_iter=500),
    "bayes": GaussianNB(var_smoothing=0.3),
    "neighbours": KNeighborsClassifier(40),
}
DENSITIES = {
    "default": None,
    "gaussians": GDADensity(),
    "neighbours": KNNDensity(),
    "relative": RelativeDensity(),
}


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


def wild(X, n, rng):
    """Inputs near, between, far, on the axes, at the ends of the range."""
    row = X[rng.integers(0, len(X), n)]
    spread = X.std(axis=0) + 1e-3
    scale = 10.0 ** rng.uniform(-2, 6, (n, 1))
    moved = row + rng.normal(size=row.shape) * spread * np.where(rng.random((n, 1)) < 0.5, 1, scale)
    one = rng.integers(0, X.shape[1], n)
    axis = row.copy()
    axis[np.arange(n), one] += rng.choice([-1, 1], n) * scale[:, 0]
    mixed = (row + X[rng.integers(0, len(X), n)]) / 2
    kind = rng.integers(0, 4, (n, 1))
    return np.choose(kind, [row, moved, axis, mixed])


def violations(clf, X, n, rng):
    """How many of n inputs break the guarantee, and how many of them are flagged."""
    Q = wild(X, n, rng)
    P, bare = clf.predict_proba(Q), clf.estimator_.predict_proba(Q)
    flagged = clf.p_value(Q) <= clf.false_alarm_rate
    assert np.array_equal(flagged, clf.predict_ood(Q) == -1)
    surer = P.max(axis=1) > bare.max(axis=1) + 1e-12
    surer |= clf.uncertainty(Q, "total") < entropy(bare) - 1e-12
    # Not even before the evidence takes confidence away.
    surer |= clf._proba_and_scores(Q)[0].max(axis=1) > bare.max(axis=1) + 1e-12
    return int((surer & flagged).sum()), int(flagged.sum())


def fitted(classifier, density, calibrator=None, rows=None):
    X, y = load_digits(return_X_y=True) if rows is None else rows
    X, y = X[y < 8][:600], y[y < 8][:600]
    return DIPClassifier(classifier, density, calibrator=calibrator, random_state=0).fit(X, y), X


@pytest.mark.parametrize("density", ["gaussians", "neighbours", "relative"])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_no_flagged_input_is_surer_than_the_bare_classifier(classifier, density, rng):
    rows = make_classification(500, 6, n_informative=4, n_classes=3, random_state=1)
    clf, X = fitted(CLASSIFIERS[classifier], DENSITIES[density], rows=rows)
    broken, flagged = violations(clf, X, 2000, rng)
    assert (broken, flagged > 300) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_million_inputs_and_none_is_surer(classifier, density):
    rng, broken = np.random.default_rng(7), 0
    clf, X = fitted(CLASSIFIERS[classifier], DENSITIES[density])
    for _ in range(10):
        broken += violations(clf, X, 5000, rng)[0]
    assert broken == 0


def test_the_timid_classifiers_here_are_sharpened_on_typical_inputs():
    clf, X = fitted(CLASSIFIERS["forest"], None)
    assert clf.evidence_.calibrator_.temperature_ < 0.8
    scores, (_, high) = clf.score_samples(X), clf.evidence_.sharpening_
    typical = X[scores >= high]
    sharpened = clf.classifier_proba(typical)
    np.testing.assert_allclose(clf._proba_and_scores(typical)[0], sharpened, rtol=1e-12)
    bare = clf.estimator_.predict_proba(typical)
    assert sharpened.max(axis=1).mean() > bare.max(axis=1).mean() + 0.05


def test_the_guarantee_holds_with_a_calibrator_that_is_no_temperature(rng):
    rows = make_classification(500, 6, n_informative=4, n_classes=3, random_state=1)
    clf, X = fitted(GaussianNB(), GDADensity(), PerClassIsotonic(), rows)
    assert violations(clf, X, 4000, rng)[0] == 0
    bare = clf.estimator_.predict_proba(X)
    full, none = (calibrated_in_share(clf.evidence_.calibrator_, bare, w) for w in np.eye(2)[:, :1])
    surer = (full.max(1) > bare.max(1)) | (entropy(full) < entropy(bare))
    assert surer.any() and not surer.all()
    np.testing.assert_array_equal(none[surer], bare[surer])
    np.testing.assert_array_equal(none[~surer], full[~surer])


@pytest.mark.parametrize("score", ["fused", "density"])
def test_the_guarantee_holds_for_modules(score):
    X = torch.randn(800, 2, generator=torch.Generator().manual_seed(0))
    y = (X[:, 0] > 0).long()
    network = torch.nn.Linear(2, 2, bias=False)
    network.weight.data.copy_(torch.tensor([[-0.3, 0.0], [0.3, 0.0]]))
    model = DIPModule(network.eval(), score=score).fit_density([(X, y)])
    assert float(model.head.temperature) < 0.8
    Q = torch.from_numpy(wild(X.double().numpy(), 20_000, np.random.default_rng(0))).float()
    flagged = model.predict_ood(Q) == -1
    bare = torch.softmax(network(Q), dim=1)
    P = model(Q).mean
    assert int(flagged.sum()) > 2000
    assert not (P.max(1).values > bare.max(1).values + 1e-6)[flagged].any()
    typical = model.score_samples(X) >= model.head.sharp_in_full
    bare_typical = torch.softmax(network(X[typical]), dim=1).max(1).values
    assert (model(X[typical]).mean.max(1).values > bare_typical).float().mean() > 0.9


def test_the_range_is_from_the_alarm_threshold_to_the_95_percent_quantile(rng):
    scores = np.sort(rng.normal(size=1000))
    held = HeldOut(scores, "")
    assert sharpening_range(held, scores[49]) == (scores[49], scores[949])
    weights = np.repeat([1.0, 3.0], 500)
    low, high = sharpening_range(HeldOut(scores, "", weights), scores[49])
    assert high == np.sort(np.repeat(scores, weights.astype(int)))[1899]
    # Where no input can be flagged the lowest finite score takes the place of the threshold.
    assert sharpening_range(HeldOut(np.r_[-np.inf, scores], ""), -np.inf)[0] == scores[0]
    low, high = sharpening_range(HeldOut(np.full(9, -1e6), ""), -1e6)
    assert np.float32(low) < np.float32(high)
