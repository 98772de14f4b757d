"""Golden values, and every cell against loops over images in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from dipedl_bench.studies.sweeps import CONFIGURATIONS, Parts, ablation, float32_ranking

NAMES = [c.name for c in CONFIGURATIONS]


@pytest.fixture(scope="module")
def rows(parts):
    return ablation(parts)


def naive_alpha(parts, split, kept):
    """Concentrations in fractions: no rounding beyond that of the inputs and of exp."""
    alpha = []
    for p, z in zip(parts.proba[split], parts.z[split], strict=True):
        common = Fraction(1)
        if kept.n:
            common *= Fraction(parts.n)
        if kept.density:
            common *= Fraction(float(np.exp(z)))
        one = Fraction(1)
        alpha.append([1 + common * (Fraction(float(x)) if kept.classifier else one) for x in p])
    return alpha


def naive_scores(parts, kept):
    alpha = {split: naive_alpha(parts, split, kept) for split in parts.proba}
    mean = {s: [[a / sum(row) for a in row] for row in rows] for s, rows in alpha.items()}
    k = len(mean["test"][0])
    hits = [row.index(max(row)) == y for row, y in zip(mean["test"], parts.y, strict=True)]
    squares = [
        sum((m - (j == y)) ** 2 for j, m in enumerate(row))
        for row, y in zip(mean["test"], parts.y, strict=True)
    ]
    values = {
        "accuracy": sum(hits) / len(hits),
        "brier_id": float(sum(squares) / len(squares)),
    }
    for split in parts.unknown:
        distances = [sum((m - Fraction(1, k)) ** 2 for m in row) for row in mean[split]]
        values[f"brier_ood/{split}"] = float(sum(distances) / len(distances))
    return values


def pairs_won(u_in, u_out):
    won = sum((o > i) + (o == i) / 2 for o in u_out for i in u_in)
    return won / (len(u_in) * len(u_out))


@pytest.mark.parametrize("kept", CONFIGURATIONS, ids=NAMES)
def test_cells_against_fractions(parts, rows, kept):
    for name, value in naive_scores(parts, kept).items():
        assert rows[kept.name][name] == pytest.approx(value, rel=1e-9, abs=1e-15), name


@pytest.mark.parametrize("kept", CONFIGURATIONS, ids=NAMES)
def test_ranking_is_that_of_the_density_or_none(parts, rows, kept):
    for split in parts.unknown:
        expected = pairs_won(-parts.z["test"], -parts.z[split]) if kept.density else 0.5
        assert rows[kept.name][f"auroc/{split}"] == pytest.approx(expected, abs=1e-12)


def test_constant_evidence_ties_exactly(parts, rows):
    for name in ("1a", "1c", "2b"):
        for split in parts.unknown:
            m, m_in = len(parts.z[split]), len(parts.y)
            assert rows[name][f"auroc/{split}"] == 0.5
            assert rows[name][f"aupr/{split}"] == pytest.approx(m / (m + m_in), rel=1e-12)


def test_class_zero_is_the_answer_without_the_classifier(parts, rows):
    share = np.mean(parts.y == 0)
    assert all(rows[name]["accuracy"] == share for name in ("1a", "1b", "2a"))
    assert all(rows[name]["brier_id"] == pytest.approx(1 - 1 / 5) for name in ("1a", "1b", "2a"))


def test_golden_values_for_ten_classes():
    """A classifier that is sure and right: rows 1a and 1c of the paper's MNIST and CIFAR tables."""
    proba = {"test": np.eye(10), "ood": np.full((20, 10), 0.1)}
    rows = ablation(
        Parts(48_000, np.arange(10), proba, {"test": np.zeros(10), "ood": np.zeros(20)})
    )
    assert rows["1a"]["brier_id"] == pytest.approx(0.9, abs=1e-12)
    assert rows["1c"]["brier_id"] == pytest.approx(0.74380, abs=5e-6)
    assert rows["1a"]["accuracy"] == 0.1
    assert rows["2b"]["brier_id"] == pytest.approx(0, abs=1e-6)


def test_confidence_ranks_where_evidence_cannot(parts, rows):
    for name in ("1c", "2b"):
        for split in parts.unknown:
            doubt = {s: 1 - p.max(axis=1) for s, p in parts.proba.items()}
            expected = pairs_won(doubt["test"], doubt[split])
            assert rows[name][f"auroc_confidence/{split}"] == pytest.approx(expected, abs=1e-9)
    assert not any("confidence" in key for key in rows["2a"])


def test_float32_noise_is_not_half():
    """Sure answers sum to K + n exactly, unsure ones do not: noise that depends on the image."""
    rng = np.random.default_rng(0)
    sure = np.full((400, 10), 1e-9)
    sure[:, 3] = 1 - 9e-9
    proba = {"test": sure, "ood": rng.dirichlet(np.ones(10), 400)}
    z = {"test": np.zeros(400), "ood": np.zeros(400)}
    parts = Parts(48_000, np.full(400, 3), proba, z)
    noise = float32_ranking(parts)["2b"]["auroc/ood"]
    assert ablation(parts)["2b"]["auroc/ood"] == 0.5
    assert 1e-3 < abs(noise - 0.5) < 0.4
    assert set(float32_ranking(parts)["1c"]) == {"auroc/ood", "aupr/ood"}
