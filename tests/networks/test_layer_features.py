"""LayerFeatures against the layers run one after another by hand."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from dipedl import DIPClassifier
from dipedl.density import BlockSumDensity, GaussianDensity
from dipedl.networks import (
    MLP,
    FastCNN,
    LayerFeatures,
    TorchClassifier,
    Training,
)

QUICK = Training(epochs=2, batch_size=16)


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    return rng.uniform(0, 0.5, (60, 256)) + 0.5 * y[:, None], y


def trained(backbone, images):
    return TorchClassifier(backbone, QUICK).fit(*images)


@pytest.fixture(scope="module")
def pooled(images):
    return trained(FastCNN(4), images)


@pytest.mark.parametrize("pool", ["average", "max"])
def test_against_layers_run_by_hand(images, pool):
    """FastCNN rectifies in place: what a layer gave must be kept before the next one writes."""
    X, _ = images
    clf = trained(FastCNN(4), images)
    layers = ["body.2", "body.1", "body.5", "body", "head"]
    got = LayerFeatures(FrozenEstimator(clf), layers, pool).fit(X)
    values, outputs = torch.as_tensor(X, dtype=torch.float32).reshape(-1, 1, 16, 16), {}
    with torch.no_grad():
        for name, layer in clf.module_.body.named_children():
            values = layer(values.clone())
            outputs[f"body.{name}"] = values.clone()
    outputs["body"] = values
    outputs["head"] = torch.as_tensor(clf.logits(X))
    reduce = {"average": lambda m: m.mean((2, 3)), "max": lambda m: m.amax((2, 3))}[pool]
    parts = [reduce(o) if o.ndim == 4 else o for o in (outputs[name] for name in layers)]
    expected = torch.cat([p.double() for p in parts], dim=1).numpy()
    np.testing.assert_allclose(got.transform(X), expected, rtol=1e-4, atol=1e-5)
    assert got.widths_ == [p.shape[1] for p in parts]
    names = got.get_feature_names_out()
    assert len(names) == expected.shape[1] and names[0] == "body.2[0]" and names[-1] == "head[1]"


def test_nothing_is_left_on_the_network(images, pooled):
    X, _ = images
    before = {k: v.clone() for k, v in pooled.module_.state_dict().items()}
    features = LayerFeatures(FrozenEstimator(pooled), ["body.2"]).fit(X)
    features.transform(X)
    with pytest.raises(ValueError, match=r"256|features"):
        features.transform(X[:, :100])
    assert not any(m._forward_hooks for m in pooled.module_.modules())
    for name, value in pooled.module_.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)
    assert not pooled.module_.training


def test_threads_do_not_hear_one_another(images, pooled):
    X, _ = images
    features = LayerFeatures(FrozenEstimator(pooled), ["body.2", "body"]).fit(X)
    chunks = [X[i::6] for i in range(6)] * 3
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(features.transform, chunks))
    for chunk, answer in zip(chunks, answers, strict=True):
        np.testing.assert_allclose(answer, features.transform(chunk), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("layers", [["body.1", "body.99"], ["conv1"], []])
def test_an_unknown_layer_lists_those_there_are(images, pooled, layers):
    message = r"layers must name .*it has: body 16, body\.0 4x16x16, body\.1 4x16x16, .*head 2"
    with pytest.raises(ValueError, match=message):
        LayerFeatures(FrozenEstimator(pooled), layers).fit(images[0])


def test_what_is_no_network_or_not_trained_is_refused(images, pooled):
    X, y = images
    with pytest.raises(TypeError, match=r"network classifier of dipedl.*LogisticRegression"):
        LayerFeatures(LogisticRegression(), ["body"]).fit(X, y)
    with pytest.raises(NotFittedError):
        LayerFeatures(FrozenEstimator(TorchClassifier()), ["body"]).fit(X, y)
    with pytest.raises(NotFittedError):
        LayerFeatures(FrozenEstimator(pooled), ["body"]).transform(X)
    with pytest.raises(TypeError, match="list of names, got the string 'body'"):
        LayerFeatures(FrozenEstimator(pooled), "body").fit(X)
    with pytest.raises(ValueError, match="pool must be"):
        LayerFeatures(FrozenEstimator(pooled), ["body"], "median").fit(X)


def test_without_frozen_a_copy_is_trained(images):
    X, y = images
    clf = TorchClassifier(MLP((8, 4)), QUICK)
    features = LayerFeatures(clf, ["body.2", "body"]).fit(X, y)
    assert not hasattr(clf, "module_")
    expected = clone(clf).fit(X, y).transform(X)
    np.testing.assert_allclose(features.transform(X)[:, 8:], expected)


def test_as_features_of_a_dip_classifier(images, pooled):
    X, y = images
    frozen = FrozenEstimator(pooled)
    layers = LayerFeatures(frozen, ["body.2", "body"])
    density = BlockSumDensity([4, 16], GaussianDensity())
    model = DIPClassifier(frozen, density=density, features=layers).fit(X, y)
    total = model.score_samples(X)
    widths = layers.fit(X).widths_
    by_hand = make_pipeline(layers, BlockSumDensity(widths, GaussianDensity())).fit(X)
    np.testing.assert_allclose(total, by_hand.score_samples(X), rtol=1e-6)


def test_a_fit_that_fails_leaves_the_fit_before(images):
    X, y = images
    features = LayerFeatures(TorchClassifier(MLP((4,)), QUICK), ["body"]).fit(X, y)
    fitted = dict(vars(features))
    with pytest.raises(ValueError, match="layers must name some of"):
        features.set_params(layers=["tail"]).fit(X[:, :4], y)
    assert vars(features) == fitted | {"layers": ["tail"]}
