"""Methods outside the package: in a suite they are built, hashed and scored as any other."""

import sys

import numpy as np
import pytest
from tiny_suite import TINY

from dipedl_bench import Store
from dipedl_bench.running.training import describe_failure, make_part
from dipedl_bench.spec.build import build, describe
from dipedl_bench.spec.plan import method_parts, plan
from dipedl_bench.spec.suite import parse_suite

MODULE = """
import numpy as np


class Length:
    def __init__(self, power=1.0):
        self.power = power

    def fit(self, features, logits, labels, head):
        assert labels.dtype.kind == "i" and len(features) == len(logits) == len(labels)
        np.testing.assert_allclose(features @ head[0].T + head[1], logits, atol=1e-4)
        return self

    def uncertainty(self, features, logits):
        return -np.linalg.norm(features, axis=1) ** self.power


class Short(Length):
    def uncertainty(self, features, logits):
        return np.zeros(3)


class Holes(Length):
    def uncertainty(self, features, logits):
        return np.where(np.arange(len(logits)) % 2, np.nan, 0.0)


class Half:
    def fit(self, features, logits, labels):
        return self


class Whole:
    def __init__(self, estimator, scale=1.0):
        self.estimator, self.scale = estimator, scale

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return self.estimator.predict_proba(X)

    def uncertainty(self, X):
        return self.scale * (1 - self.predict_proba(X).max(axis=1))


class Turned(Whole):
    def uncertainty(self, X):
        return -super().uncertainty(X)


class Crash(Length):
    def uncertainty(self, features, logits):
        return {}["absent"]
"""
METHODS = """
[methods.length]
title = "Length"
estimator = "own_scores:Length"
classifier = "net"
power = 2.0

[methods.whole]
title = "Whole"
estimator = "own_scores:Whole"
classifier = "net"
scale = 2.0

[methods.turned]
title = "Turned"
estimator = "own_scores:Turned"
classifier = "net"

[methods.crash]
title = "Crash"
estimator = "own_scores:Crash"
classifier = "net"
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """File of methods in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "own_scores", raising=False)
    (tmp_path / "own_scores.py").write_text(MODULE)
    yield tmp_path / "own_scores.py"
    sys.modules.pop("own_scores", None)


def test_methods_outside_the_package_have_rows(module, tmp_path):
    suite = parse_suite(TINY + METHODS, "tiny.toml")
    store, names = Store(tmp_path, "tiny", "smoke"), ["length", "whole", "turned", "crash"]
    said = {}
    for cell in plan(suite, "smoke", "tiny.toml", methods=names, seeds=[1]):
        for part in cell.parts:
            if part.name != "crash":
                make_part(cell, part, store, None, said.setdefault(part.name, []).append)
                continue
            with pytest.raises(KeyError) as raised:
                make_part(cell, part, store, None, print)
            line = MODULE[: MODULE.index("{}[")].count("\n") + 1
            text = describe_failure(raised.value, "own_scores:Crash")
            assert text == f"KeyError: absent (line {line} of {module})"
    rows = {row["method"]: row for row in store.rows()}
    assert "lower for wrong predictions than for right ones" in " ".join(said["turned"])
    assert said["whole"] == []
    assert rows["length"]["config"]["arguments"] == {"power": 2.0}
    assert rows["whole"]["config"]["arguments"] == {"scale": 2.0}
    features = store.arrays_of(rows["length"], "classifier")
    for split, named in store.arrays_of(rows["length"]).items():
        squares = np.square(features[split]["features"], dtype=np.float64).sum(axis=1)
        np.testing.assert_allclose(named["uncertainty"], -squares, rtol=1e-6)
    whole = store.arrays_of(rows["whole"])["test"]
    expected = 2 * (1 - whole["probabilities"].max(axis=1))
    np.testing.assert_allclose(whole["uncertainty"], expected, atol=1e-12)


def test_another_source_is_another_method(module):
    suite = parse_suite(TINY + METHODS, "tiny.toml")
    before = [part.digest for part in method_parts(suite, "smoke", ["length", "edl"], "x")]
    module.write_text(MODULE.replace("-np.linalg", "-2 * np.linalg"))
    after = [part.digest for part in method_parts(suite, "smoke", ["length", "edl"], "x")]
    assert before[0] != after[0] and before[1] == after[1]
    assert describe(build("own_scores:Length", {"power": 3.0}, "x")) == {
        "class": "Length",
        "settings": {"power": 3.0},
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("own_scorse:Length", "here: 'own_scorse:Length' cannot be imported .ModuleNotFoundError"),
        ("own_scores:Lenght", "here: unknown class of own_scores 'Lenght', did you mean 'Length'"),
        ("own_scores:Half", r"here: own_scores:Half has fit.* must have uncertainty\(features, lo"),
        ("broken:Length", "'broken:Length' cannot be imported .SyntaxError"),
    ],
)
def test_a_class_that_cannot_be_imported_is_refused(module, name, message):
    module.with_name("broken.py").write_text("class Length(:")
    with pytest.raises(ValueError, match=message):
        build(name, {}, "here")


def test_a_class_that_needs_a_network_is_refused_without_one(module):
    with_network = 'estimator = "own_scores:Whole"\nclassifier = "net"'
    methods = METHODS.replace(with_network, 'estimator = "own_scores:Whole"')
    suite = parse_suite(TINY + methods, "tiny.toml")
    with pytest.raises(ValueError, match=r"methods.whole: own_scores:Whole needs a classifier"):
        method_parts(suite, "smoke", ["whole"], "tiny.toml")


def test_an_argument_that_a_class_does_not_take_is_refused(module):
    with pytest.raises(ValueError, match="here: unknown key 'powr', did you mean 'power'"):
        build("own_scores:Length", {"powr": 1.0}, "here")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Short", r"Short.uncertainty must return one number per row, shape \(60,\), got shape"),
        ("Holes", "Holes.uncertainty must return finite numbers, got nan in row 1 and 29 others"),
    ],
)
def test_answers_that_are_no_uncertainty_are_refused(module, rng, name, message):
    from sklearn.frozen import FrozenEstimator

    from dipedl.networks import MLP, TorchClassifier, Training

    X, y = rng.normal(size=(60, 5)), np.arange(60) % 3
    net = TorchClassifier(MLP((8,)), Training(epochs=1)).fit(X, y)
    net.linear_head = lambda: (net.module_.head[-1].weight.detach().numpy(), 0.0)
    model = build(f"own_scores:{name}", {}, "here", estimator=FrozenEstimator(net))
    model.score.fit = lambda **rows: None
    model.fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.uncertainty(X)
