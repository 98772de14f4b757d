"""Graphs of torch models against the models themselves, in onnxruntime."""

import json
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
if find_spec("onnxscript") is None:  # it takes seconds to load: while collecting, in each process
    pytest.skip("needs onnxscript", allow_module_level=True)

from torch import nn  # noqa: E402

from dipedl.evidence import ZScore  # noqa: E402
from dipedl.io.onnx._torch import (  # noqa: E402
    Call,
    check_graph,
    network_graph,
    torch_graph,
    trace,
)
from dipedl.networks import MLP, FastCNN, LayerFeatures, TorchClassifier, Training  # noqa: E402
from dipedl.pretrained import ClassGaussians, DIPModule  # noqa: E402

pytestmark = pytest.mark.usefixtures("torch_operators")
CPU = torch.device("cpu")
ANSWERS = ["probabilities", "vacuity", "log_evidence", "ood"]


def session_of(proto):
    onnx.checker.check_model(proto, full_check=True)
    return ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])


class OfTuple(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, tensors):
        return tuple(self.function(*tensors))


# Operations.


@given(
    arrays.arrays(
        np.float32, st.integers(1, 7), elements=st.floats(-(2.0**100), 2.0**100, width=32)
    )
)
def test_log_sigmoid_and_logaddexp_are_those_of_torch_far_out(graph_of_logs, row):
    found = graph_of_logs.run(None, {"a": row, "b": row[::-1].copy()})
    a, b = torch.from_numpy(row), torch.from_numpy(row[::-1].copy())
    expected = nn.functional.logsigmoid(a), torch.logaddexp(a, b)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)


@pytest.fixture(scope="module")
def proto_of_logs():
    module = OfTuple(lambda a, b: (nn.functional.logsigmoid(a), torch.logaddexp(a, b)))
    inputs = (torch.zeros(3), torch.zeros(3))
    return trace(module, inputs, ["a", "b"], ["c", "d"], opset=18)


@pytest.fixture(scope="module")
def graph_of_logs(proto_of_logs):
    return session_of(proto_of_logs)


def test_infinities_stay_what_torch_makes_of_them(graph_of_logs):
    a = np.array([np.inf, -np.inf, -np.inf, 0], dtype=np.float32)
    b = np.array([np.inf, -np.inf, 1, -np.inf], dtype=np.float32)
    ours = graph_of_logs.run(None, {"a": a, "b": b})
    a, b = torch.from_numpy(a), torch.from_numpy(b)
    np.testing.assert_array_equal(ours[0], nn.functional.logsigmoid(a))
    np.testing.assert_allclose(ours[1], torch.logaddexp(a, b), rtol=1e-6)


def test_the_graph_says_nothing_of_this_machine(proto_of_logs):
    assert b"site-packages" not in proto_of_logs.SerializeToString()
    assert __file__.encode() not in proto_of_logs.SerializeToString()


# Inputs.


class Keyword(nn.Module):
    def forward(self, first, second, *rest, scale=1.0):
        return first


def test_inputs_are_named_after_arguments():
    rows = torch.zeros(2, 3)
    assert Call.of(rows, Keyword().forward, CPU).names == ["first"]
    assert Call.of((rows, {"k": rows}, rows), Keyword().forward, CPU).names == [
        "first",
        "second.k",
        "input_2",
    ]
    assert Call.of({"second": [rows, rows]}, Keyword().forward, CPU).names == [
        "second.0",
        "second.1",
    ]


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


def test_a_call_keeps_its_nesting_and_all_that_is_no_tensor():
    rows = torch.arange(6.0).reshape(2, 3)
    example = (Pair(rows, rows), {"a": [rows, 3], "b": None}, True)
    args, kwargs = Call.of(example, Keyword().forward, CPU).filled((rows + 1, rows + 2, rows + 3))
    assert kwargs == {}
    assert isinstance(args[0], Pair)
    assert torch.equal(args[0].right, rows + 2)
    assert torch.equal(args[1]["a"][0], rows + 3)
    assert args[1]["a"][1] == 3
    assert args[1]["b"] is None
    assert args[2] is True


def test_one_row_is_repeated_for_the_tracer():
    call = Call.of(torch.ones(1, 3), Keyword().forward, CPU)
    assert call.tensors[0].shape == (2, 3)
    assert torch.equal(call.tensors[0][0], call.tensors[0][1])


@pytest.mark.parametrize("example", [None, torch.zeros(0, 3), {}, "row", torch.tensor(1.0)])
def test_an_example_without_rows_is_refused(example):
    with pytest.raises(ValueError, match="example must hold one batch"):
        Call.of(example, Keyword().forward, CPU)


# Errors.


class Branch(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class Triangular(nn.Module):
    def forward(self, x):
        return torch.linalg.solve_triangular(torch.eye(4), x, upper=True, left=False)


class Fixed(nn.Module):
    def forward(self, x):
        return x.reshape(2, 4) * 2


class Wrapped(nn.Module):
    def __init__(self, bad):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(4, 4), nn.Sequential(bad))

    def forward(self, tensors):
        return (self.network(*tensors),)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (Branch(), r"cannot be traced for ONNX in module '1\.0'.*data-dependent"),
        (Fixed(), r"cannot be traced for ONNX.*any number of rows"),
        (Triangular(), r"aten\.linalg_solve_triangular\S* of the model \(module '1\.0', a Triang"),
    ],
)
def test_what_cannot_be_exported_is_named(bad, said):
    with pytest.raises(ValueError, match=said):
        trace(Wrapped(bad).eval(), (torch.ones(2, 4),), ["a"], ["b"], opset=18)


def test_more_than_two_gibibytes_are_refused_before_any_work():
    huge = nn.Module()
    huge.register_buffer("whiteners", torch.empty(1, device="meta").expand(2**30))
    with pytest.raises(ValueError, match=r"2 GiB.*4\.0 GiB.*low-rank"):
        trace(huge, (torch.ones(2, 4),), ["a"], ["b"], opset=18)


def test_a_missing_package_says_what_to_install(images_graph, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxscript", None)
    with pytest.raises(ImportError, match=r"'onnxscript': pip install 'dipedl\[onnx\]'"):
        images_graph[0].export_onnx(tmp_path / "m.onnx", torch.zeros(1, 1, 7, 7))


# The network behind a DIPClassifier.


@pytest.fixture(scope="module")
def digits():
    rng = np.random.default_rng(0)
    return rng.random((60, 3 * 64), dtype=np.float32), np.arange(60) % 3


@pytest.fixture(scope="module")
def cnn(digits):
    training = Training(epochs=1, n_jobs=1)
    return TorchClassifier(FastCNN(width=4), training, image_shape=(3, 8, 8)).fit(*digits)


def test_layers_and_probabilities_come_from_one_graph(cnn, digits):
    layers = LayerFeatures(FrozenEstimator(cnn), ["body.0", "body"], pool="max").fit(digits[0])
    proto = network_graph(FrozenEstimator(cnn), layers, opset=18)
    session = session_of(proto)
    assert sum(node.op_type == "Conv" for node in proto.graph.node) == 6  # one pass
    assert [i.name for i in session.get_inputs()] == ["X"]
    assert session.get_inputs()[0].shape == ["batch", 192]
    for n in (1, 7):
        proba, features = session.run(["probabilities", "features"], {"X": digits[0][:n]})
        np.testing.assert_allclose(proba, cnn.predict_proba(digits[0][:n]), rtol=0, atol=1e-6)
        np.testing.assert_allclose(features, layers.transform(digits[0][:n]), rtol=1e-5, atol=1e-5)
        assert proba.dtype == features.dtype == np.float64


@pytest.mark.slow
def test_features_of_another_network_in_its_own_precision(digits):
    training = Training(epochs=1, n_jobs=1)
    classifier = TorchClassifier(MLP((4,)), training).fit(*digits)
    other = TorchClassifier(MLP((5,)), training, precision="float64").fit(*digits)
    session = session_of(network_graph(classifier, other, opset=20))
    proba, features = session.run(None, {"X": digits[0].astype(np.float64)})
    np.testing.assert_allclose(features, other.transform(digits[0]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(proba, classifier.predict_proba(digits[0]), rtol=0, atol=1e-6)


def test_networks_without_a_softmax_are_refused(digits):
    from dipedl.baselines import EDL

    with pytest.raises(TypeError, match="must be a TorchClassifier to be exported, got EDL"):
        network_graph(EDL(), opset=18)


# DIPModule: the graph against the module.


class Words(nn.Module):
    """Attention over tokens with a mask, called by keyword."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens, mask):
        hidden = self.encoder(self.embedding(tokens), src_key_padding_mask=~mask)
        weights = mask[..., None].to(hidden.dtype)
        return self.head((hidden * weights).sum(1) / weights.sum(1))


def images_network():
    torch.manual_seed(1)
    body = [nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.GELU(), nn.AdaptiveAvgPool2d(1)]
    network = nn.Sequential(*body, nn.Flatten(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))
    for layer in network:
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.running_mean)
    return network.eval().to(memory_format=torch.channels_last)


def rows_network():
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))


LABELS = torch.arange(300) % 3


def fitted(network, inputs, **options):
    return DIPModule(network.eval(), **options).fit_density([(inputs, LABELS)])


def exported(module, example, opset=18):
    proto = torch_graph(module, example, opset=opset)
    return proto, session_of(proto)


def assert_same(module, session, inputs):
    """`inputs`: by name of the graph's inputs. Beyond 1e30 nats a float32 may be infinite."""
    found = dict(zip(ANSWERS, session.run(ANSWERS, as_arrays(inputs)), strict=True))
    with torch.no_grad():
        expected, scores = module(**inputs), module.score_samples(**inputs).numpy()
    near = dict(rtol=0, atol=1e-5)
    np.testing.assert_allclose(found["probabilities"], expected.mean.numpy(), **near)
    np.testing.assert_allclose(found["vacuity"], expected.vacuity.numpy(), **near)
    ours, theirs = found["log_evidence"], expected.log_evidence.numpy()
    far = theirs < -1e30
    assert (ours[far] < -9e29).all()
    np.testing.assert_allclose(ours[~far], theirs[~far], rtol=1e-5, atol=1e-5)
    sure = ~(abs(scores - module.offset_) <= 1e-5 * (1 + abs(module.offset_)))
    np.testing.assert_array_equal(found["ood"][sure], (scores < module.offset_)[sure])
    assert found["ood"].dtype == bool


def as_arrays(inputs):
    return {name: tensor.numpy() for name, tensor in inputs.items()}


@pytest.fixture(scope="module")
def images_graph():
    torch.manual_seed(3)
    module = fitted(images_network(), torch.randn(300, 1, 7, 7))
    return module, *exported(module, torch.zeros(1, 1, 7, 7), opset=20)


def drawn(shape, largest):
    """1 to 7 inputs of a shape: small numbers, times a scale up to a power of ten."""
    small = st.integers(1, 7).flatmap(
        lambda n: arrays.arrays(np.float64, (n, *shape), elements=st.floats(-3, 3))
    )
    return st.tuples(small, st.integers(0, largest)).map(lambda pair: pair[0] * 10.0 ** pair[1])


@settings(max_examples=12)
@given(drawn((1, 7, 7), 12))
def test_a_convolutional_network(images_graph, X):
    module, _, session = images_graph
    assert_same(module, session, {"input": torch.from_numpy(X).float()})


def test_the_graph_has_named_inputs_and_outputs_of_any_number_of_rows(images_graph):
    _, proto, session = images_graph
    assert [(i.name, i.shape, i.type) for i in session.get_inputs()] == [
        ("input", ["batch", 1, 7, 7], "tensor(float)")
    ]
    assert [(o.name, o.shape) for o in session.get_outputs()] == [
        ("probabilities", ["batch", 3]),
        ("vacuity", ["batch"]),
        ("log_evidence", ["batch"]),
        ("ood", ["batch"]),
    ]
    assert proto.opset_import[0].version == 20
    assert sum(node.op_type == "Conv" for node in proto.graph.node) == 1  # one pass


def test_a_row_does_not_know_the_others(images_graph, rng):
    _, _, session = images_graph
    X = rng.normal(size=(7, 1, 7, 7)).astype(np.float32)
    together = session.run(["log_evidence"], {"input": X})[0]
    alone = [session.run(["log_evidence"], {"input": X[i : i + 1]})[0][0] for i in range(7)]
    np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-5)


FORMS = [
    ("full", torch.float64, torch.float64),
    pytest.param(("tied", torch.float32, torch.float32), marks=pytest.mark.slow),
    pytest.param(("diagonal", torch.float32, torch.float32), marks=pytest.mark.slow),
    # in float32 a difference of squares leaves it five digits
    pytest.param(("low-rank", torch.float32, torch.float64), marks=pytest.mark.slow),
]


def by_function(network, input):
    """Features and logits out of operations of torch."""
    hidden = network[:4](input)
    return torch.cat([hidden, input.square()], dim=1), network[4](hidden)


@pytest.fixture(scope="module")
def file_graph(tmp_path_factory):
    """A module with intervals, and its graph out of a file."""
    generator = torch.Generator().manual_seed(6)
    X = torch.randn(600, 4, dtype=torch.float64, generator=generator)
    network = rows_network().double().eval()
    labels = network(X).argmax(1)  # it errs on few rows, so that intervals are narrow
    labels[::20] = LABELS.repeat(2)[::20]
    module = DIPModule(
        network,
        features=["1", "2"],
        density=ClassGaussians("full", rank=3, dtype=torch.float64),
        score="fused",
        prior=[0.5, 1.0, 2.0],
        max_evidence=200.0,
        classes=["a", "b", "c"],
    )
    module.fit_density([(X[:300], labels[:300])], calibration=[(X[300:], labels[300:])])
    path = tmp_path_factory.mktemp("graph") / "rows.onnx"
    module.export_onnx(path, X[:3])
    return module, torch.float64, ort.InferenceSession(path)


@pytest.fixture(scope="module", params=FORMS, ids=lambda form: f"{form[0]}-{form[2]}"[:14])
def rows_graph(request):
    covariance, of_network, of_density = request.param
    if covariance == "full":
        return request.getfixturevalue("file_graph")
    generator = torch.Generator().manual_seed(4)
    X = torch.randn(300, 4, dtype=of_network, generator=generator) + LABELS[:, None]
    module = fitted(
        rows_network().to(of_network),
        X,
        features=by_function if covariance == "low-rank" else ["1", "2"],
        density=ClassGaussians(
            covariance,
            coordinates="polar" if covariance == "tied" else "cartesian",
            rank=3,
            dtype=of_density,
        ),
        # the root in a fused score enlarges what float32 rounds off a log-density
        score="fused" if of_density == torch.float64 else "density",
        prior=[0.5, 1.0, 2.0],
        normalizer=ZScore() if covariance == "tied" else None,
    )
    return module, of_network, exported(module, X[:3])[1]


@settings(max_examples=12)
@given(drawn((4,), 18))
def test_every_covariance_and_both_precisions(rows_graph, X):
    module, dtype, session = rows_graph
    assert_same(module, session, {"input": torch.from_numpy(X).to(dtype)})


@pytest.fixture(scope="module")
def words_graph():
    torch.manual_seed(5)
    module = DIPModule(Words().eval())
    module.fit_density([{**words(300, 0), "labels": LABELS}])
    return module, exported(module, words(3, 1))[1]


def words(n, seed):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 7, (n, 1), generator=generator)
    tokens = torch.randint(0, 20, (n, 6), generator=generator)
    return {"tokens": tokens, "mask": torch.arange(6) < lengths}


@pytest.mark.slow
@given(st.integers(1, 7), st.integers(0, 1000))
def test_attention_over_a_dict_of_inputs(words_graph, n, seed):
    module, session = words_graph
    assert_same(module, session, words(n, seed))


@pytest.mark.slow
def test_names_and_types_of_a_dict_are_kept(words_graph):
    assert [(i.name, i.shape, i.type) for i in words_graph[1].get_inputs()] == [
        ("tokens", ["batch", 6], "tensor(int64)"),
        ("mask", ["batch", 6], "tensor(bool)"),
    ]


def test_a_file_of_a_module_with_intervals_gives_the_strength_too(file_graph):
    module, dtype, session = file_graph
    assert [output.name for output in session.get_outputs()] == [*ANSWERS[:3], "strength", "ood"]
    X = torch.randn(5, 4, dtype=dtype, generator=torch.Generator().manual_seed(7))
    new = torch.cat([X, 30 * X])
    (found,) = session.run(["strength"], as_arrays({"input": new}))
    wanted = module.spread_.strength(module(new).log_evidence.double().numpy())
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    assert found.min() < found.max()
    facts = session.get_modelmeta().custom_metadata_map
    assert json.loads(facts["classes"]) == ["a", "b", "c"]
    assert json.loads(facts["n"]) == module.n_
    assert json.loads(facts["threshold"]) == pytest.approx(module.offset_)


def test_a_nan_gives_nan_and_an_alarm_as_the_module_does(images_graph):
    module, _, session = images_graph
    X = torch.full((1, 1, 7, 7), torch.nan)
    found = session.run(ANSWERS, {"input": X.numpy()})
    with torch.no_grad():
        answer, flag = module(X), module.predict_ood(X)
    assert np.isnan(found[0]).all() == bool(answer.mean.isnan().all())
    assert np.isnan(found[2]).all() == bool(answer.log_evidence.isnan().all())
    assert found[3].tolist() == (flag == -1).tolist()


def test_a_function_that_leaves_torch_is_refused():
    def features(network, x):
        return torch.from_numpy(x.detach().numpy()), network(x)

    module = fitted(rows_network(), torch.randn(300, 4) + LABELS[:, None], features=features)
    with pytest.raises(ValueError, match=r"cannot be traced for ONNX outside of .* torch operati"):
        torch_graph(module, torch.zeros(2, 4), opset=18)


@pytest.mark.slow
def test_what_onnxruntime_cannot_run_is_refused():
    network = images_network()
    module = fitted(network, torch.randn(300, 1, 7, 7))
    X = torch.zeros(2, 1, 7, 7).bfloat16()
    with pytest.raises(ValueError, match=r"onnxruntime cannot run it .* module\.float\(\)"):
        torch_graph(module.bfloat16(), X, opset=18)


def test_a_graph_that_disagrees_is_refused(images_graph):
    module, proto, _ = images_graph
    X = {"input": torch.randn(3, 1, 7, 7)}
    with torch.no_grad():
        answer = module(**X)
    check_graph(proto, X, [answer.mean, answer.vacuity])
    with pytest.raises(ValueError, match=r"vacuity of row \d .* nothing was written"):
        check_graph(proto, X, [answer.mean, answer.vacuity + 0.01])


def test_an_unfitted_module_is_refused():
    with pytest.raises(NotFittedError, match="fit_density"):
        torch_graph(DIPModule(rows_network().eval()), torch.zeros(2, 4), opset=18)
