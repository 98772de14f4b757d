"""Labels follow the class probabilities that come with the rows."""

import numpy as np
import pytest
from scipy import stats

from dipedl_bench.datasets import load_known_truth

SETTINGS = {
    "gaussians": {"k": 4, "d": 3, "unequal": True, "weights": [4, 2, 1, 1]},
    "logistic": {"k": 3, "d": 4, "shift": 1.0},
    "additive": {"k": 3, "d": 4},
    "moons": {"noise": 0.3, "flip": 0.1},
    "checker": {},
    "rings": {},
    "taught": {"inputs": "digits", "teacher": "logistic"},
}


@pytest.mark.parametrize("family", SETTINGS)
def test_labels_follow_the_truth(family):
    data = load_known_truth(family, SETTINGS[family], n_samples=300, n_test=3000)
    P = data.truth["test"]
    np.testing.assert_allclose(P.sum(axis=1), 1)
    # Sums over labels of what the truth expects are normal: 5 standard deviations.
    hits = P[np.arange(len(P)), data.y_test]
    variance = (P**3).sum(axis=1) - (P**2).sum(axis=1) ** 2
    assert abs((hits - (P**2).sum(axis=1)).sum()) < 5 * np.sqrt(variance.sum())
    assert data.truth["far"].shape == (len(data.ood["far"]), data.n_classes)


def test_the_truth_of_two_gaussians_is_bayes_rule():
    data = load_known_truth("gaussians", {"k": 2, "d": 1}, n_samples=20, n_test=50)
    rng = np.random.default_rng([0, 0])
    means = rng.normal(size=(2, 1)) * 2 / np.sqrt(2)
    one, two = (stats.norm.pdf(data.X_test[:, 0], mean) for mean in means[:, 0])
    np.testing.assert_allclose(data.truth["test"][:, 0], one / (one + two), rtol=1e-9)


def test_far_rows_are_the_third_beyond_one_plane():
    data = load_known_truth("logistic", {"k": 2, "d": 2}, n_samples=100, n_test=200)
    near = np.concatenate([data.X_train, data.X_test])
    w = data.ood["far"].mean(axis=0) - near.mean(axis=0)
    assert (data.ood["far"] @ w).min() > np.quantile(near @ w, 0.8)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="unknown family"):
        load_known_truth("cauchy")
    with pytest.raises(ValueError, match="n_samples must give every class"):
        load_known_truth("gaussians", {"k": 20, "d": 2}, n_samples=30)


@pytest.mark.parametrize(
    ("family", "settings", "told"),
    [
        ("gaussians", {"k": 1, "d": 2}, "probabilities of two classes or more"),
        ("moons", {"noise": 0.0, "flip": 0.1}, "probabilities of two classes or more"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value|divide by zero")
def test_settings_without_a_truth_are_refused(family, settings, told):
    with pytest.raises(ValueError, match=told):
        load_known_truth(family, settings, n_samples=50)
