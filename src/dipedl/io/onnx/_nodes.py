"""An ONNX graph under construction, with operators that read like numpy.

All arithmetic is in float64: log-densities of far inputs do not fit float32. Functions that ONNX or
its runtimes lack in float64 are built from available ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from numpy.polynomial import Chebyshev, Polynomial
from onnx import ModelProto, compose, helper, numpy_helper
from scipy import special

Constant = np.ndarray | float | int
#: Domain of the operators of scikit-learn models, and the version that scikit-learn's converter
#: and ours agree on.
ML_DOMAIN, ML_OPSET = "ai.onnx.ml", 3
_LARGEST_FILE = 2**31 - 2**20


class Graph:
    """Nodes and constants of one graph, at most `max_constant_mb` MB of them training rows."""

    def __init__(self, opset: int, max_constant_mb: float) -> None:
        self.opset, self.max_constant_mb = opset, max_constant_mb
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.functions: list[Any] = []
        self.domains = {"": opset, ML_DOMAIN: ML_OPSET}
        self.inputs: list[Any] = []
        self._row_bytes = self._bytes = self._named = 0

    def input(self, name: str, dtype: np.dtype, width: int) -> Tensor:
        """A graph input of any number of rows and `width` columns."""
        kind = helper.np_dtype_to_tensor_dtype(dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, ["n", width]))
        return Tensor(self, name)

    def op(self, kind: str, *inputs: Operand, domain: str = "", **attributes: Any) -> Tensor:
        """The first output of a node."""
        return self.ops(kind, *inputs, outputs=1, domain=domain, **attributes)[0]

    def ops(
        self, kind: str, *inputs: Operand, outputs: int, domain: str = "", **attributes: Any
    ) -> list[Tensor]:
        """The outputs of a node; arrays and numbers among its inputs become constants."""
        names = [self.tensor(i).name for i in inputs]
        made = [self._new(kind.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(kind, names, made, domain=domain, **attributes))
        return [Tensor(self, name) for name in made]

    def tensor(self, value: Operand) -> Tensor:
        """`value` as part of the graph: an array becomes a constant, a number one of float64."""
        if isinstance(value, Tensor):
            return value
        array = np.asarray(value if isinstance(value, np.ndarray) else float(value))
        if array.dtype.kind == "f" and array.dtype != np.float32:
            array = array.astype(np.float64)
        return self.constant(array)

    def constant(self, array: np.ndarray) -> Tensor:
        self._bytes += array.nbytes
        if self._bytes > _LARGEST_FILE:
            raise ValueError(
                f"the model does not fit one ONNX file of 2 GiB: its constants alone take "
                f"{self._bytes / 1e6:.0f} MB; use fewer features (PCA) or a shared covariance, "
                "GDADensity('tied') or GDADensity('diag')"
            )
        name = self._new("constant")
        self.initializers.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return Tensor(self, name)

    def rows(self, array: np.ndarray, who: str) -> Tensor:
        """Training rows (m, p) that a density keeps, within `max_constant_mb`."""
        self._row_bytes += array.nbytes
        if self._row_bytes > self.max_constant_mb * 1e6:
            raise ValueError(
                f"{who} keeps {len(array)} training rows of {array.shape[1]} features, and with "
                f"them the graph would hold {self._row_bytes / 1e6:.1f} MB of training rows, more "
                f"than max_constant_mb={self.max_constant_mb:g}; raise max_constant_mb, or use a "
                "density without rows, such as GDADensity or GaussianMixtureDensity"
            )
        return self.constant(np.asarray(array, dtype=np.float64))

    def embed(self, model: ModelProto, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Put another graph into this one; its outputs by name."""
        prefix = self._new("part") + "_"
        part = compose.add_prefix(model, prefix)
        feeds = {prefix + name: value.name for name, value in inputs.items()}
        for node in part.graph.node:
            _rename(node, feeds)
        self.nodes.extend(part.graph.node)
        self.initializers.extend(part.graph.initializer)
        self.functions.extend(part.functions)
        for imported in part.opset_import:
            # add_prefix may rename the domain of local functions.
            self.domains.setdefault(imported.domain, imported.version)
        # An output may be an input, or occur twice.
        found = {output.name: prefix + output.name for output in model.graph.output}
        return {name: Tensor(self, feeds.get(own, own)) for name, own in found.items()}

    def model(self, outputs: Mapping[str, tuple[Tensor, np.dtype, list[Any]]]) -> ModelProto:
        """The finished model; `outputs` are tensor, dtype and shape by name."""
        infos = []
        for name, (tensor, dtype, shape) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [tensor.name], [name]))
            kind = helper.np_dtype_to_tensor_dtype(dtype)
            infos.append(helper.make_tensor_value_info(name, kind, shape))
        graph = helper.make_graph(self.nodes, "dipedl", self.inputs, infos, self.initializers)
        used = {node.domain for node in self.nodes} | {f.domain for f in self.functions} | {""}
        opsets = [helper.make_opsetid(d, v) for d, v in self.domains.items() if d in used]
        return helper.make_model(
            graph,
            opset_imports=opsets,
            # The oldest format with these operators, which most runtimes can read.
            ir_version=max(helper.find_min_ir_version_for(opsets, ignore_unknown=True), 8),
            functions=self.functions,
            producer_name="dipedl",
        )

    def _new(self, stem: str) -> str:
        self._named += 1
        return f"{stem}_{self._named}"


def _operator(kind: str) -> tuple[Callable[[Tensor, Any], Tensor], ...]:
    """A node of two inputs as an operator, and the same with its inputs the other way round."""
    return (
        lambda self, other: self.graph.op(kind, self, other),
        lambda self, other: self.graph.op(kind, other, self),
    )


class Tensor:
    """A value inside a `Graph`."""

    #: Lets numpy arrays on the left of an operator use `Tensor`'s operators.
    __array_ufunc__ = None

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    __add__, __radd__ = _operator("Add")
    __sub__, __rsub__ = _operator("Sub")
    __mul__, __rmul__ = _operator("Mul")
    __truediv__, __rtruediv__ = _operator("Div")
    __matmul__ = _operator("MatMul")[0]
    __lt__, __gt__ = _operator("Less")[0], _operator("Greater")[0]
    __ge__, equals = _operator("GreaterOrEqual")[0], _operator("Equal")[0]
    at_least, at_most = _operator("Max")[0], _operator("Min")[0]

    def __neg__(self) -> Tensor:
        return self.graph.op("Neg", self)

    def apply(self, kind: str) -> Tensor:
        """A node of one input, such as "Exp"."""
        return self.graph.op(kind, self)

    def cast(self, dtype: Any) -> Tensor:
        return self.graph.op("Cast", self, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def where(self, yes: Operand, no: Operand) -> Tensor:
        """`yes` where this is true, else `no`."""
        return self.graph.op("Where", self, yes, no)

    def reduce(self, kind: str, axis: int, *, keep: bool = False) -> Tensor:
        """Reduce one axis by "Sum", "Max", "Min", "Mean" or "SumSquare"."""
        return self.graph.op(f"Reduce{kind}", self, np.array([axis]), keepdims=int(keep))

    def columns(self, chosen: np.ndarray) -> Tensor:
        return self.graph.op("Gather", self, np.asarray(chosen, dtype=np.int64), axis=1)

    def unsqueeze(self, axis: int) -> Tensor:
        return self.graph.op("Unsqueeze", self, np.array([axis]))

    def squeeze(self, axis: int) -> Tensor:
        return self.graph.op("Squeeze", self, np.array([axis]))

    def nan_to(self, value: float) -> Tensor:
        return self.apply("IsNaN").where(value, self)


Operand = Tensor | Constant


def stack_columns(columns: list[Tensor]) -> Tensor:
    """Tensors (n,) as the columns of one, (n, c)."""
    return columns[0].graph.op("Concat", *[c.unsqueeze(1) for c in columns], axis=1)


def _rename(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Rename the inputs of a node and of the graphs inside it."""
    for i, name in enumerate(node.input):
        node.input[i] = names.get(name, name)
    for attribute in node.attribute:
        for graph in [attribute.g, *attribute.graphs]:
            for inner in graph.node:
                _rename(inner, names)


_DEGREE = 22


@lru_cache(maxsize=1)
def erfc_coefficients() -> np.ndarray:
    """Coefficients c of ``log erfc(x) = log t - x^2 + sum_i c_i (2 t - 1)^i``, x >= 0, ascending.

    With ``t = 2 / (2 + x)``: the form of Press et al., "Numerical Recipes", 3rd ed., section 6.2.2,
    fitted to scipy's erfcx.
    """

    def remainder(v: np.ndarray) -> np.ndarray:
        t = (v + 1) / 2
        return np.asarray(np.log(special.erfcx(2 / t - 2)) - np.log(t))

    # Chebyshev points of the first kind stay clear of t = 0, where x is infinite.
    fitted = Chebyshev.interpolate(remainder, _DEGREE)
    return np.asarray(fitted.convert(kind=Polynomial).coef)


def log_sum_exp(x: Tensor) -> Tensor:
    """``log(sum(exp(x), axis=1))`` of x (n, c); -inf where all entries are."""
    highest = x.reduce("Max", 1, keep=True)
    finite = (highest > -np.inf).where(highest, 0.0)
    return (x - finite).apply("Exp").reduce("Sum", 1).apply("Log") + finite.squeeze(1)


def softmax(x: Tensor) -> Tensor:
    """Softmax of the rows of x (n, k); -inf gives zero."""
    e = (x - x.reduce("Max", 1, keep=True)).apply("Exp")
    return e / e.reduce("Sum", 1, keep=True)


def log1p(x: Tensor) -> Tensor:
    """``log(1 + x)`` for -1 <= x < inf, exact for small x: the rounding of 1 + x is divided out."""
    one_more = 1.0 + x
    gained = one_more - 1.0
    ratio = x / gained.equals(0.0).where(1.0, gained)
    return gained.equals(0.0).where(x, one_more.apply("Log") * ratio)


def soft_plus(x: Tensor) -> Tensor:
    """``log(1 + exp(x))``; inf at inf."""
    return x.at_least(0.0) + log1p((-x.apply("Abs")).apply("Exp"))


def sigmoid(x: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``, accurate where it is small."""
    small = (-x.apply("Abs")).apply("Exp")
    return (x < 0.0).where(small, 1.0) / (1.0 + small)


def two_classes(log_odds: Tensor) -> Tensor:
    """Probabilities (n, 2) from log-odds (n, 1) of the second class."""
    p = sigmoid(log_odds)
    return p.graph.op("Concat", 1.0 - p, p, axis=1)


def log_ndtr(z: Tensor) -> Tensor:
    """Log of the standard normal's distribution function, of z (n, c): see `erfc_coefficients`."""
    table = erfc_coefficients()
    x = z.apply("Abs") / np.sqrt(2)
    t = 2.0 / (2.0 + x)
    powers = z.graph.op("Pow", (2.0 * t - 1.0).unsqueeze(2), np.arange(float(len(table))))
    lower = t.apply("Log") - x * x + powers @ table - np.log(2)
    return (z < 0.0).where(lower, log1p(-lower.apply("Exp")))


def interpolate(x: Tensor, knots: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> Tensor:
    """``np.interp(x[:, c], knots[c], values[c])`` for each column of x (n, c).

    One bisection for all columns: the tables are concatenated, each padded with infinity to the
    same power of two, so that a step is one look-up per entry of x.
    """
    graph = x.graph
    steps = int(np.ceil(np.log2(max(len(k) for k in knots))))
    length = 2**steps
    starts = np.arange(len(knots)) * length
    xs, ys = (graph.constant(_filled(table, length)) for table in (knots, values))
    inside = x.at_least(np.array([k[0] for k in knots])).at_most(np.array([k[-1] for k in knots]))
    index = graph.tensor(starts)
    for step in range(steps - 1, -1, -1):
        further = index + np.array(2**step)
        index = (inside >= graph.op("Gather", xs, further)).where(further, index)
    # The last knot ends the piece before it.
    left = index.at_most(starts + np.array([len(k) for k in knots]) - 2)
    right = left + np.array(1)
    x0, x1, y0, y1 = (graph.op("Gather", of, at) for of in (xs, ys) for at in (left, right))
    return (y1 - y0) / (x1 - x0) * (inside - x0) + y0


def _filled(tables: Sequence[np.ndarray], length: int) -> np.ndarray:
    whole = np.full((len(tables), length), np.inf)
    for row, table in zip(whole, tables, strict=True):
        row[: len(table)] = table
    return whole.ravel()
