"""Metrics of a row, against scikit-learn."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, bootstrap
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    log_loss,
    recall_score,
    roc_auc_score,
)
from synthetic_store import arrays_of, write_synthetic_store

from dipedl.metrics import nll, ood_auroc
from dipedl_bench.results.scores import bootstrap_interval, errors_avoided, score


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    options = {"methods": ["max-softmax"], "seeds": [10], "ood": ["kmnist", "omniglot"]}
    store = write_synthetic_store(tmp_path_factory.mktemp("store"), **options)
    return arrays_of(store, "max-softmax", 10)


def test_values_against_scikit_learn(arrays):
    metrics, test, ood = score(arrays)["metrics"], arrays["test"], arrays["ood/kmnist"]
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
    assert score(arrays)["baselines"] == {
        "aupr/kmnist": 40 / 90,
        "aupr_in/kmnist": 50 / 90,
        "aupr/omniglot": 40 / 90,
        "aupr_in/omniglot": 50 / 90,
    }


def test_intervals_hold_the_value_and_can_be_had_again(arrays):
    found = score(arrays, 60)
    assert found["intervals"].keys() == found["metrics"].keys()
    for name, (low, high) in found["intervals"].items():
        # resamples of a calibration error lie above it
        assert name.endswith("ece") or low <= found["metrics"][name] <= high
    assert found == score(arrays, 60)
    assert score(arrays)["intervals"] == {}


def shifted(n=60, seed=0):
    """Answers to labelled rows of two classes, the second of them rare; some are wrong."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 6 == 0).astype(np.int64)
    first = np.where(rng.random(n) < 0.7, 1 - y, y) * 0.6 + 0.2
    return {
        "y": y,
        "probabilities": np.column_stack([first, 1 - first]),
        "uncertainty": rng.integers(0, 5, n) / 4,  # ties
    }


def test_labelled_rows_from_elsewhere_against_scikit_learn():
    test, other = shifted(), shifted(37, seed=1)
    found = score({"test": test, "shifted/real": other}, 100)
    metrics, y = found["metrics"], other["y"]
    guess = other["probabilities"].argmax(axis=1)
    assert metrics["accuracy/real"] == pytest.approx(accuracy_score(y, guess))
    assert metrics["balanced_accuracy/real"] == pytest.approx(balanced_accuracy_score(y, guess))
    recalls = recall_score(y, guess, average=None)
    assert [metrics[f"recall_{i}/real"] for i in range(2)] == pytest.approx(recalls)
    assert metrics["balanced_accuracy/real"] == pytest.approx(recalls.mean())
    brier = ((other["probabilities"] - np.eye(2)[y]) ** 2).sum(axis=1).mean()
    assert metrics["brier_id/real"] == pytest.approx(brier)
    assert metrics["nll/real"] == pytest.approx(log_loss(y, other["probabilities"]))
    assert {"ece/real", "errors_avoided_10/real"} < metrics.keys() == found["intervals"].keys()
    assert not any(name.endswith("/real") for name in found["baselines"])
    assert metrics["recall_1"] == recall_score(test["y"], test["probabilities"].argmax(axis=1))


def wilson(hits, n):
    return tuple(binomtest(hits, n).proportion_ci(method="wilson"))


def test_shares_of_few_rows_have_honest_intervals():
    """All five quasars right is no proof of a recall of one."""
    named = shifted(30)
    named["probabilities"] = np.eye(2)[named["y"]]
    intervals = score({"test": shifted(), "shifted/real": named}, 40)["intervals"]
    assert intervals["recall_1/real"] == pytest.approx(wilson(5, 5), abs=1e-6)
    assert intervals["recall_0/real"] == pytest.approx(wilson(25, 25), abs=1e-6)
    assert intervals["accuracy/real"] == pytest.approx(wilson(30, 30), abs=1e-6)
    assert intervals["recall_1/real"][0] < 0.6
    ends = np.array([wilson(5, 5), wilson(25, 25)])
    below = np.hypot(*(1 - ends[:, 0])) / 2  # both recalls are one
    assert intervals["balanced_accuracy/real"] == pytest.approx((1 - below, 1.0), abs=1e-6)


def test_errors_are_avoided_by_rejecting_the_least_trusted():
    named = shifted(40)
    wrong = named["probabilities"].argmax(axis=1) != named["y"]
    best = {**named, "uncertainty": wrong.astype(float)}
    assert score({"test": best})["metrics"]["errors_avoided_10"] == pytest.approx(4 / wrong.sum())
    blind = {**named, "uncertainty": np.zeros(40)}
    assert score({"test": blind})["metrics"]["errors_avoided_10"] == pytest.approx(0.1)
    sure = {**named, "probabilities": np.eye(2)[named["y"]]}
    assert score({"test": sure})["metrics"]["errors_avoided_10"] == 1.0


def errors_by_every_order(right, uncertainty, m):
    """Mean share of the errors among the m most uncertain, over all orders of tied rows."""
    shares = []
    for order in permutations(range(len(right))):
        ranked = [uncertainty[i] for i in order]
        if all(a >= b for a, b in pairwise(ranked)):
            wrong = [not right[i] for i in order]
            shares.append(sum(wrong[:m]) / sum(wrong))
    return np.mean(shares)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=1, max_size=6), st.data())
def test_errors_avoided_agree_with_every_order_of_ties(rows, data):
    right, uncertainty = map(np.array, zip(*rows, strict=True))
    m = data.draw(st.integers(1, len(right)))
    expected = 1.0 if right.all() else errors_by_every_order(right, uncertainty, m)
    found = errors_avoided(right, uncertainty, rejected=m / len(right))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_interval_of_paired_rows_agrees_with_scipy(rng):
    """Both ends are order statistics of independent draws: their ranks are compared."""
    x, resamples = rng.exponential(size=60), 3000
    y = x + rng.normal(size=60)

    def slope(a, b):
        return np.cov(a, b)[0, 1] / a.var(ddof=1)

    theirs = bootstrap(
        (x, y), slope, paired=True, vectorized=False, n_resamples=resamples, method="percentile"
    )
    drawn = np.sort(theirs.bootstrap_distribution)
    ends = bootstrap_interval(slope, (x, y), resamples, 0)
    for end, share in zip(ends, (0.025, 0.975), strict=True):
        rank, sd = np.searchsorted(drawn, end) / resamples, np.sqrt(share * (1 - share) / resamples)
        assert rank == pytest.approx(share, abs=5 * np.sqrt(2) * sd)


def test_samples_of_an_ood_metric_are_drawn_separately(rng):
    data, draws = (rng.normal(size=60), rng.normal(1, 1, size=40)), np.random.default_rng(3)
    values = sorted(
        ood_auroc(*(a[draws.integers(len(a), size=len(a))] for a in data)) for _ in range(50)
    )
    assert bootstrap_interval(ood_auroc, data, 50, 3) == [values[1], values[-2]]


def test_an_infinite_value_gives_an_infinite_end():
    data = np.array([0, 1]), np.array([[1.0, 0.0], [1.0, 0.0]])
    assert bootstrap_interval(nll, data, 1000, 0) == [0.0, np.inf]


def test_areas_with_ood_rows_are_those_of_the_joined_rows(arrays):
    metrics, test, ood = score(arrays)["metrics"], arrays["test"], arrays["ood/omniglot"]
    u = np.concatenate([test["uncertainty"], ood["uncertainty"]])
    wrong = np.r_[test["probabilities"].argmax(axis=1) != test["y"], np.ones(40, dtype=bool)]
    risks = np.cumsum(wrong[np.argsort(u)]) / np.arange(1, len(u) + 1)
    assert metrics["aurc/omniglot"] == pytest.approx(risks.mean())
    auroc, rate = roc_auc_score(wrong, u), wrong.mean()
    expected = (1 - auroc) * rate * (1 - rate) + rate**2 / 2
    assert metrics["augrc/omniglot"] == pytest.approx(expected)
