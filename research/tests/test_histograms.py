import numpy as np
import pytest

pytest.importorskip("matplotlib")

from synthetic_store import write_synthetic_store

from dipedl import Dirichlet
from dipedl_bench.report.figures import confidence, histogram, vacuity


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    store = write_synthetic_store(tmp_path_factory.mktemp("results"), methods=["dip-edl"])
    return [store.arrays_of(row) for row in store.rows()]


def test_known_images_first_then_the_others(runs):
    assert list(confidence(runs)) == ["test", "kmnist", "omniglot", "omniglot_inverted"]


def test_confidence_by_a_loop(runs):
    expected = [max(row) for run in runs for row in run["ood/kmnist"]["probabilities"]]
    np.testing.assert_array_equal(confidence(runs)["kmnist"], expected)


def test_vacuity_is_that_of_the_dirichlet(runs):
    expected = [Dirichlet(run["test"]["concentration"]).vacuity for run in runs]
    np.testing.assert_allclose(vacuity(runs)["test"], np.concatenate(expected), rtol=1e-9)


def test_vacuity_of_huge_and_of_no_evidence():
    named = {"probabilities": np.eye(10)[:3], "log_evidence": np.array([800.0, -np.inf, -50.0])}
    values = vacuity([{"test": named}])["test"]
    assert values[0] == 0.0 < 1e-300 and values[1] == 1.0 and values[2] == 1.0


def test_heights_are_shares(runs):
    ax = histogram(vacuity(runs), "vacuity")
    outlines = [patch for patch in ax.patches if not patch.get_fill()]
    assert len(outlines) == 4
    assert all(patch.get_data().values.sum() == pytest.approx(1) for patch in outlines)
    assert [t.get_text() for t in ax.get_legend().get_texts()][:2] == ["Known images", "K-MNIST"]


def test_given_axes_are_drawn_on(runs):
    ax = histogram(confidence(runs), "confidence")
    ax.clear()
    assert histogram(confidence(runs), "confidence", ax) is ax and ax.get_legend() is None
    assert ax.get_xlabel().startswith("confidence")


def test_methods_without_evidence_are_refused():
    with pytest.raises(LookupError, match="must hold log_evidence for a vacuity"):
        vacuity([{"test": {"probabilities": np.eye(2)}}])
