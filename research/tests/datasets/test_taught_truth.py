"""Labels drawn from the probabilities of a classifier on real inputs."""

import numpy as np

from dipedl_bench.datasets import load_known_truth

SETTINGS = {"inputs": "digits", "teacher": "logistic"}


def test_labels_follow_the_teacher():
    data = load_known_truth("taught", SETTINGS, n_samples=300, n_test=3000)
    P = data.truth["test"]
    np.testing.assert_allclose(P.sum(axis=1), 1)
    hits = P[np.arange(len(P)), data.y_test]
    variance = (P**3).sum(axis=1) - (P**2).sum(axis=1) ** 2
    assert abs((hits - (P**2).sum(axis=1)).sum()) < 5 * np.sqrt(variance.sum())
    assert data.truth["far"].shape == (len(data.ood["far"]), data.n_classes)
    assert load_known_truth("moons", n_samples=100, n_test=20).truth["test"].shape[1] == 2
