"""Another default dtype or device of PyTorch changes no network of the library, to the last bit."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import nn

import dipedl
from dipedl import baselines
from dipedl.baselines import DeepEnsemble
from dipedl.density import FlowDensity
from dipedl.networks import (
    MLP,
    Dequantization,
    FastCNN,
    LayerFeatures,
    MaskedAutoregressive,
    TorchClassifier,
    Training,
)
from dipedl.pretrained import ClassGaussians, DIPModule
from normed_network import Normed
from weekly import sample_of

QUICK = {"epochs": 1, "batch_size": 24, "n_jobs": 1}
#: Baselines that draw or compute with PyTorch beyond what their network does.
TRAINED = (
    "EDL",
    "DAEDL",
    "PostNet",
    "NatPN",
    "FEDL",
    "IBEDL",
    "SNGP",
    "SWAG",
    "DUQ",
    "MCDropout",
    "DeepEnsemble",
)
Y = np.arange(60) % 3
ROWS = np.random.default_rng(0).normal(size=(60, 4)) + Y[:, None]
PIXELS = np.random.default_rng(0).integers(0, 256, (60, 144)) / 255
#: "meta" stands for a GPU: whatever is left there by mistake cannot be used.
DEFAULTS = [torch.float64, torch.float16, "meta"]


def dim(inputs, generator):
    like = {"dtype": inputs.dtype, "device": inputs.device}
    return inputs * torch.rand(len(inputs), 1, generator=generator, **like)


@contextmanager
def default(value):
    """PyTorch with another default dtype or device."""
    if value == "meta":
        torch.set_default_device("meta")
    else:
        torch.set_default_dtype(value)
    try:
        yield
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)


def of_classifier(backbone=None, X=ROWS, **settings):
    def answers():
        training = Training(**QUICK | {k: settings[k] for k in settings if k in ("augment", "amp")})
        more = {k: v for k, v in settings.items() if k not in ("augment", "amp")}
        clf = TorchClassifier(backbone or MLP((8,)), training, **more).fit(X, Y)
        return np.hstack([clf.predict_proba(X), clf.transform(X)])

    return answers


def of_baseline(name):
    def answers():
        network = {"backbone": MLP((16,)), "training": Training(**QUICK)}
        if name == "MCDropout":
            network["backbone"] = MLP((16,), dropout=0.2)
        kind = getattr(baselines, name)
        alone = "training" in kind().get_params()
        given = network if alone else {"estimator": TorchClassifier(**network)}
        model = kind(**given | ({"n_members": 2} if kind is DeepEnsemble else {})).fit(ROWS, Y)
        return np.column_stack([model.predict_proba(ROWS), model.uncertainty(ROWS)])

    return answers


def of_layers():
    network = TorchClassifier(MLP((8, 4)), Training(**QUICK))
    return LayerFeatures(network, layers=("body", "head")).fit(ROWS, Y).transform(ROWS)


def of_flow(flow=None, X=ROWS, preprocessing=None, **settings):
    def answers():
        made = flow or MaskedAutoregressive(2, (8,), **settings)
        density = FlowDensity(made, preprocessing, Training(**QUICK)).fit(X)
        return np.r_[density.score_samples(X), density.sample(3).ravel()]

    return answers


def of_dip():
    network = TorchClassifier(MLP((8,)), Training(**QUICK))
    model = dipedl.DIPClassifier(network, features=network, cv=2).fit(ROWS, Y)
    return np.column_stack([model.predict_proba(ROWS), model.score_samples(ROWS)])


def network(dtype):
    """A network of the user's, on the CPU and of a stated type."""
    draw = np.random.default_rng(1).normal
    body = nn.Linear(4, 5, device="cpu", dtype=dtype), nn.Tanh()
    made = nn.Sequential(*body, nn.Linear(5, 3, device="cpu", dtype=dtype)).eval()
    with torch.no_grad():
        for weights in made.parameters():
            weights.copy_(torch.from_numpy(draw(size=weights.shape)))
    return made


def of_module(dtype=torch.float32, **settings):
    def answers(tmp_path):
        rng = np.random.default_rng(2)
        X = torch.from_numpy(np.tile(ROWS, (4, 1)) + rng.normal(size=(240, 4))).to(dtype)
        y = np.tile(Y, 4).tolist()
        fit, held = (X[:120], y[:120]), (X[120:], y[120:])
        module = DIPModule(network(dtype), **settings).fit_density([fit], calibration=[held])
        module.calibrate([held])
        module.predict_with_reject(X, coverage=0.9)
        module.explain(X[:2]), module.answers(X[:2]), module.diagnose()
        module.save(tmp_path / "module.safetensors")
        loaded = DIPModule.load(tmp_path / "module.safetensors", network(dtype))
        copied = DIPModule(network(dtype), **settings)
        copied.load_state_dict(module.state_dict())
        found = [
            torch.column_stack([m.p_value(X), m.predict_set(X), m.uncertainty(X), m(X).mean])
            for m in (module, loaded, copied)
        ]
        assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
        return found[0].detach().numpy()

    return answers


CASES = {
    "MLP": of_classifier(),
    "FastCNN": of_classifier(FastCNN(), PIXELS),
    "spectral norm": of_classifier(Normed(4), PIXELS),
    "augmented": of_classifier(FastCNN(), PIXELS, augment=dim),
    "half precision": of_classifier(amp=True),
    "weights": of_classifier(class_weight="balanced", label_smoothing=0.1, precision="float64"),
    **{name: of_baseline(name) for name in baselines.__all__ if name in TRAINED},
    "LayerFeatures": of_layers,
    "flow": of_flow(),
    "flow with norms": of_flow(batch_norm=True, between_batch_norm=True),
    "flow of pixels": of_flow(None, PIXELS, Dequantization()),
    "DIPClassifier": of_dip,
}
#: One of each way to train.
FEW = ("MLP", "spectral norm", "half precision", "EDL", "PostNet", "LayerFeatures", "flow")
MODULES = {
    "full": of_module(),
    "low-rank": of_module(density=ClassGaussians("low-rank", rank=2)),
    "float64": of_module(
        torch.float64, density=ClassGaussians("tied", coordinates="polar", dtype=torch.float64)
    ),
    "bfloat16": of_module(torch.bfloat16, score="density"),
}


@pytest.mark.parametrize("name", sample_of(CASES, *FEW))
def test_a_fit_is_the_same_under_other_defaults(name):
    answers = CASES[name]
    wanted = answers()
    for value in DEFAULTS:
        with default(value):
            np.testing.assert_array_equal(answers(), wanted, err_msg=str(value))
            assert torch.get_default_dtype() == (torch.float32 if value == "meta" else value)


@pytest.mark.parametrize("name", sample_of(MODULES, "full"))
def test_a_module_is_the_same_under_other_defaults(name, tmp_path):
    answers = MODULES[name]
    wanted = answers(tmp_path)
    for value in DEFAULTS:
        with default(value):
            np.testing.assert_array_equal(answers(tmp_path), wanted, err_msg=str(value))


def test_threads_fit_at_once_under_another_default():
    wanted = CASES["MLP"]()
    with default(torch.float64), ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: CASES["MLP"](), range(8)):
            np.testing.assert_array_equal(found, wanted)
        assert torch.get_default_dtype() == torch.float64
