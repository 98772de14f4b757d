"""Diagnoses of collapsed methods, from their predictions."""

import numpy as np
import pytest
from synthetic_store import write_synthetic_store


@pytest.fixture(scope="module")
def diagnosis(benchmark):
    return benchmark("publish")


def test_a_dead_unit_is_seen_in_the_predictions(diagnosis):
    rng = np.random.default_rng(0)
    evidence = np.maximum(rng.normal(size=(200, 2)), 0)
    alive = 1 + evidence
    dead = alive.copy()
    dead[:, 1] = 1.0
    found = predictions(diagnosis, alive), predictions(diagnosis, dead)
    assert [of["silent_classes"] for of in found] == [0, 1]
    assert found[0]["no_evidence"] == pytest.approx((evidence == 0).all(axis=1).mean())
    assert found[1]["no_evidence"] == pytest.approx((evidence[:, 0] == 0).mean())
    assert sum(found[0]["said"]) == 200 and found[1]["said"] == [200, 0]
    relaxed = predictions(diagnosis, 0.8 + (dead - 1), prior=0.8)
    assert relaxed["silent_classes"] == 1
    assert diagnosis.diagnosis({"probabilities": np.eye(2)}, 1.0) == {"said": [1, 1]}


def predictions(diagnosis, alpha, prior=1.0):
    proba = alpha / alpha.sum(axis=1, keepdims=True)
    return diagnosis.diagnosis({"probabilities": proba, "concentration": alpha}, prior)


def test_diagnoses_of_a_store_are_those_of_its_arrays(tmp_path, diagnosis):
    options = {"suite": "spectra", "ood": ["stars"], "classes": 2, "n_resamples": 0}
    store = write_synthetic_store(tmp_path, methods=["dip-edl", "edl"], **options)
    found = diagnosis.diagnose_rows([store])
    assert found.keys() == {"dip-edl", "edl"} and found["edl"].keys() == {"10", "20"}
    assert sum(found["edl"]["10"]["said"]) == 50
    empty = write_synthetic_store(tmp_path / "rows", methods=["edl"], **options)
    for file in empty.folder.rglob("*.npz"):
        file.unlink()
    assert diagnosis.diagnose_rows([empty]) == {}
