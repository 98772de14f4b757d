"""Graphs of torch models against the models themselves, in onnxruntime."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

from torch import nn  # noqa: E402

from dipedl.export._torch import network_graph  # noqa: E402
from dipedl.export._torch_inputs import Call  # noqa: E402
from dipedl.export._torch_trace import traced  # noqa: E402
from dipedl.nn import MLP, FastCNN, LayerFeatures, TorchClassifier, Training  # noqa: E402

CPU = torch.device("cpu")


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
def graph_of_logs():
    module = OfTuple(lambda a, b: (nn.functional.logsigmoid(a), torch.logaddexp(a, b)))
    inputs = (torch.zeros(3), torch.zeros(3))
    return session_of(traced(module, inputs, ["a", "b"], ["c", "d"], opset=18))


def test_infinities_stay_what_torch_makes_of_them(graph_of_logs):
    a = np.array([np.inf, -np.inf, -np.inf, 0], dtype=np.float32)
    b = np.array([np.inf, -np.inf, 1, -np.inf], dtype=np.float32)
    ours = graph_of_logs.run(None, {"a": a, "b": b})
    a, b = torch.from_numpy(a), torch.from_numpy(b)
    np.testing.assert_array_equal(ours[0], nn.functional.logsigmoid(a))
    np.testing.assert_allclose(ours[1], torch.logaddexp(a, b), rtol=1e-6)


def test_the_graph_says_nothing_of_this_machine():
    module = OfTuple(lambda a: (a + 1,))
    proto = traced(module, (torch.zeros(2, 3),), ["a"], ["b"], opset=18)
    assert b"site-packages" not in proto.SerializeToString()
    assert __file__.encode() not in proto.SerializeToString()


# Inputs.


class Keyword(nn.Module):
    def forward(self, first, second, *rest, scale=1.0):
        return first


def test_inputs_are_named_after_arguments():
    rows = torch.zeros(2, 3)
    assert Call.of(rows, Keyword(), CPU).names == ["first"]
    assert Call.of((rows, {"k": rows}, rows), Keyword(), CPU).names == [
        "first",
        "second.k",
        "input_2",
    ]
    assert Call.of({"second": [rows, rows]}, Keyword(), CPU).names == ["second.0", "second.1"]


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


def test_a_call_keeps_its_nesting_and_all_that_is_no_tensor():
    rows = torch.arange(6.0).reshape(2, 3)
    example = (Pair(rows, rows), {"a": [rows, 3], "b": None}, True)
    args, kwargs = Call.of(example, Keyword(), CPU).filled((rows + 1, rows + 2, rows + 3))
    assert kwargs == {}
    assert isinstance(args[0], Pair)
    assert torch.equal(args[0].right, rows + 2)
    assert torch.equal(args[1]["a"][0], rows + 3)
    assert args[1]["a"][1] == 3
    assert args[1]["b"] is None
    assert args[2] is True


def test_one_row_is_repeated_for_the_tracer():
    call = Call.of(torch.ones(1, 3), Keyword(), CPU)
    assert call.tensors[0].shape == (2, 3)
    assert torch.equal(call.tensors[0][0], call.tensors[0][1])


@pytest.mark.parametrize("example", [None, torch.zeros(0, 3), {}, "row", torch.tensor(1.0)])
def test_an_example_without_rows_is_refused(example):
    with pytest.raises(ValueError, match="example must hold one batch"):
        Call.of(example, Keyword(), CPU)


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
        traced(Wrapped(bad).eval(), (torch.ones(2, 4),), ["a"], ["b"], opset=18)


def test_no_hook_is_left_behind():
    wrapped = Wrapped(Branch()).eval()
    with pytest.raises(ValueError, match="traced"):
        traced(wrapped, (torch.ones(2, 4),), ["a"], ["b"], opset=18)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in wrapped.modules())


def test_an_old_opset_is_refused():
    with pytest.raises(ValueError, match=r"opset must be at least 18 .* got 15"):
        traced(OfTuple(lambda a: (a,)), (torch.ones(2, 4),), ["a"], ["b"], opset=15)


def test_more_than_two_gibibytes_are_refused_before_any_work():
    huge = nn.Module()
    huge.register_buffer("whiteners", torch.empty(1, device="meta").expand(2**30))
    with pytest.raises(ValueError, match=r"2 GiB.*4\.0 GiB.*low-rank"):
        traced(huge, (torch.ones(2, 4),), ["a"], ["b"], opset=18)


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxscript", None)
    with pytest.raises(ImportError, match="onnxscript"):
        traced(OfTuple(lambda a: (a,)), (torch.ones(2, 4),), ["a"], ["b"], opset=18)


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


def test_features_of_another_network(cnn, digits):
    training = Training(epochs=1, n_jobs=1)
    other = TorchClassifier(MLP((5,)), training, precision="float64").fit(*digits)
    session = session_of(network_graph(None, other, opset=20))
    (features,) = session.run(None, {"X": digits[0].astype(np.float64)})
    np.testing.assert_allclose(features, other.transform(digits[0]), rtol=0, atol=1e-12)


def test_networks_without_a_softmax_are_refused(digits):
    from dipedl.baselines import EDL

    with pytest.raises(TypeError, match="must be a TorchClassifier to be exported, got EDL"):
        network_graph(EDL(), opset=18)
    with pytest.raises(TypeError, match=r"features must be a network .* got LogisticRegression"):
        network_graph(None, LogisticRegression(), opset=18)
    with pytest.raises(TypeError, match="give classifier, features or both"):
        network_graph(opset=18)
    with pytest.raises(NotFittedError):
        network_graph(TorchClassifier(), opset=18)
