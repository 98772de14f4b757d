"""A part as its process trains it: what is stored is what the classes answer."""

import numpy as np
import pytest
from tiny_suite import TINY, train

from dipedl.baselines import EDL
from dipedl.density import GDADensity
from dipedl.networks import MLP, Training
from dipedl.preprocessing import LogitPixels
from dipedl_bench import Store
from dipedl_bench.datasets.splits import make_splits
from dipedl_bench.running.memo import Seconds
from dipedl_bench.running.training import method_arrays
from dipedl_bench.spec.plan import method_parts, parts_of
from dipedl_bench.spec.suite import parse_suite

SEED = 1
LOGITS = """
[densities.logits]
estimator = "GDADensity"
features = { name = "LogitPixels", lam = 0.01 }
shrinkage = 0.1

[methods.dip-edl-logits]
title = "DIP-EDL on logits"
estimator = "DIPClassifier"
calibrator = "passthrough"
classifier = "net"
density = "logits"
statistics = "validation"
normalizer = { name = "RobustZScore" }
"""
TRAINING = Training(epochs=2, batch_size=32, n_jobs=1)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Suite, splits, and the arrays of every part by method and role."""
    root = tmp_path_factory.mktemp("worker")
    suite = parse_suite(TINY + LOGITS, "tiny.toml")
    names = ["dip-edl-features", "dip-edl-logits", "edl"]
    methods = method_parts(suite, "smoke", names, "tiny.toml")
    store = Store(root, "tiny", "smoke")
    arrays, said = {}, []
    for method in methods:
        for part in parts_of(method):
            if not store.has_arrays(part.name, part.digest, SEED):
                train(store, part, SEED, None, said.append)
            found = store.load(part.name, part.digest, SEED)
            arrays[method.name, part.role] = found
    return make_splits(methods[0].config["data"], SEED), arrays, said


def test_a_method_with_a_network_of_its_own(trained):
    splits, arrays, said = trained
    edl = EDL(MLP(hidden=(16,)), training=TRAINING, random_state=SEED)
    edl.fit(splits.X["train"], splits.y["train"])
    stored = arrays["edl", "method"]
    assert "train" not in stored
    for split in ("validation", "test", "ood/kmnist"):
        expected = edl.predict_proba(splits.X[split])
        np.testing.assert_allclose(stored[split]["probabilities"], expected, atol=1e-6)
    assert any("epoch 2/2" in text for text in said)


VIEWS = """
[methods.c-edl]
title = "C-EDL"
estimator = "CEDL"
n_views = 3
arguments.estimator.name = "EDL"
arguments.estimator.backbone = { name = "MLP", hidden = [16] }
arguments.estimator.training = { epochs = 1, n_jobs = 1 }
"""


def test_the_network_that_a_method_wraps_is_counted(tmp_path):
    suite, store = parse_suite(TINY + VIEWS, "tiny.toml"), Store(tmp_path, "tiny", "smoke")
    (part,) = method_parts(suite, "smoke", ["c-edl"], "tiny.toml")
    train(store, part, SEED)
    note = store.receipt(part.name, part.digest, SEED)
    assert note["forward_passes"] == 3
    assert note["n_parameters"] == (784 + 1) * 16 + (16 + 1) * 10


def test_uncertainty_and_dirichlet_come_out_of_one_pass(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 16)), np.arange(60) % 3
    edl = EDL(MLP(hidden=(8,)), training=TRAINING).fit(X, y)
    expected = edl.predict_dirichlet(X[:50]), edl.uncertainty(X[50:])
    passes, logits = [], edl.logits
    monkeypatch.setattr(edl, "logits", lambda rows: passes.append(len(rows)) or logits(rows))
    arrays = method_arrays(edl, {"test": X[:50], "ood/far": X[50:]}, Seconds())
    assert passes == [50, 10]
    np.testing.assert_array_equal(arrays["test"]["concentration"], expected[0].concentration)
    np.testing.assert_array_equal(arrays["ood/far"]["uncertainty"], expected[1])


def test_a_density_sees_inputs_through_its_transformer(trained):
    splits, arrays, _ = trained
    view = LogitPixels(lam=0.01).fit(splits.X["train"])
    density = GDADensity(shrinkage=0.1).fit(view.transform(splits.X["train"]), splits.y["train"])
    for split, rows in splits.X.items():
        expected = density.score_samples(view.transform(rows))
        stored = arrays["dip-edl-logits", "density"][split]["log_density"]
        np.testing.assert_allclose(stored, expected, rtol=1e-9)
