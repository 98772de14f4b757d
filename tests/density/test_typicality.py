"""The two-sided reading: its definition, its folds, and the failure that it is for."""

import numpy as np
import pytest
from scipy import stats
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score

from dipedl.calibration.crossfit import content_folds
from dipedl.density import GaussianDensity, GDADensity, TypicalityDensity
from dipedl.evidence import RankNormal


def test_it_is_the_log_density_of_the_held_out_normal_score(rng):
    X, new = rng.normal(size=(60, 3)), rng.normal(size=(30, 3))
    folds = content_folds(X, np.zeros(60), 4)
    held = []
    for j in range(4):
        part = GaussianDensity().fit(X).clone_with_selected().fit(X[folds != j])
        held.append(part.score_samples(X[folds == j]))
    r = RankNormal().fit(np.concatenate(held))
    expected = stats.norm.logpdf(r.transform(GaussianDensity().fit(X).score_samples(new)))
    score = TypicalityDensity(GaussianDensity(), cv=4).fit(X).score_samples(new)
    np.testing.assert_allclose(score, expected, rtol=1e-9)


def test_too_likely_is_flagged_where_the_density_itself_sees_nothing_foreign():
    rng = np.random.default_rng(1)
    X, new, dull = rng.normal(size=(500, 60)), rng.normal(size=(300, 60)), np.zeros((300, 60))
    dull += 0.3 * rng.normal(size=dull.shape)
    far = 2 * rng.normal(size=(300, 60))
    labels = np.repeat([0, 1], 300)
    plain, typical = GaussianDensity().fit(X), TypicalityDensity(GaussianDensity()).fit(X)

    def area(density, foreign):
        return roc_auc_score(labels, -density.score_samples(np.concatenate([new, foreign])))

    assert area(plain, dull) < 0.01 and area(typical, dull) > 0.98
    assert area(plain, far) > 0.98 and area(typical, far) > 0.98


def test_a_frozen_density_is_read_on_the_rows_given():
    rng = np.random.default_rng(2)
    X, held = rng.normal(size=(50, 2)), rng.normal(size=(40, 2))
    fitted = GaussianDensity().fit(X)
    model = TypicalityDensity(FrozenEstimator(fitted)).fit(held)
    r = RankNormal().fit(fitted.score_samples(held))
    np.testing.assert_allclose(
        model.score_samples(X), stats.norm.logpdf(r.transform(fitted.score_samples(X)))
    )


def test_labels_reach_the_density_and_folds_that_lack_a_class_do_not_break_it(rng):
    X, y = rng.normal(size=(62, 2)), np.array(["a"] * 30 + ["b"] * 30 + ["c"] * 2)
    model = TypicalityDensity().fit(X, y)
    np.testing.assert_allclose(
        model.density_.score_samples(X), GDADensity().fit(X, y).score_samples(X)
    )
    pairs = [(np.arange(30), np.arange(30, 62)), (np.arange(30, 62), np.arange(30))]
    assert np.isfinite(TypicalityDensity(cv=pairs).fit(X, y).score_samples(X)).all()
    with pytest.raises(ValueError, match="requires y"):
        TypicalityDensity().fit(X)
