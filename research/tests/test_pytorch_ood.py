"""Post-hoc scores beside those of the same names in pytorch-ood, where it is installed."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

try:
    import pytorch_ood  # noqa: F401
except (ImportError, RuntimeError) as error:  # the latter of a torchvision for another torch
    pytest.skip(f"pytorch_ood: {error}", allow_module_level=True)
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import post_hoc_scores

NAMES = (
    *("MaxSoftmax", "PredictiveEntropy", "Energy", "MaxLogit", "GEN", "KLMatching", "Mahalanobis"),
    *("RelativeMahalanobis", "KNNDistance", "NNGuide", "FDBD", "NCI", "ViM", "ReAct", "ASH"),
    *("SCALE", "DICE"),
)


@pytest.fixture(scope="module")
def differences():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), 100)
    Z = np.maximum(rng.normal(size=(500, 24)) + 1.5 * rng.normal(size=(5, 24))[y], 0)
    model = LogisticRegression(C=0.1, max_iter=500).fit(Z, y)
    new = np.concatenate([Z[::5], np.maximum(rng.normal(size=(100, 24)), 0)])
    with post_hoc_scores.in_double():
        return post_hoc_scores.differences(Z, y, new, (model.coef_, model.intercept_))


@pytest.mark.parametrize("name", NAMES)
def test_scores_agree_with_those_of_pytorch_ood(differences, name):
    assert differences[name] < 1e-5


def test_all_scores_that_both_have_are_compared(differences):
    assert set(differences) == set(NAMES)
