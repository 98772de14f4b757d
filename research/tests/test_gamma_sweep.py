import numpy as np
import pytest
from scipy.special import expit
from small_parts import small_parts

from dipedl_bench.studies.sweeps import GAMMAS, gamma_sweep


@pytest.fixture(scope="module")
def rows(parts):
    return gamma_sweep(parts)


def test_ranking_and_accuracy_do_not_move(rows):
    fixed = [name for name in rows[1.0] if not name.startswith("brier")]
    assert len(fixed) == 5
    for gamma in GAMMAS:
        assert {n: rows[gamma][n] for n in fixed} == {n: rows[1.0][n] for n in fixed}


@pytest.mark.parametrize("gamma", GAMMAS)
def test_brier_from_the_closed_form(parts, rows, gamma):
    """OOD Brier is (1 - u)^2 |p - 1/k|^2, and the mean is (1 - u) p + u / k."""
    k = 5
    for split in parts.unknown:
        u = expit(np.log(k) - np.log(gamma * parts.n) - parts.z[split])
        distance = np.square(parts.proba[split] - 1 / k).sum(axis=1)
        expected = np.mean((1 - u) ** 2 * distance)
        assert rows[gamma][f"brier_ood/{split}"] == pytest.approx(expected, rel=1e-9)
    u = expit(np.log(k) - np.log(gamma * parts.n) - parts.z["test"])[:, None]
    mean = (1 - u) * parts.proba["test"] + u / k
    expected = np.square(mean - np.eye(k)[parts.y]).sum(axis=1).mean()
    assert rows[gamma]["brier_id"] == pytest.approx(expected, rel=1e-9)


def test_half_of_the_confidence_is_lost_where_the_formula_says():
    parts = small_parts(n=40_000, k=10)
    z = {"test": np.zeros(60), "near": np.full(70, -8.294), "far": np.zeros(30)}
    halved = type(parts)(parts.n, parts.y, parts.proba, z)
    value = gamma_sweep(halved, (1.0,))[1.0]["brier_ood/near"]
    full = np.square(parts.proba["near"] - 0.1).sum(axis=1).mean()
    assert value == pytest.approx(full / 4, rel=2e-4)
