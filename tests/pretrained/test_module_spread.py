"""The strength that a DIPModule learns, against a DIPClassifier whose classifier is frozen."""

import warnings
from copy import deepcopy

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
from dipedl.density import GDADensity
from dipedl.explanation import FindingWarning
from dipedl.io import container
from dipedl.pretrained import ClassGaussians, DIPModule

WIDTH = 6


def mlp(seed=3, dtype=torch.float32):
    torch.manual_seed(seed)
    layers = nn.Linear(4, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 3)
    return nn.Sequential(*layers).eval().to(dtype)


def blobs(n, seed, dtype=torch.float32):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return torch.tensor(rng.normal(size=(n, 4)) + np.eye(4)[y]).to(dtype), torch.tensor(y)


def trained(dtype=torch.float32):
    """A network that knows the first of the three classes from the others, and no more."""
    network = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 3)).eval().to(dtype)
    with torch.no_grad():
        network[0].weight.copy_(torch.eye(4))
        network[1].weight.copy_(torch.eye(3, 4) * torch.tensor([[1.0], [0.0], [0.0]]))
        network[1].bias.zero_()
    return network


TRAIN, HELD, NEW = blobs(240, 0), blobs(150, 1), blobs(40, 2)[0]


@pytest.fixture(scope="module")
def pair():
    """The same module without a spread and with one."""
    plain, ours = (DIPModule(trained(), spread=spread) for spread in (None, "auto"))
    return [module.fit_density([TRAIN], calibration=[HELD]) for module in (plain, ours)]


class LastColumns(ClassifierMixin, BaseEstimator):
    """The softmax of the network as scikit-learn sees it."""

    classes_ = np.arange(3)

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return X[:, WIDTH:].copy()


def rows_of(network, X):
    """Features and probabilities, side by side."""
    with torch.no_grad():
        features = network[:2](X)
        proba = special.softmax(network[2](features).double().numpy(), axis=1)
    return np.column_stack([features.double().numpy(), proba])


def test_equal_to_a_frozen_classifier_on_the_same_features():
    settings = {"prior": [0.5, 1.0, 2.0], "calibrator": "passthrough"}
    network, (train, y), (held, z) = (mlp(3, torch.float64), *(
        blobs(n, i, torch.float64) for i, n in enumerate((240, 150))
    ))  # fmt: skip
    new = torch.cat([NEW.double(), 30 * NEW.double()])
    theirs = DIPClassifier(
        FrozenEstimator(LastColumns()),
        GDADensity(),
        features=FunctionTransformer(lambda R: R[:, :WIDTH]),
        **settings,
    )
    theirs.fit(rows_of(network, train), y.numpy(), calibration=(rows_of(network, held), z.numpy()))
    density = ClassGaussians(dtype=torch.float64)
    ours = DIPModule(network, density=density, score="density", **settings)
    ours.fit_density([(train, y)], calibration=[(held[:70], z[:70]), (held[70:], z[70:])])
    want = theirs.predict_dirichlet(rows_of(network, new))
    near = {"rtol": 1e-8, "atol": 1e-10}
    np.testing.assert_allclose(ours(new).concentration, want.concentration, **near)
    np.testing.assert_allclose(ours.predict_dirichlet(new).epistemic, want.epistemic, **near)
    np.testing.assert_allclose(ours.uncertainty(new, "epistemic"), want.epistemic, **near)
    mine, learned = vars(ours.spread_), vars(theirs.spread_)
    assert mine.keys() == learned.keys()
    for name in mine:
        assert mine[name] == pytest.approx(learned[name], rel=1e-8), name


def test_the_mean_the_vacuity_and_the_alarms_stay(pair):
    plain, ours = pair
    X = torch.cat([NEW, 50 * NEW])
    was, now = plain(X), ours(X)
    for name in ("mean", "vacuity", "log_evidence"):
        assert torch.equal(getattr(was, name), getattr(now, name))
    assert torch.equal(plain.predict_ood(X), ours.predict_ood(X))
    wanted = ours.spread_.strength(now.log_evidence.double().numpy())
    np.testing.assert_allclose(now.concentration.sum(dim=1), wanted, rtol=1e-5)
    near, far = now.concentration.sum(dim=1).split(len(NEW))
    assert far.max() == pytest.approx(min(1.0, ours.spread_.strength_)) and near.max() > far.max()
    assert plain.spread_ is None
    assert "intervals_estimated" in ours.diagnose().codes


@pytest.mark.parametrize("way", ["state_dict", "file"])
def test_it_comes_back_with_the_module(way, pair, tmp_path):
    model = pair[1]
    if way == "file":
        model.save(tmp_path / "module.safetensors")
        again = DIPModule.load(tmp_path / "module.safetensors", trained())
        assert again.head.settings.spread == "auto"
    else:
        torch.save(model.state_dict(), tmp_path / "state.pt")
        again = DIPModule(trained())
        again.source.look((NEW[:2],), {})
        again.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert torch.equal(again(NEW).concentration, model(NEW).concentration)
    assert vars(again.spread_) == vars(model.spread_)
    assert again.diagnose().to_dict() == model.diagnose().to_dict()


def test_a_forged_strength_is_refused(pair, tmp_path):
    pair[1].save(tmp_path / "module.safetensors")
    manifest, tensors = container.read(tmp_path / "module.safetensors")
    numbers = pair[1].head.strength.numbers.clone()
    numbers[0] = -1.0
    forged = {"head/strength.numbers": numbers.view(torch.uint8).numpy()}
    del manifest["tensors"]
    container.write(tmp_path / "module.safetensors", manifest, tensors | forged)
    with pytest.raises(container.ModelFileError, match="holds no valid DIPModule"):
        DIPModule.load(tmp_path / "module.safetensors", trained())


def test_calibrate_learns_it_again(pair):
    model = deepcopy(pair[1])
    model.head.strength.numbers.fill_(1.0)
    assert vars(model.spread_) != vars(pair[1].spread_)
    assert vars(model.calibrate([HELD]).spread_) == vars(pair[1].spread_)


def test_rows_that_cannot_tell_leave_intervals_wide():
    model = DIPModule(trained())
    model.fit_density([TRAIN], calibration=[blobs(15, 8)])
    assert model.spread_.strength_ == 0.5 and "intervals_unsupported" in model.diagnose().codes


def test_a_rare_class_is_told_of():
    (X, y), (held, z) = blobs(600, 9), blobs(600, 10)
    few = [torch.where(c == 0, torch.arange(len(c)) < 15, True) for c in (y, z)]
    model = DIPModule(trained())
    model.fit_density([(X[few[0]], y[few[0]])], calibration=[(held[few[1]], z[few[1]])])
    assert model.spread_.shortfall and "intervals_of_a_rare_class" in model.diagnose().codes
    with pytest.warns(FindingWarning, match="class has few rows"):
        model.predict_dirichlet(NEW).credible_interval()


def shown_by(model):
    """The codes of what an interval warns of, by both ways to a Dirichlet."""
    codes = []
    for dirichlet in (model.predict_dirichlet(NEW), model.answers(NEW).dirichlet):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dirichlet.credible_interval()
        codes.append([one.message.args[0].code for one in caught])
        assert all(one.filename == __file__ for one in caught)
    assert codes[0] == codes[1]
    return codes[0]


def test_intervals_of_evidence_alone_say_so(pair, tmp_path):
    plain, ours = pair
    X, y = TRAIN
    halves = [(X[:120], y[:120]), (X[120:], y[120:])]
    alone = DIPModule(trained()).fit_density(halves)
    alone.save(tmp_path / "module.safetensors")
    again = DIPModule(trained())
    again.source.look((NEW[:2],), {})
    again.load_state_dict(alone.state_dict())
    told = {
        "not asked for": plain,
        "no rows for it": alone,
        "copied": deepcopy(alone),
        "of a file": DIPModule.load(tmp_path / "module.safetensors", trained()),
        "of a state": again,
    }
    for name, model in told.items():
        assert shown_by(model) == ["intervals_of_evidence"], name
    for model in (ours, alone.calibrate([HELD])):
        assert shown_by(model) == ["intervals_fall_short"] * bool(model.spread_.shortfall)
    assert not shown_by(DIPModule.paper(trained()).fit_density([TRAIN]))


def test_a_state_without_its_rows_warns():
    state = DIPModule(trained()).fit_density([TRAIN]).state_dict()
    other = DIPModule(trained())
    other.source.look((NEW[:2],), {})
    other.load_state_dict(
        {k: v for k, v in state.items() if not k.startswith("held_out.")}, strict=False
    )
    with pytest.warns(FindingWarning, match="too narrow"):
        other.predict_dirichlet(NEW).credible_interval()


def test_bad_input():
    with pytest.raises(ValueError, match=r"spread must be 'auto' .* or None"):
        DIPModule(trained(), spread="wide")
    model = DIPModule(trained())
    with pytest.raises(NotFittedError):
        model.spread_  # noqa: B018
    # Rows that the network was trained on say nothing of its error.
    assert DIPModule(trained()).fit_density([TRAIN]).spread_ is None
    with pytest.raises(ValueError, match="batch 0 of calibration holds no labels"):
        model.fit_density([TRAIN], calibration=[HELD[0]])
