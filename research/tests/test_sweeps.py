"""Ablation, sweeps over gamma and sigma, and the parts that they derive from."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit
from small_parts import small_parts
from synthetic_store import write_synthetic_store

from dipedl_bench.studies.sweeps import (
    CONFIGURATIONS,
    GAMMAS,
    Parts,
    ablation,
    float32_ranking,
    gamma_sweep,
    load_parts,
    parts_file,
    parts_from_arrays,
    sigma_corruption,
    sweep_lines,
    write_parts,
)

NAMES = [c.name for c in CONFIGURATIONS]


@pytest.fixture(scope="module")
def ablations(parts):
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
def test_cells_against_fractions(parts, ablations, kept):
    for name, value in naive_scores(parts, kept).items():
        assert ablations[kept.name][name] == pytest.approx(value, rel=1e-9, abs=1e-15), name


@pytest.mark.parametrize("kept", CONFIGURATIONS, ids=NAMES)
def test_ranking_is_that_of_the_density_or_none(parts, ablations, kept):
    for split in parts.unknown:
        expected = pairs_won(-parts.z["test"], -parts.z[split]) if kept.density else 0.5
        assert ablations[kept.name][f"auroc/{split}"] == pytest.approx(expected, abs=1e-12)


def test_constant_evidence_ties_exactly(parts, ablations):
    for name in ("1a", "1c", "2b"):
        for split in parts.unknown:
            m, m_in = len(parts.z[split]), len(parts.y)
            assert ablations[name][f"auroc/{split}"] == 0.5
            assert ablations[name][f"aupr/{split}"] == pytest.approx(m / (m + m_in), rel=1e-12)


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


def test_confidence_ranks_where_evidence_cannot(parts, ablations):
    for name in ("1c", "2b"):
        for split in parts.unknown:
            doubt = {s: 1 - p.max(axis=1) for s, p in parts.proba.items()}
            expected = pairs_won(doubt["test"], doubt[split])
            assert ablations[name][f"auroc_confidence/{split}"] == pytest.approx(expected, abs=1e-9)
    assert not any("confidence" in key for key in ablations["2a"])


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


@pytest.fixture(scope="module")
def gammas(parts):
    return gamma_sweep(parts)


def test_ranking_and_accuracy_do_not_move(gammas):
    fixed = [name for name in gammas[1.0] if not name.startswith("brier")]
    assert len(fixed) == 5
    for gamma in GAMMAS:
        assert {n: gammas[gamma][n] for n in fixed} == {n: gammas[1.0][n] for n in fixed}


@pytest.mark.parametrize("gamma", GAMMAS)
def test_brier_from_the_closed_form(parts, gammas, gamma):
    """OOD Brier is (1 - u)^2 |p - 1/k|^2, and the mean is (1 - u) p + u / k."""
    k = 5
    for split in parts.unknown:
        u = expit(np.log(k) - np.log(gamma * parts.n) - parts.z[split])
        distance = np.square(parts.proba[split] - 1 / k).sum(axis=1)
        expected = np.mean((1 - u) ** 2 * distance)
        assert gammas[gamma][f"brier_ood/{split}"] == pytest.approx(expected, rel=1e-9)
    u = expit(np.log(k) - np.log(gamma * parts.n) - parts.z["test"])[:, None]
    mean = (1 - u) * parts.proba["test"] + u / k
    expected = np.square(mean - np.eye(k)[parts.y]).sum(axis=1).mean()
    assert gammas[gamma]["brier_id"] == pytest.approx(expected, rel=1e-9)


@pytest.fixture(scope="module")
def sigmas(parts):
    return sigma_corruption(parts)


def test_no_noise_is_the_method_itself(parts, sigmas):
    assert sigmas[0.0] == [gamma_sweep(parts, (1.0,))[1.0]]


def test_noise_is_scaled_and_shared(parts, sigmas):
    """Draw 1 by hand: one stream of normals through the splits in their order."""
    rng = np.random.default_rng(1)
    z = {split: values + 5 * rng.standard_normal(len(values)) for split, values in parts.z.items()}
    noisy = type(parts)(parts.n, parts.y, parts.proba, z)
    assert sigmas[5.0][1] == gamma_sweep(noisy, (1.0,))[1.0]


def test_noise_alone_knows_nothing():
    parts = small_parts(rows=4000)
    draws = sigma_corruption(parts, (np.inf,))[np.inf]
    values = [row["auroc/far"] for row in draws]
    # sd of the AUROC of unrelated scores, 4,000 against 2,000, is about 0.008
    assert np.abs(np.mean(values) - 0.5) < 4 * 0.008 / np.sqrt(5)
    assert 0 < np.std(values) < 0.03


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return write_synthetic_store(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def stored(store):
    return load_parts(store)


def test_parts_are_those_of_the_store(store, stored):
    assert list(stored) == [10, 20]
    row = next(r for r in store.rows() if r["method"] == "dip-edl" and r["seed"] == 20)
    one, own = stored[20], store.arrays_of(row)
    assert one.n == 60 and one.unknown == ("kmnist", "omniglot", "omniglot_inverted")
    np.testing.assert_allclose(one.z["kmnist"] + np.log(60), own["ood/kmnist"]["log_evidence"])
    classifier = store.arrays_of(row, "classifier")
    np.testing.assert_array_equal(one.proba["test"], classifier["test"]["probabilities"])


def test_gamma_is_taken_out_of_the_evidence(store):
    row = next(r for r in store.rows() if r["method"] == "dip-edl")
    arrays = store.arrays_of(row), store.arrays_of(row, "classifier")
    one, ten = (parts_from_arrays(*arrays, gamma) for gamma in (1.0, 10.0))
    np.testing.assert_allclose(one.z["test"] - ten.z["test"], np.log(10))


def test_lines_are_means_ci95_seeds(stored):
    lines = {line.name: line for line in sweep_lines("ablation", stored.values(), "mnist")}
    runs = [ablation(one) for one in stored.values()]
    cell = lines["3"].cells["auroc/kmnist"]
    assert cell.values == tuple(run["3"]["auroc/kmnist"] for run in runs)
    assert cell.paper.mean == 0.9998 and cell.paper.sd is None and cell.differs is None
    assert lines["2b"].cells["auroc/kmnist"].paper.mean == 0.5138
    assert lines["3"].cells["auroc/omniglot_inverted"].paper is None


def test_sigma_lines_spread_over_draws_not_ci95_seeds(stored):
    lines = {line.name: line for line in sweep_lines("sigma", stored.values(), "mnist")}
    draws = [sigma_corruption(one, (2.0,))[2.0] for one in stored.values()]
    values = np.array([[draw["auroc/kmnist"] for draw in of_seed] for of_seed in draws])
    cell = lines["2"].cells["auroc/kmnist"]
    assert cell.mean == pytest.approx(values.mean())
    assert cell.sd == pytest.approx(np.sqrt((values.std(axis=1) ** 2).mean()))
    assert len(cell.values) == 10 and lines["0"].cells["accuracy"].sd == 0
    assert lines["inf"].cells["auroc/kmnist"].paper.mean == 0.5016


def test_methods_without_parts_are_refused(store):
    for method in ("edl", "max-softmax"):
        with pytest.raises(LookupError, match="must be a DIP-EDL with a classifier of the suite"):
            load_parts(store, method)
    with pytest.raises(
        LookupError, match=r"run it first: dipedl-bench run mnist .*--methods energy"
    ):
        load_parts(store, "energy")


def test_published_and_stored_seeds_join(tmp_path):
    store = write_synthetic_store(tmp_path, methods=["dip-edl"])
    stored = load_parts(store)
    row = next(row for row in store.rows() if row["seed"] == 10)
    write_parts(parts_file(store, row), stored[10])
    assert list(load_parts(store)) == [10, 20]
