"""Sweeps out of a store: the right arrays, the right means, the paper's rows beside them."""

import numpy as np
import pytest
from synthetic_store import write_synthetic_store

from dipedl_bench.studies.sweeps import (
    ablation,
    parts_file,
    parts_from_arrays,
    sigma_corruption,
    stored_parts,
    sweep_lines,
    write_parts,
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return write_synthetic_store(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def parts(store):
    return stored_parts(store)


def test_parts_are_those_of_the_store(store, parts):
    assert list(parts) == [10, 20]
    row = next(r for r in store.rows() if r["method"] == "dip-edl" and r["seed"] == 20)
    one, own = parts[20], store.arrays_of(row)
    assert one.n == 60 and one.unknown == ("kmnist", "omniglot", "omniglot_inverted")
    np.testing.assert_allclose(one.z["kmnist"] + np.log(60), own["ood/kmnist"]["log_evidence"])
    classifier = store.arrays_of(row, "classifier")
    np.testing.assert_array_equal(one.proba["test"], classifier["test"]["probabilities"])


def test_gamma_is_taken_out_of_the_evidence(store):
    row = next(r for r in store.rows() if r["method"] == "dip-edl")
    arrays = store.arrays_of(row), store.arrays_of(row, "classifier")
    one, ten = (parts_from_arrays(*arrays, gamma) for gamma in (1.0, 10.0))
    np.testing.assert_allclose(one.z["test"] - ten.z["test"], np.log(10))


def test_lines_are_means_over_seeds(parts):
    lines = {line.name: line for line in sweep_lines("ablation", parts.values(), "mnist")}
    runs = [ablation(one) for one in parts.values()]
    cell = lines["3"].cells["auroc/kmnist"]
    assert cell.values == tuple(run["3"]["auroc/kmnist"] for run in runs)
    assert cell.paper.mean == 0.9998 and cell.paper.sd is None and cell.differs is None
    assert lines["2b"].cells["auroc/kmnist"].paper.mean == 0.5138
    assert lines["3"].cells["auroc/omniglot_inverted"].paper is None


def test_sigma_lines_spread_over_draws_not_over_seeds(parts):
    lines = {line.name: line for line in sweep_lines("sigma", parts.values(), "mnist")}
    draws = [sigma_corruption(one, (2.0,))[2.0] for one in parts.values()]
    values = np.array([[draw["auroc/kmnist"] for draw in of_seed] for of_seed in draws])
    cell = lines["2"].cells["auroc/kmnist"]
    assert cell.mean == pytest.approx(values.mean())
    assert cell.sd == pytest.approx(np.sqrt((values.std(axis=1) ** 2).mean()))
    assert len(cell.values) == 10 and lines["0"].cells["accuracy"].sd == 0
    assert lines["inf"].cells["auroc/kmnist"].paper.mean == 0.5016


def test_methods_without_parts_are_refused(store):
    for method in ("edl", "max-softmax"):
        with pytest.raises(LookupError, match="must be a DIP-EDL with a classifier of the suite"):
            stored_parts(store, method)
    with pytest.raises(
        LookupError, match=r"run it first: dipedl-bench run mnist .*--methods energy"
    ):
        stored_parts(store, "energy")


def test_published_and_stored_seeds_join(tmp_path):
    store = write_synthetic_store(tmp_path, methods=["dip-edl"])
    stored = stored_parts(store)
    row = next(row for row in store.rows() if row["seed"] == 10)
    write_parts(parts_file(store, row), stored[10])
    assert list(stored_parts(store)) == [10, 20]
