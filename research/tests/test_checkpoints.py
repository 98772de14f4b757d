"""A network trained elsewhere, as a classifier: its outputs, its parts, and what is refused."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("pydantic")

from safetensors.torch import save_file  # noqa: E402
from scipy.signal import correlate2d  # noqa: E402
from sklearn.frozen import FrozenEstimator  # noqa: E402

from dipedl.baselines import MaxLogit  # noqa: E402
from dipedl_bench.checkpoints import Checkpoint  # noqa: E402
from dipedl_bench.residual_networks import ResNet  # noqa: E402
from dipedl_bench.results.predictions import Predictions  # noqa: E402
from dipedl_bench.running.scoring import find_predictions  # noqa: E402
from dipedl_bench.running.training import restore, weights_of  # noqa: E402

SHAPE, MEAN, SD = (3, 8, 8), (0.4, 0.5, 0.6), (0.2, 0.3, 0.25)
Y = np.array([0, 1, 2, 0, 1, 2])


class Body(torch.nn.Module):
    """A network whose last linear layer lies deep, and is not called last by its name."""

    def __init__(self, width=5, twice=False):
        super().__init__()
        self.parts = torch.nn.ModuleDict(
            {"last": torch.nn.Conv2d(3, width, 3), "first": torch.nn.Linear(width, 3)}
        )
        self.twice = twice

    def forward(self, images):
        outputs = self.parts["first"](torch.relu(self.parts["last"](images)).mean(dim=(2, 3)))
        return 2 * outputs if self.twice else outputs


def text(**options):
    return "no module"


@pytest.fixture
def pixels(rng):
    return rng.random((len(Y), 3 * 8 * 8))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def randomised(module, seed=0):
    """Weights and statistics drawn, so that no part of a network is idle."""
    generator = torch.Generator().manual_seed(seed)
    for name, of in module.state_dict().items():
        if of.dtype.is_floating_point:
            of.copy_(0.3 * torch.randn(of.shape, generator=generator))
            if name.endswith("running_var"):
                of.copy_(of.abs() + 0.5)
    return module.eval()


def checkpoint(weights, **settings):
    made = {"architecture": f"{__name__}:Body", "weights": str(weights)}
    made |= {"image_shape": SHAPE, "mean": MEAN, "sd": SD}
    return Checkpoint(**{**made, **settings})


def naive_resnet(state, depth, image):
    """Logits of one image (3, h, w) by loops over channels, pixels and blocks."""

    def convolve(maps, weight, stride):
        padded = np.pad(maps, ((0, 0), (1, 1), (1, 1)))
        full = [
            sum(correlate2d(m, kernel, "valid") for m, kernel in zip(padded, kernels, strict=True))
            for kernels in weight
        ]
        return np.array(full)[:, ::stride, ::stride]

    def norm(maps, name):
        gamma, beta, mean, var = (
            state[f"{name}.{part}"].numpy()[:, None, None]
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        return gamma * (maps - mean) / np.sqrt(var + 1e-5) + beta

    maps = np.maximum(norm(convolve(image, state["conv1.weight"].numpy(), 1), "bn1"), 0)
    for layer in (1, 2, 3):
        for block in range((depth - 2) // 6):
            name, stride = f"layer{layer}.{block}", 2 if layer > 1 and block == 0 else 1
            inner = convolve(maps, state[f"{name}.conv1.weight"].numpy(), stride)
            inner = np.maximum(norm(inner, f"{name}.bn1"), 0)
            inner = norm(convolve(inner, state[f"{name}.conv2.weight"].numpy(), 1), f"{name}.bn2")
            more = (len(inner) - len(maps)) // 2
            shortcut = np.zeros_like(inner)
            shortcut[more : more + len(maps)] = maps[:, ::stride, ::stride]
            maps = np.maximum(inner + shortcut, 0)
    return state["linear.weight"].numpy() @ maps.mean(axis=(1, 2)) + state["linear.bias"].numpy()


@pytest.mark.parametrize("depth", [8, 14])
def test_the_residual_network_is_that_of_loops(rng, depth):
    network = randomised(ResNet(depth, 4))
    images = rng.normal(size=(2, 3, 8, 8))
    with torch.inference_mode():
        found = network(torch.from_numpy(images).float()).numpy()
    expected = [naive_resnet(network.state_dict(), depth, image) for image in images]
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("form", ["safetensors", "pt", "wrapped"])
def test_logits_and_features_are_those_of_the_module(tmp_path, pixels, form):
    whole = randomised(Body())
    state, file = whole.state_dict(), tmp_path / f"weights-7.{form}"
    if form == "safetensors":
        save_file(state, file)
    else:
        wrapped = {"state_dict": {f"module.{k}": v for k, v in state.items()}, "epoch": 3}
        torch.save(state if form == "pt" else wrapped, file)
    network = checkpoint(tmp_path / f"weights-{{seed}}.{form}", random_state=7).fit(pixels, Y)
    images = pixels.reshape(-1, *SHAPE).astype(np.float32)
    normal = (images - np.reshape(MEAN, (3, 1, 1))) / np.reshape(SD, (3, 1, 1))
    with torch.inference_mode():
        expected = whole(torch.from_numpy(normal).float()).numpy()
    np.testing.assert_allclose(network.logits(pixels), expected, rtol=1e-4, atol=1e-5)
    weight, bias = network.linear_head()
    np.testing.assert_allclose(network.transform(pixels) @ weight.T + bias, expected, atol=1e-5)
    frozen = MaxLogit(FrozenEstimator(network)).fit(pixels, Y)
    np.testing.assert_allclose(frozen.uncertainty(pixels), -expected.max(axis=1), atol=1e-5)
    # what a store keeps of it makes it again, without the file
    file.unlink()
    again = restore(checkpoint(file), pixels, Y, weights_of(network))
    np.testing.assert_array_equal(again.logits(pixels), network.logits(pixels))


def test_options_may_hold_the_seed(tmp_path, rng):
    save_file(randomised(ResNet(14, 3)).state_dict(), tmp_path / "resnet14-abc.safetensors")
    network = checkpoint(
        tmp_path / "resnet{seed}-*.safetensors",
        architecture="dipedl_bench.residual_networks:ResNet",
        options={"depth": "{seed}", "n_classes": 3},
        random_state=14,
    )
    features = network.fit(rng.random((3, 192)), [0, 1, 2]).transform(rng.random((2, 192)))
    assert features.shape == (2, 64)


REFUSED = {
    "another architecture": ({"options": {"width": 6}}, "weights"),
    "outputs that are no classes": ({"labels": [0, 1, 0, 1, 0, 1]}, "architecture"),
    "no such module": ({"architecture": "no_such_module:Net"}, "architecture"),
    "no such class": ({"architecture": f"{__name__}:Boddy"}, "architecture"),
    "no colon": ({"architecture": "Body"}, "architecture"),
    "no such option": ({"options": {"depth": 6}}, "architecture"),
    "no module": ({"architecture": f"{__name__}:text"}, "architecture"),
    "a head that is not the end": ({"options": {"twice": True}}, "architecture"),
    "no such file": ({"weights": "none.safetensors"}, "weights"),
    "several files": ({"weights": "*"}, "weights"),
    "a mean of other channels": ({"mean": (0.5,)}, "mean"),
    "a deviation of zero": ({"sd": (1.0, 0.0, 1.0)}, "sd"),
    "damaged": ({"weights": "broken.safetensors"}, "weights"),
    "not a state dict": ({"weights": "broken.pt"}, "weights"),
    "not tensors": ({"weights": "numbers.pt"}, "weights"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(tmp_path, monkeypatch, pixels, what):
    monkeypatch.chdir(tmp_path)
    save_file(randomised(Body()).state_dict(), "body.safetensors")
    for name in ("broken.safetensors", "broken.pt"):
        (tmp_path / name).write_bytes(b"\x08\x00 no weights")
    torch.save({"epoch": 3}, "numbers.pt")
    changes, argument = REFUSED[what]
    settings = {**changes}
    y = settings.pop("labels", Y)
    with pytest.raises(ValueError, match=f"^{argument}"):
        checkpoint(**{"weights": "body.safetensors", **settings}).fit(pixels, y)


def test_code_in_a_file_of_weights_does_not_run(tmp_path, pixels):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    torch.save({"state_dict": Trap()}, tmp_path / "trap.pt")
    with pytest.raises(ValueError, match=r"^weights"):
        checkpoint(tmp_path / "trap.pt").fit(pixels, Y)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("depth", "stated"), [(20, 0.0827), (32, 0.0737)])
def test_published_predictions_have_the_error_that_their_network_is_published_with(depth, stated):
    (file,) = find_predictions("cifar10-resnet", seeds=[depth])
    arrays = Predictions.read(file).arrays
    rows = [arrays[split] for split in ("validation", "test")]  # the halves of the test images
    wrong = np.concatenate([of["logits"].argmax(axis=1) != of["y"] for of in rows])
    assert len(wrong) == 10_000 and wrong.mean() == pytest.approx(stated, abs=1e-9)
