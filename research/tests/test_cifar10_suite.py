"""What the CIFAR-10 suite adds: stand-ins, shared networks, colour, rows from elsewhere."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from synthetic_store import write_synthetic_store
from tiny_suite import TINY, train

from dipedl.baselines import MCDropout
from dipedl.datasets import load_mini_mnist
from dipedl.networks import MLP, FastCNN, TorchClassifier, Training
from dipedl.pretrained import ClassGaussians, DIPModule
from dipedl_bench import Store
from dipedl_bench.datasets.splits import load_colour_digits, make_splits
from dipedl_bench.running.training import restore, weights_of
from dipedl_bench.spec.plan import method_parts, parts_of, plan
from dipedl_bench.spec.suite import parse_suite
from dipedl_bench.tables.table import bench_table
from dipedl_bench.tables.trivial import trivial_lines

QUICK = Training(epochs=2, batch_size=32, learning_rate=0.02, n_jobs=1)
METHODS = (
    TINY.replace("hidden = [16] }", "hidden = [16, 8], dropout = 0.2 }", 1)
    + """
[densities.layers]
estimator = "BlockSumDensity"
features = { name = "LayerFeatures", layers = ["body.2", "body"] }
density = { name = "GDADensity", shrinkage = 0.1 }

[methods.layers]
title = "Several layers"
estimator = "DIPClassifier"
classifier = "net"
density = "layers"
statistics = "validation"

[methods.mc-dropout]
title = "MC Dropout"
estimator = "MCDropout"
classifier = "net"
sees = "pixels"
n_samples = 4
seeds = [7]

[methods.default]
title = "Default"
estimator = "DIPClassifier"
classifier = "net"
sees = "pixels"
statistics = "validation"

[methods.module]
title = "DIPModule"
estimator = "DIPModuleMethod"
classifier = "net"
sees = "pixels"
statistics = "validation"
"""
)


def test_seeds_are_those_asked_for_or_of_the_method_or_the_profile():
    suite = parse_suite(METHODS, "tiny.toml")

    def pairs(seeds, suite=suite):
        cells = plan(suite, "smoke", "tiny.toml", seeds=seeds, methods=["edl", "mc-dropout"])
        return [(cell.heads[0]["method"], cell.seed) for cell in cells]

    assert pairs(None) == [("edl", 1), ("mc-dropout", 7), ("edl", 2)]
    assert pairs((5,)) == [("edl", 5), ("mc-dropout", 5)]
    profile = suite.profile("smoke").model_copy(update={"seeds": (3,)})
    of_profile = suite.model_copy(update={"profiles": {"smoke": profile}})
    assert pairs(None, of_profile) == [("edl", 3), ("mc-dropout", 7)]


def test_a_digit_is_where_it_was_in_its_two_colours():
    grey, colour = load_mini_mnist(), load_colour_digits()
    ink = np.pad(grey.X_test[7].reshape(28, 28), 2, mode="edge").ravel()
    for channel in colour.X_test[7].reshape(3, -1):
        slope, offset = np.polyfit(ink, channel, 1)
        np.testing.assert_allclose(channel, offset + slope * ink, atol=1e-5)
        assert 0 <= offset <= 1 and -1e-6 <= offset + slope <= 1 + 1e-6
    np.testing.assert_array_equal(load_colour_digits().X_train, colour.X_train)
    np.testing.assert_array_equal(colour.y_test, grey.y_test)


def test_a_restored_network_answers_with_the_same_bits():
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 64)), np.arange(60) % 3
    trained = TorchClassifier(FastCNN(width=4), QUICK).fit(X, y)
    weights = weights_of(trained)
    again = restore(TorchClassifier(FastCNN(width=4), QUICK, random_state=5), X, y, weights)
    np.testing.assert_array_equal(again.logits(X), trained.logits(X))
    np.testing.assert_array_equal(again.transform(X), trained.transform(X))
    assert weights_of(LogisticRegression().fit(X, y)) is None


@pytest.fixture(scope="module")
def networks():
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 16)), np.arange(60) % 3
    backbone = MLP((20, 12), dropout=0.4)
    return X, y, backbone, TorchClassifier(backbone, QUICK).fit(X, y)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Arrays of methods that need the trained network itself, and that network with its rows."""
    suite = parse_suite(METHODS, "tiny.toml")
    store = Store(tmp_path_factory.mktemp("shared"), "tiny", "smoke")
    found = {}
    for method in method_parts(suite, "smoke", ["layers", "mc-dropout", "module"], "tiny.toml"):
        for part in parts_of(method):
            if not store.has_arrays(part.name, part.digest, 1):
                train(store, part, 1)
        found[method.name] = store.load(method.name, method.digest, 1)
    net = method.below["classifier"]
    splits = make_splits(net.config["data"], 1)
    backbone = MLP((16, 8), dropout=0.2)
    untrained = TorchClassifier(backbone, replace(QUICK, learning_rate=1e-3))
    weights = store.network(net.name, net.digest, 1)
    network = restore(untrained, splits.X["train"], splits.y["train"], weights)
    return found, splits, network, store.load(net.name, net.digest, 1)


def test_methods_see_the_network_that_was_trained_once(shared):
    found, splits, network, answers = shared
    rows = splits.X["ood/kmnist"]
    np.testing.assert_allclose(network.logits(rows), answers["ood/kmnist"]["logits"], rtol=1e-6)
    mc = MCDropout(n_samples=4, random_state=1, network=FrozenEstimator(network))
    mc.fit(splits.X["train"], splits.y["train"])
    np.testing.assert_allclose(
        found["mc-dropout"]["ood/kmnist"]["uncertainty"], mc.uncertainty(rows), atol=1e-9
    )
    assert np.isfinite(found["layers"]["test"]["log_evidence"]).all()


@pytest.mark.parametrize("name", ["default", "module"])
def test_a_method_takes_what_the_network_was_stored_to_answer(tmp_path, monkeypatch, name):
    passes = []
    forward = TorchClassifier.apply_network

    def counted(self, X, *function):
        passes.append(len(X))
        return forward(self, X, *function)

    monkeypatch.setattr(TorchClassifier, "apply_network", counted)
    (method,) = method_parts(parse_suite(METHODS, "tiny.toml"), "smoke", [name], "tiny.toml")
    for part in parts_of(method):
        train(Store(tmp_path, "tiny", "smoke"), part, 1)
    sizes = [len(rows) for rows in make_splits(method.config["data"], 1).X.values()]
    assert [n for n in passes if n in sizes] == sizes  # once each, by the classifier


def test_the_row_through_dip_module_is_what_the_module_says(shared):
    found, splits, network, _ = shared

    def loader(split):
        return [(torch.tensor(splits.X[split]), torch.tensor(splits.y[split]))]

    module = DIPModule(network.module_, density=ClassGaussians(shrinkage="oas"))
    module.fit_density(loader("train"), calibration=loader("validation"))
    with torch.inference_mode():
        answer = module(torch.tensor(splits.X["test"]))
    for name in ("concentration", "log_evidence"):
        np.testing.assert_allclose(
            found["module"]["test"][name], getattr(answer, name).numpy(), rtol=1e-4, atol=1e-4
        )


def test_unusual_photographs():
    rng = np.random.default_rng(0)
    plain = 0.5 + 0.1 * rng.normal(size=(40, 3, 8, 8))
    bright, red = plain + 0.3, plain * np.array([1.5, 1, 1])[:, None, None]
    flat = np.broadcast_to(plain.mean(axis=(2, 3), keepdims=True), plain.shape)
    known = 0.5 + 0.1 * rng.normal(size=(40, 3, 8, 8))
    images = {"test": known, "ood/bright": bright, "ood/red": red, "ood/flat": flat}
    lines = {line.title: line.cells for line in trivial_lines(images, plain)}
    assert lines["unusual brightness"]["auroc/bright"].mean == 1
    assert lines["unusual colour"]["auroc/red"].mean == 1
    assert lines["unusual contrast"]["auroc/flat"].mean == 1
    assert lines["unusual roughness"]["auroc/flat"].mean == 1
    assert 0.2 < lines["unusual colour"]["auroc/bright"].mean < 0.8


def cifar10_store(root, ood):
    options = {"suite": "cifar10", "profile": "cpu", "seeds": [10], "ood": ood}
    return write_synthetic_store(root, methods=["dip-edl", "edl", "max-softmax"], **options)


def test_a_stand_in_is_never_set_against_the_papers_set(tmp_path):
    lines = bench_table(cifar10_store(tmp_path, ["cifar100", "gtsrb"]).rows()).lines
    ours = {line.name: line.cells for line in lines}["dip-edl"]
    assert ours["auroc/cifar100"].paper.mean == 0.9002
    assert all(cell.paper is None for name, cell in ours.items() if name.endswith("gtsrb"))
