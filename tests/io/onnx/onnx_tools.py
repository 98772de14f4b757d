"""One part of a model as a graph of its own, run beside the part; inputs that try a model."""

import numpy as np
import onnxruntime
from hypothesis import strategies as st

from dipedl.io.onnx._nodes import Graph

#: Largest difference, relative where an answer is above one.
TOLERANCE = 1e-5


def runner(build, width, max_constant_mb=64.0):
    """A function of X (n, width) that runs the graph which ``build(tensor)`` makes."""
    graph = Graph(18, max_constant_mb)
    answer = build(graph.input("X", np.dtype(np.float64), width))
    model = graph.model({"Y": (answer, np.dtype(np.float64), None)})
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return lambda X: session.run(["Y"], {"X": np.asarray(X, dtype=np.float64)})[0]


def gap(found, right):
    """Largest difference, relative where `right` is above one; equal infinities agree."""
    found, right = np.asarray(found, dtype=np.float64), np.asarray(right, dtype=np.float64)
    assert found.shape == right.shape
    same = found == right
    with np.errstate(invalid="ignore"):
        difference = np.abs(found - right) / np.maximum(1.0, np.abs(right))
    return float(np.where(same, 0.0, np.where(np.isnan(difference), np.inf, difference)).max())


def rows_like(X):
    """Drawn inputs: training rows, rows near, between, far and at 1e6, zeros, copies."""
    scale = np.abs(X).max()
    row = st.integers(0, len(X) - 1)
    number = st.floats(-1e6, 1e6, allow_subnormal=False)
    drawn = st.one_of(
        row.map(lambda i: X[i]),
        st.tuples(row, st.floats(-3, 3)).map(lambda t: X[t[0]] * t[1]),
        st.tuples(row, row).map(lambda t: (X[t[0]] + X[t[1]]) / 2),
        st.tuples(row, st.integers(0, X.shape[1] - 1), number).map(
            lambda t: X[t[0]] + t[2] * np.eye(X.shape[1])[t[1]]
        ),
        st.lists(number, min_size=X.shape[1], max_size=X.shape[1]).map(np.array),
        st.tuples(row, st.sampled_from([1e3, 1e6])).map(lambda t: X[t[0]] / scale * t[1]),
        st.just(np.zeros(X.shape[1])),
    )
    return st.lists(drawn, min_size=1, max_size=8).map(np.stack)
