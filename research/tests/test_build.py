"""From tables to estimators, and parts that answer from stored arrays."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from dipedl.baselines import DDU, Energy, MaxSoftmax, ViM
from dipedl.networks import MLP, TorchClassifier, Training
from dipedl_bench.running.cached import CachedClassifier, head_of, row_numbers, stack
from dipedl_bench.running.memo import Memory, SharedClassifier
from dipedl_bench.spec.build import build


def test_tables_become_objects_all_the_way_down():
    table = {
        "backbone": {"name": "MLP", "hidden": [8, 4]},
        "training": {"epochs": 3, "augment": {"name": "AffineAugmentation", "degrees": 5.0}},
    }
    made = build("TorchClassifier", table, "here", random_state=7, unknown_to_it=1)
    assert isinstance(made, TorchClassifier)
    assert made.backbone == MLP(hidden=(8, 4))
    assert made.training.epochs == 3
    assert made.training.augment.degrees == 5.0
    assert made.random_state == 7


@pytest.mark.parametrize(
    ("name", "table", "message"),
    [
        ("GDADensity", {"shrinkge": 0.1}, "unknown key 'shrinkge', did you mean 'shrinkage'"),
        ("TorchClassifier", {"training": {"epoch": 1}}, "here.training: unknown key 'epoch', did"),
        ("TorchClassifier", {"training": {"epochs": -1}}, "here.training: epochs must be"),
        ("TorchClassifier", {"backbone": {"hidden": [1]}}, "here.backbone: a table must say its"),
    ],
)
def test_a_table_that_cannot_be_built_names_its_key(name, table, message):
    with pytest.raises(ValueError, match=message):
        build(name, table, "here")


def test_a_method_on_stored_answers_is_the_method_on_the_network():
    rng = np.random.default_rng(0)
    y = {"train": np.arange(60) % 3, "validation": np.arange(30) % 3, "test": np.arange(30) % 3}
    X = {s: rng.normal(size=(len(v), 5)) + 2 * np.eye(5)[v] for s, v in y.items()}
    X["ood/x"] = rng.normal(size=(20, 5)) * 4
    net = TorchClassifier(MLP((8,)), Training(epochs=15, batch_size=8), precision="float64")
    net.fit(X["train"], y["train"])
    answers = {"logits": "logits", "features": "transform", "probabilities": "predict_proba"}
    arrays = {
        split: {name: getattr(net, method)(of) for name, method in answers.items()}
        for split, of in X.items()
    }
    cached = CachedClassifier(stack(arrays, list(X)), np.arange(3), net.linear_head())
    rows = row_numbers({s: len(v) for s, v in X.items()})
    shared = SharedClassifier.of(net, Memory())
    for method in (MaxSoftmax, Energy, DDU, ViM):
        direct = method(FrozenEstimator(net)).fit(X["train"], y["train"])
        through = method(FrozenEstimator(shared)).fit(X["train"], y["train"])
        np.testing.assert_array_equal(through.uncertainty(X["test"]), direct.uncertainty(X["test"]))
        from_table = method(FrozenEstimator(cached)).fit(rows["train"], y["train"])
        for split in X:
            expected, got = direct.uncertainty(X[split]), from_table.uncertainty(rows[split])
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
            P = from_table.predict_proba(rows[split])
            np.testing.assert_allclose(P, direct.predict_proba(X[split]), rtol=1e-9)


def test_the_head_of_stored_weights_gives_the_logits(rng):
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 3
    net = TorchClassifier(MLP((8,)), Training(epochs=3), precision="float64").fit(X, y)
    weights = {name: of.numpy() for name, of in net.module_.state_dict().items()}
    features, logits = net.transform(X), net.logits(X)
    for scale in (1.0, 1 / 9):
        weight, bias = head_of(weights, features, scale * logits)
        np.testing.assert_allclose(features @ weight.T + bias, scale * logits, atol=1e-9)
    assert head_of(weights, features, np.square(logits)) is None
    assert head_of({}, features, logits) is None
