"""Figures of the pages: what is drawn of stored predictions."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("pydantic")

from synthetic_store import write_synthetic_store

from dipedl import Dirichlet
from dipedl_bench.report.figures import confidence, vacuity


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    store = write_synthetic_store(tmp_path_factory.mktemp("results"), methods=["dip-edl"])
    return [store.arrays_of(row) for row in store.rows()]


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
