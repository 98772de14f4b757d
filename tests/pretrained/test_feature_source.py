"""Where features come from, against the layers run one after another by hand."""

from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from torch import nn

from dipedl.pretrained import DIPModule
from dipedl.pretrained.features import FeatureSource, logits_of


class ConvNet(nn.Module):
    """Features (n, 8, 6, 6) -> (n, 8) -> logits; a linear layer inside that is not the head."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True))
        self.gate = nn.Linear(8, 8)
        self.unused = nn.Linear(8, 2)
        self.norm = nn.Linear(8, 8)
        self.relu = nn.ReLU(inplace=True)
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        maps = self.stem(x)
        pooled = maps.mean((2, 3))
        hidden = self.norm(pooled * self.gate(pooled).sigmoid())
        return self.fc(self.relu(hidden))


@pytest.fixture
def network():
    return ConvNet().eval()


@pytest.fixture
def images():
    return torch.randn(10, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def captured(network, x, features="penultimate", pool=None):
    source = FeatureSource(network, features, pool)
    source.look((x,), {})
    return source, *source(x)


def test_penultimate_is_the_input_of_the_last_linear_that_runs(network, images):
    inputs = []
    network.fc.register_forward_pre_hook(lambda module, args: inputs.append(args[0].clone()))
    source, features, logits = captured(network, images)
    assert torch.equal(features, inputs[-1])
    assert torch.equal(logits, network(images))
    assert "'fc' (Linear(in_features=8, out_features=4" in source.layers


def test_an_output_survives_what_works_in_place_after_it(network, images):
    pooled = network.stem(images).mean((2, 3))
    expected = network.norm(pooled * network.gate(pooled).sigmoid())
    assert bool((expected < 0).any())
    assert torch.equal(captured(network, images, "norm")[1], expected)


@pytest.mark.parametrize(("pool", "reduce"), [("average", torch.mean), ("max", torch.amax)])
def test_maps_and_sequences_are_pooled(network, images, pool, reduce):
    maps = network.stem(images)
    torch.testing.assert_close(captured(network, images, "stem", pool)[1], reduce(maps, dim=(2, 3)))
    tokens = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))

    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = tokens

        def forward(self, x):
            return self.tokens(x)[:, 0]

    x = torch.randn(6, 7, 3)
    expected = reduce(tokens[:2](x), dim=1)
    torch.testing.assert_close(captured(First(), x, pool=pool)[1], expected)


def test_several_layers_stand_side_by_side(network, images):
    features = captured(network, images, ["stem", "norm"])[1]
    assert features.shape == (10, 16)
    torch.testing.assert_close(features[:, :8], network.stem(images).mean((2, 3)))


def test_a_function_runs_the_network_itself(network, images):
    def both(net, x):
        maps = net.stem(x)
        return maps, net(x)

    _, features, logits = captured(network, images, both, "average")
    torch.testing.assert_close(features, network.stem(images).mean((2, 3)))
    assert torch.equal(logits, network(images))


class Named(NamedTuple):
    logits: torch.Tensor
    auxiliary: torch.Tensor


def test_logits_are_found():
    logits = torch.zeros(2, 3)
    for output in (
        logits,
        (logits, 1),
        [logits],
        {"loss": 0, "logits": logits},
        SimpleNamespace(logits=logits),
        Named(logits, torch.ones(1)),
    ):
        assert logits_of(output) is logits


@pytest.mark.parametrize(
    ("output", "error", "message"),
    [
        ("text", TypeError, "network must give logits.*got str"),
        ({"scores": torch.zeros(2, 3)}, TypeError, "got dict"),
        ((), TypeError, "got tuple"),
        (torch.zeros(2, 3, dtype=torch.int64), TypeError, "float tensor"),
        (torch.zeros(2, 1), ValueError, r"k >= 2, got \(2, 1\).*sigmoid"),
        (torch.zeros(2, 3, 4), ValueError, r"got \(2, 3, 4\)"),
    ],
    ids=str,
)
def test_what_holds_no_logits(output, error, message):
    with pytest.raises(error, match=message):
        logits_of(output)


def headless():
    """A linear layer that is no head: a convolution follows."""
    network = nn.Sequential(nn.Linear(3, 5), nn.Unflatten(1, (5, 1)), nn.Conv1d(5, 4, 1))
    return network.append(nn.Flatten())


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        ("stem", ValueError, r"'stem'.*got \(10, 8, 6, 6\).*pool='average'"),
        ("fcc", ValueError, r"got 'fcc'; did you mean \['fc'\]"),
        ([], ValueError, r"it has .*'stem\.0'"),
        (["unused", "fc"], ValueError, r"\['unused'\], which gave no tensor"),
        (lambda net, x: net(x), TypeError, r"\(features, logits\).*got Tensor"),
        (lambda net, x: (net.stem(x), net(x)), ValueError, r"the function.*\(10, 8, 6, 6\)"),
        (None, ValueError, r"'0'.*gives 5 columns and there are 4 logits"),
    ],
)
def test_features_that_there_are_not(network, images, features, error, message):
    arguments = (
        (network, images, features) if features is not None else (headless(), torch.randn(2, 3))
    )
    with pytest.raises(error, match=message):
        captured(*arguments)


def test_no_linear_layer_lists_what_there_is(images):
    network = nn.Sequential(nn.Conv2d(3, 4, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    with pytest.raises(ValueError, match=r"none ran.*0 4x8x8, 1 4x1x1, 2 4"):
        captured(network, images)
    assert captured(network, images, "0", "average")[1].shape == (10, 4)


def test_a_layer_that_does_not_run_every_time():
    class Fickle(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 2), nn.Linear(3, 2)

        def forward(self, x):
            return self.a(x) if len(x) > 2 else self.b(x)

    source, *_ = captured(Fickle(), torch.randn(4, 3))
    with pytest.raises(ValueError, match="'a' did not run in this pass"):
        source(torch.randn(2, 3))


class Text(nn.Module):
    """An encoder that packs padded rows into a nested tensor, as PyTorch's does by default."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.embed = nn.Embedding(9, 8)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        mask = x == 0 if (x == 0).any() else None
        return self.head(self.encoder(self.embed(x), src_key_padding_mask=mask).mean(1))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_padded_rows_in_a_nested_tensor():
    # It packs only where no gradient is wanted.
    network, tokens = (
        Text().eval().requires_grad_(False),
        torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0], [7, 8, 1, 0]]),
    )
    source, features, logits = captured(network, tokens)
    torch.testing.assert_close(logits, network(tokens))
    torch.testing.assert_close(network.head(features), logits)
    assert source.shapes["encoder"] == (4, 8) and "encoder.layers.0" not in source.shapes
    with pytest.raises(ValueError, match=r"encoder\.layers\.0.*enable_nested_tensor=False"):
        captured(network, tokens, "encoder.layers.0", "average")
    # Known from rows without padding; padding comes later.
    source, *_ = captured(network, tokens[:1], "encoder.layers.0", "average")
    with pytest.raises(ValueError, match=r"encoder\.layers\.0.*enable_nested_tensor=False"):
        source(tokens)


def test_nothing_is_kept_outside_a_pass(network, images):
    source, *_ = captured(network, images)
    network(images)
    assert source._activations.tensors is None
    with pytest.raises(RuntimeError):
        source(images[:, :2])
    assert source._activations.tensors is None


def test_describe_says_how_to_correct_a_wrong_guess(network):
    module = DIPModule(network).fit_density([(torch.randn(120, 3, 8, 8), torch.arange(120) % 4)])
    text = module.describe()
    assert "'fc'" in text and "shape: (n, 8)" in text
    assert "features='<module>'" in text and "stem 8x6x6" in text


def test_a_layer_that_gives_several_tensors_is_heard_by_its_first():
    class Body(nn.Module):
        def __init__(self, as_dict):
            super().__init__()
            self.inner, self.as_dict = nn.Linear(3, 5), as_dict

        def forward(self, x):
            hidden = self.inner(x)
            return {"last": hidden, "all": [x]} if self.as_dict else (hidden, x)

    class Net(nn.Module):
        def __init__(self, as_dict):
            super().__init__()
            self.body, self.head = Body(as_dict), nn.Linear(5, 2)

        def forward(self, x):
            found = self.body(x)
            return self.head(found["last"] if isinstance(found, dict) else found[0])

    x = torch.randn(4, 3)
    for network in (Net(True), Net(False)):
        assert torch.equal(captured(network, x, "body")[1], network.body.inner(x))


def test_state_of_another_layer_moves_the_hook(network, images):
    source, *_ = captured(network, images)
    other = FeatureSource(network, "penultimate", None)
    other._capture_head("gate")
    other.load_state_dict(source.state_dict())
    assert torch.equal(other(images)[0], source(images)[0])
    assert not network.gate._forward_pre_hooks


def test_state_of_another_network_is_refused(network):
    module = DIPModule(network).fit_density([(torch.randn(120, 3, 8, 8), torch.arange(120) % 4)])
    state = {f"source.{name}": value for name, value in module.source.state_dict().items()}
    with pytest.raises(ValueError, match="it is another network"):
        DIPModule(nn.Linear(3, 4)).load_state_dict(state, strict=False)
