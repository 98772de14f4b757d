"""A network that knows its training rows by heart is told at fit, as a frozen classifier is."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from torch import nn

from dipedl import DIPClassifier
from dipedl.density import GDADensity
from dipedl.explanation import FindingWarning
from dipedl.pretrained import DIPModule


def rows(n, seed, noise=0.25):
    """Three classes in four columns, a quarter of the labels wrong."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 4)) + 2 * np.eye(4)[y]
    wrong = rng.random(n) < noise
    y[wrong] = rng.integers(0, 3, wrong.sum())
    return torch.tensor(X), torch.tensor(y)


class Lookup(nn.Module):
    """Answers with the labels of the nearest stored rows; a narrow kernel knows rows by heart."""

    def __init__(self, X, y, width):
        super().__init__()
        self.register_buffer("X", X)
        self.register_buffer("log_y", torch.log(nn.functional.one_hot(y, 3) + 1e-2))
        self.width = width
        # The features are the logits and the row itself.
        self.head = nn.Linear(7, 3, bias=False, dtype=X.dtype)
        nn.init.eye_(self.head.weight)

    def forward(self, x):
        near = torch.softmax(-torch.cdist(x, self.X).square() / self.width, dim=1)
        return self.head(torch.cat([near @ self.log_y.to(x), x], dim=1))


X, Y = rows(600, 0)
#: Two labels that the network has not learned: it makes errors.
OTHER = torch.where(torch.arange(600) < 2, (Y + 1) % 3, Y)
NARROW, WIDE = Lookup(X, OTHER, 1e-3).eval(), Lookup(X, OTHER, 10.0).eval()


def batched(inputs, labels, size=60):
    return [(inputs(X[i : i + size]), labels[i : i + size]) for i in range(0, len(X), size)]


def finding(model):
    codes = "classifier_frozen", "calibration_source"
    return next(f for f in model.diagnose().findings if f.code in codes)


def told(fit, *args, **kwargs):
    """The model of a fit, and whether it warned of rows that the network knows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit(*args, **kwargs)
    findings = [w.message.args[0] for w in caught if isinstance(w.message, FindingWarning)]
    codes = [f.code for f in findings if f.severity == "warning"]
    return model, "classifier_frozen" in codes


class Kept(ClassifierMixin, BaseEstimator):
    """The network as a fitted classifier of scikit-learn."""

    def __init__(self, network=None):
        self.network = network

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        with torch.no_grad():
            return self.network(torch.from_numpy(X)).softmax(1).numpy()


@pytest.mark.parametrize("network", [NARROW, WIDE], ids=["by heart", "smooth"])
def test_a_module_is_told_what_a_frozen_classifier_is(network):
    frozen = FrozenEstimator(Kept(network).fit(X, Y))
    _, of_classifier = told(DIPClassifier(frozen, GDADensity()).fit, X.numpy(), Y.numpy())
    loader = batched(lambda x: x, Y)
    _, of_module = told(DIPModule(network, score="density").fit_density, loader)
    assert of_module == of_classifier == (network is NARROW)


FORMS = {
    "tensor": (lambda x: x, lambda x: x),
    "tuple": (lambda x: (x, torch.zeros_like(x)), lambda x, y: x + y),
    "dict": (lambda x: {"x": x}, lambda x: x),
    "nested": (lambda x: {"x": {"a": [x]}}, lambda x: x["a"][0]),
}


@pytest.mark.parametrize("form", FORMS)
def test_inputs_of_every_form(form):
    make, take = FORMS[form]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lookup = NARROW

        def forward(self, x, y=None):
            return self.lookup(take(x) if y is None else take(x, y))

    loader = batched(make, Y)
    model, warned = told(DIPModule(Net().eval(), score="density").fit_density, loader)
    assert warned and finding(model).severity == "warning"
    new, labels = rows(200, 1)
    _, warned = told(model.calibrate, [(make(new), labels)])
    assert not warned and finding(model).severity == "ok"


def test_files_and_states_still_know(tmp_path):
    model, _ = told(DIPModule(NARROW, score="density").fit_density, batched(lambda x: x, Y))
    model.save(tmp_path / "m.safetensors")
    loaded = DIPModule.load(tmp_path / "m.safetensors", NARROW)
    copied = DIPModule(NARROW, score="density")
    copied.load_state_dict(model.state_dict())
    assert finding(loaded).severity == finding(copied).severity == "warning"


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32])
def test_inputs_that_cannot_be_mixed_are_judged_by_errors_alone(dtype):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lookup = WIDE

        def forward(self, ids):
            if not torch.equal(ids, ids.round()):
                raise ValueError("ids must be whole")
            return self.lookup(X[ids.long()[:, 0]])

    ids = torch.arange(600)[:, None].to(dtype)
    with torch.no_grad():
        own = WIDE(X).argmax(1)
    flawed = torch.where(torch.arange(600) == 7, (own + 1) % 3, own)
    for labels, expected in ((own, True), (flawed, False), (Y, False)):
        loader = [(ids[i : i + 60], labels[i : i + 60]) for i in range(0, 600, 60)]
        assert told(DIPModule(Net().eval(), score="density").fit_density, loader)[1] == expected
