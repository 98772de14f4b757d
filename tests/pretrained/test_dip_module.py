"""DIPModule against DIPClassifier on the same features, and what a module must survive."""

import copy
import threading

import numpy as np
import pytest
import torch
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer
from torch import nn

from dipedl import DIPClassifier
from dipedl.calibration.temperature import Temperature
from dipedl.density import GDADensity
from dipedl.evidence import (
    CautionBudget,
    Identity,
    QuantileEvidence,
    RankNormal,
    ZScore,
)
from dipedl.pretrained import ClassGaussians, DIPModule, DirichletOutput


def mlp(dtype=torch.float64):
    torch.manual_seed(3)
    layers = nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 3)
    return nn.Sequential(*layers).eval().to(dtype)


def blobs(n, seed, dtype=torch.float64):
    """Three classes; the network is not trained on them, and need not be."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 4)) + 2 * np.eye(4)[y]
    return torch.tensor(X, dtype=dtype), torch.tensor(y)


class Wrapped(ClassifierMixin, BaseEstimator):
    """A network of ours as scikit-learn sees it."""

    def __init__(self, network):
        self.network = network
        self.classes_ = np.arange(3)

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        with torch.no_grad():
            logits = self.network(as_input(X, self.network))
        return special.softmax(logits.double().numpy(), axis=1)


def as_input(X, network):
    return torch.tensor(X, dtype=next(network.parameters()).dtype)


def numpy_path(network, **settings):
    def penultimate(X):
        with torch.no_grad():
            return network[:-1](as_input(X, network)).double().numpy()

    return DIPClassifier(
        FrozenEstimator(Wrapped(network)), features=FunctionTransformer(penultimate), **settings
    )


SETTINGS = [
    {},
    {"prior": [0.5, 1.0, 2.0], "gamma": 0.3, "max_evidence": 40.0},
    {"normalizer": CautionBudget(0.1, "nll", slope=3.0), "false_alarm_rate": 0.2},
    {"normalizer": QuantileEvidence(0.05), "calibrator": "passthrough"},
    {"normalizer": ZScore(), "calibrator": Temperature(0.5)},
    {"normalizer": Identity()},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("covariance", ["full", "tied", "diagonal"])
def test_equal_to_the_numpy_path_in_float64(settings, covariance):
    network, (X, y), held, (new, _) = mlp(), blobs(240, 0), blobs(150, 1), blobs(50, 2)
    new = torch.cat([new, 30 * new])
    kind = {"diagonal": "diag"}.get(covariance, covariance)
    theirs = numpy_path(network, density=GDADensity(kind), **settings)
    theirs.fit(X.numpy(), y.numpy(), calibration=tuple(part.numpy() for part in held))
    density = ClassGaussians(covariance, dtype=torch.float64)
    ours = DIPModule(network, density=density, score="density", **settings)
    ours.fit_density([(X[:100], y[:100]), (X[100:], y[100:])], calibration=[held])
    want, found = theirs.predict_dirichlet(new.numpy()), ours(new)
    assert ours.n_ == 240
    pairs = [
        (found.log_evidence, want.log_evidence),
        (found.mean, want.mean),
        (found.vacuity, want.vacuity),
        (found.concentration, want.concentration),
        (ours.score_samples(new), theirs.score_samples(new.numpy())),
        (ours.offset_, theirs.offset_),
        (ours.predict_dirichlet(new).epistemic, want.epistemic),
    ]
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(ours.predict_ood(new), theirs.predict_ood(new.numpy()))
    np.testing.assert_allclose(ours.p_value(new), theirs.p_value(new.numpy()))
    np.testing.assert_array_equal(ours.predict_set(new), theirs.predict_set(new.numpy()))
    np.testing.assert_allclose(ours.reject_curve().upper, theirs.reject_curve().upper)
    assert ours.diagnose().codes == theirs.diagnose().codes


@pytest.mark.parametrize("settings", SETTINGS[:4], ids=str)
def test_equal_to_the_numpy_path_in_float32(settings):
    network = mlp(torch.float32)
    (X, y), held, (new, _) = (blobs(n, i, torch.float32) for i, n in enumerate((240, 150, 50)))
    theirs = numpy_path(network, density=GDADensity(), **settings)
    theirs.fit(X.numpy(), y.numpy(), calibration=tuple(part.numpy() for part in held))
    ours = DIPModule(network, score="density", **settings)
    ours.fit_density([(X, y)], calibration=[held])
    want, found = theirs.predict_dirichlet(new.numpy()), ours(new)
    assert all(part.dtype == torch.float32 for part in found)
    np.testing.assert_allclose(found.mean, want.mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.vacuity, want.vacuity, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.log_evidence, want.log_evidence, rtol=1e-5, atol=1e-5)


def test_paper_is_that_of_the_classifier():
    network, (X, y), (new, _) = mlp(), blobs(240, 0), blobs(40, 1)
    theirs = DIPClassifier.paper(
        FrozenEstimator(Wrapped(network)),
        features=FunctionTransformer(lambda X: network[:-1](as_input(X, network)).detach().numpy()),
        gamma=0.5,
    ).fit(X.numpy(), y.numpy())
    ours = DIPModule.paper(network, gamma=0.5)
    ours.density_ = ClassGaussians(shrinkage=None, dtype=torch.float64)
    ours.double().fit_density([(X[:50], y[:50]), (X[50:], y[50:])])
    want = theirs.predict_dirichlet(new.numpy())
    np.testing.assert_allclose(ours(new).log_evidence, want.log_evidence, atol=1e-10)
    np.testing.assert_allclose(ours(new).mean, want.mean, atol=1e-10)
    assert ours.offset_ == pytest.approx(theirs.offset_, abs=1e-10)


@pytest.fixture(scope="module")
def fitted():
    """A module in float32 and inputs near and far."""
    held = blobs(200, 1, torch.float32)
    module = DIPModule(mlp(torch.float32), classes=["a", "b", "c"])
    module.fit_density([blobs(240, 0, torch.float32)], calibration=[held])
    return module, torch.cat([held[0][:20], 30 * held[0][:5]])


def same(found, wanted):
    return all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_what_comes_out(fitted):
    module, X = fitted
    out = module(X)
    assert isinstance(out, DirichletOutput)
    assert out.concentration.shape == out.mean.shape == (25, 3)
    assert out.log_evidence.shape == out.vacuity.shape == (25,)
    assert module.classes_.tolist() == ["a", "b", "c"]
    assert module.describe().startswith("features: the input of '4'")
    dirichlet = module.predict_dirichlet(X)
    torch.testing.assert_close(dirichlet.vacuity, out.vacuity)
    torch.testing.assert_close(dirichlet.mean, out.mean)


@pytest.mark.parametrize(("score", "farthest"), [("density", -torch.inf), ("fused", -1e8)])
def test_far_away_is_the_prior_exactly(score, farthest):
    prior = [0.5, 1.0, 2.5]
    own = {"features": lambda net, x: (x, net(x)), "score": score}
    module = DIPModule(mlp(torch.float32), prior=prior, **own)
    module.fit_density([blobs(240, 0, torch.float32)])
    out = module(torch.tensor([[1e4, 0, 0, 0], [0, 3e38, 0, 0]]))
    assert out.log_evidence[0] < -1e4 and out.log_evidence[1] <= farthest
    assert torch.equal(out.mean, torch.tensor([prior, prior]) / 4)
    assert out.vacuity.tolist() == [1.0, 1.0]


def test_an_input_that_is_nan_is_nan_and_no_other(fitted):
    module, X = fitted
    X = X.clone()
    X[1, 2] = torch.nan
    out = module(X)
    assert all(bool(part[1].isnan().all()) for part in out)
    assert not any(bool(part[[0, 2]].isnan().any()) for part in out)
    assert module.predict_ood(X)[1] == -1


def test_one_pass_of_the_network(fitted):
    module, X = fitted
    calls = []
    handle = module.network.register_forward_hook(lambda *_: calls.append(1))
    for method in (module, module.predict_dirichlet, module.predict_ood, module.score_samples):
        method(X)
    handle.remove()
    assert len(calls) == 4


def test_rows_do_not_depend_on_the_batch(fitted):
    # in float64: a table of normal scores is steep where held-out scores lie close together
    module, X = copy.deepcopy(fitted[0]).double(), fitted[1].double()
    alone = [module(row[None]) for row in X]
    for i, part in enumerate(module(X)):
        torch.testing.assert_close(torch.cat([out[i] for out in alone]), part)


def test_the_network_is_left_as_it_was_but_for_gradients():
    network = mlp(torch.float32)
    before = {name: set(vars(module)) for name, module in network.named_modules()}
    module = DIPModule(network).fit_density([blobs(240, 0, torch.float32)])
    assert module.network is network
    assert before == {name: set(vars(part)) for name, part in network.named_modules()}
    assert not any(p.requires_grad for p in network.parameters())
    hooks = network[-1]._forward_pre_hooks
    assert len(hooks) == 1
    del module
    assert len(hooks) == 0


def test_several_threads_do_not_hear_one_another(fitted):
    module, X = fitted
    batches = [X[i : i + 5] for i in range(0, 20, 5)]
    expected, found = [module(b) for b in batches], [None] * len(batches)

    def work(i):
        for _ in range(50):
            out = module(batches[i])
            found[i] = out if found[i] is None or same(out, found[i]) else "torn"

    workers = [threading.Thread(target=work, args=(i,)) for i in range(len(batches))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert all(same(a, b) for a, b in zip(found, expected, strict=True))


def test_two_modules_share_a_network():
    network, data = mlp(torch.float32), [blobs(240, 0, torch.float32)]
    last, first = DIPModule(network), DIPModule(network, features="1")
    last.fit_density(data)
    expected = last(data[0][0])
    first.fit_density(data)
    assert first.density_.n_features_ == 12 and last.density_.n_features_ == 6
    assert same(last(data[0][0]), expected)


def test_types_of_a_module(fitted):
    module, X = fitted
    double = copy.deepcopy(module).double()
    assert double(X.double()).mean.dtype == torch.float64
    np.testing.assert_allclose(double(X.double()).mean, module(X).mean, atol=1e-6)
    half = copy.deepcopy(module).bfloat16()
    out = half(X.bfloat16())
    assert out.mean.dtype == torch.float32 and half.head.offset.dtype == torch.float32
    assert half.network[0].weight.dtype == torch.bfloat16
    np.testing.assert_allclose(out.mean, module(X).mean, atol=0.1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = module(X)
    assert all(part.dtype == torch.float32 for part in out)
    np.testing.assert_allclose(out.mean, module(X).mean, atol=0.1)


def test_gradients_reach_the_inputs(fitted):
    module, X = fitted
    X = X[:3].clone().requires_grad_()
    module(X).log_evidence.sum().backward()
    assert bool((X.grad != 0).any())


@pytest.mark.slow
def test_compiled_as_one_graph():
    held = blobs(200, 1, torch.float32)
    module = DIPModule(mlp(torch.float32), features=["1", "3"])
    module.fit_density([blobs(240, 0, torch.float32)], calibration=[held])
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for rows in (30, 7, 30):
        with torch.no_grad():
            for a, b in zip(compiled(held[0][:rows]), module(held[0][:rows]), strict=True):
                torch.testing.assert_close(a, b)


@pytest.mark.parametrize("strict", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_exported_with_any_number_of_rows(fitted, strict, tmp_path):
    module, X = fitted
    shapes = {"args": ({0: torch.export.Dim("n")},)}
    program = torch.export.export(module, (X,), dynamic_shapes=shapes, strict=strict)
    torch.export.save(program, tmp_path / "module.pt2")
    again = torch.export.load(tmp_path / "module.pt2").module()
    for rows in (1, 4, 25):
        out = again(X[:rows])
        assert isinstance(out, DirichletOutput)
        for a, b in zip(out, module(X[:rows]), strict=True):
            torch.testing.assert_close(a, b)


class Noisy(nn.Module):
    """Dropout that only ``self.training`` betrays."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.head(nn.functional.dropout(self.body(x), training=self.training))


@pytest.mark.parametrize(
    ("network", "culprit"),
    [
        (nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3)), "BatchNorm1d"),
        (nn.Sequential(nn.Linear(4, 6), nn.Dropout(), nn.Linear(6, 3)), "Dropout"),
        (Noisy(), "Noisy"),
    ],
    ids=["batch norm", "dropout", "functional"],
)
def test_training_mode_is_refused(network, culprit):
    data = [blobs(240, 0, torch.float32)]
    module = DIPModule(network)
    with pytest.raises(ValueError, match=rf"{culprit} is in training mode.*network\.eval\(\)"):
        module.fit_density(data)
    network.eval()
    module.fit_density(data).train()
    assert module.training and not any(part.training for part in network.modules())
    expected = module(data[0][0])
    assert same(module(data[0][0]), expected)
    network.train()
    with pytest.raises(ValueError, match=r"network\.eval\(\)"):
        module(data[0][0])
    assert same(module.eval()(data[0][0]), expected)


def test_a_network_whose_layers_know_no_mode_needs_no_eval():
    DIPModule(mlp(torch.float32).train()).fit_density([blobs(240, 0, torch.float32)])


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"gamma": 0}, ValueError, "gamma"),
        ({"prior": "empirical"}, ValueError, "prior must be a number, or an array.*frequencies"),
        ({"prior": [1.0, -1.0]}, ValueError, "prior must be finite and > 0"),
        ({"calibrator": Temperature(2)}, ValueError, "confidence must be"),
        ({"normalizer": CautionBudget(3)}, ValueError, "budget must be"),
        ({"max_evidence": -1.0}, ValueError, "max_evidence"),
        ({"false_alarm_rate": 1.0}, ValueError, "false_alarm_rate"),
        ({"pool": "min"}, ValueError, "pool must be one of"),
        ({"normalizer": RankNormal()}, TypeError, "normalizer must be.*RankNormal"),
        ({"calibrator": "none"}, TypeError, "calibrator must be"),
        ({"density": GDADensity()}, TypeError, "density must be.*GDADensity"),
        ({"features": 3}, TypeError, "features must be"),
    ],
    ids=str,
)
def test_settings_are_checked_at_once(settings, error, message):
    with pytest.raises(error, match=message):
        DIPModule(mlp(), **settings)


def test_a_prior_of_other_classes_is_refused_by_the_first_batch():
    read = []

    def loader():
        for seed in range(3):
            read.append(seed)
            yield blobs(90, seed)

    with pytest.raises(ValueError, match=r"prior must be .*\(3,\), got \(2,\)"):
        DIPModule(mlp(), prior=[1.0, 1.0]).fit_density(loader())
    assert read == [0]


def test_reasons_are_those_of_each_input_alone():
    module = DIPModule(mlp(), false_alarm_rate=0.5).fit_density([blobs(240, 0)])
    X, _ = blobs(20, 1)
    alone = [module.answers(row[None], reasons="all").reasons[0] for row in X]
    assert module.answers(X, reasons="all").reasons.tolist() == alone
    flagged = module.answers((X,), reasons="flagged")
    assert 0 < flagged.flagged.sum() < len(X)
    expected = [text if flag else "" for text, flag in zip(alone, flagged.flagged, strict=True)]
    assert flagged.reasons.tolist() == expected


def test_class_frequencies_go_in_as_an_array():
    (X, labels), k = blobs(240, 0), 3
    labels[:120:3] = 1
    with pytest.raises(ValueError, match="prior"):
        DIPModule(mlp(), prior="empirical")
    prior = k / 2 * np.bincount(labels, minlength=k) / len(labels)
    module = DIPModule(mlp(), prior=prior).fit_density([(X, labels)])
    theirs = DIPClassifier(Wrapped(mlp()), prior="empirical", cv="in-sample")
    theirs.fit(X.numpy(), labels.numpy())
    np.testing.assert_allclose(module.evidence_.prior, theirs.evidence_.prior)


def test_what_is_no_network():
    with pytest.raises(TypeError, match=r"network must be a torch\.nn\.Module"):
        DIPModule(lambda x: x)
    with pytest.raises(TypeError, match="compile the whole"):
        DIPModule(torch.compile(mlp(), backend="eager"))


def test_not_fitted():
    module = DIPModule(mlp())
    for call in (
        lambda: module(torch.zeros(1, 4)),
        lambda: module.n_,
        lambda: module.classes_,
        lambda: module.offset_,
        lambda: module.save("file"),
    ):
        with pytest.raises(NotFittedError, match="fit_density"):
            call()
    assert "known from the first batch on" in module.describe()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_as_on_the_cpu(fitted):
    module, X = fitted
    held = blobs(200, 1, torch.float32)
    there = DIPModule(mlp(torch.float32).cuda())
    there.fit_density([blobs(240, 0, torch.float32)], calibration=[held])
    for a, b in zip(there(X.cuda()), module(X), strict=True):
        torch.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=1e-5)
    assert same(there.cpu()(X), copy.deepcopy(there)(X))
