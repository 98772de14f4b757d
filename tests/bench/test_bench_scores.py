"""Metrics of a row, against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score

from dipedl.bench import load_arrays
from dipedl.bench.scores import score
from dipedl.bench.synthetic import write_synthetic_store


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    root = tmp_path_factory.mktemp("store")
    write_synthetic_store(root, methods=["max-softmax"], seeds=[10], ood=["kmnist", "omniglot"])
    return load_arrays("mnist", "smoke", "max-softmax", 10, out=root)


def test_names_are_those_of_the_paper_s_tables_and_more(arrays):
    per_set = ("auroc", "aupr", "aupr_in", "fpr95", "brier_ood")
    expected = {"accuracy", "brier_id", "nll", "ece", "adaptive_ece"} | {
        f"{name}/{ood}" for name in per_set for ood in ("kmnist", "omniglot")
    }
    assert set(score(arrays).metrics) == expected


def test_values_against_scikit_learn(arrays):
    metrics, test, ood = score(arrays).metrics, arrays["test"], arrays["ood/kmnist"]
    P, y = test["probabilities"], test["y"]
    assert metrics["accuracy"] == np.mean(P.argmax(axis=1) == y)
    assert metrics["brier_id"] == pytest.approx(((P - np.eye(10)[y]) ** 2).sum(axis=1).mean())
    assert metrics["nll"] == pytest.approx(log_loss(y, P, labels=np.arange(10)))
    is_out = np.repeat([0, 1], [len(P), len(ood["uncertainty"])])
    u = np.concatenate([test["uncertainty"], ood["uncertainty"]])
    assert metrics["auroc/kmnist"] == pytest.approx(roc_auc_score(is_out, u))
    assert metrics["aupr/kmnist"] == pytest.approx(average_precision_score(is_out, u))
    assert metrics["aupr_in/kmnist"] == pytest.approx(average_precision_score(1 - is_out, -u))
    flagged = u[is_out == 0] >= np.sort(u[is_out == 1])[-38]  # 38 of 40 are 95 %
    assert metrics["fpr95/kmnist"] == pytest.approx(flagged.mean())
    assert metrics["brier_ood/kmnist"] == pytest.approx(
        ((ood["probabilities"] - 0.1) ** 2).sum(axis=1).mean()
    )


def test_baselines_are_the_shares_of_the_positive_class(arrays):
    assert score(arrays).baselines == {
        "aupr/kmnist": 40 / 90,
        "aupr_in/kmnist": 50 / 90,
        "aupr/omniglot": 40 / 90,
        "aupr_in/omniglot": 50 / 90,
    }


def test_intervals_hold_the_value_and_can_be_had_again(arrays):
    scores = score(arrays, 60)
    assert scores.intervals.keys() == scores.metrics.keys()
    for name, (low, high) in scores.intervals.items():
        # resamples of a calibration error lie above it
        assert name.endswith("ece") or low <= scores.metrics[name] <= high
    assert scores == score(arrays, 60)
    assert score(arrays).intervals == {}


def test_the_uncertainty_of_no_evidence_is_ranked_too(arrays):
    named = {**arrays["ood/kmnist"], "uncertainty": np.full(40, np.inf)}
    metrics = score({"test": arrays["test"], "ood/kmnist": named}).metrics
    assert metrics["auroc/kmnist"] == 1.0


def test_answers_that_are_no_probabilities_are_refused(arrays):
    wrong = {**arrays["test"], "probabilities": arrays["test"]["probabilities"] * 2}
    with pytest.raises(ValueError, match="sum to one"):
        score({**arrays, "test": wrong})
