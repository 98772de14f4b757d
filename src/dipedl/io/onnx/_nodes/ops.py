"""Functions missing in ONNX, or in its runtimes in float64, built from available ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .builder import Tensor
from .log_ndtr import erfc_coefficients


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
    """Log of the standard normal's distribution function, of z (n, c).

    With ``x = |z| / sqrt(2)`` and ``t = 2 / (2 + x)``: ``log erfc(x) = log t - x^2 + P(2 t - 1)``,
    the form of Press et al., "Numerical Recipes", 3rd ed., section 6.2.2, with a polynomial fitted
    to scipy's erfcx.
    """
    table = erfc_coefficients()
    x = z.apply("Abs") / np.sqrt(2)
    t = 2.0 / (2.0 + x)
    powers = z.graph.op("Pow", (2.0 * t - 1.0).unsqueeze(2), np.arange(float(len(table))))
    lower = t.apply("Log") - x * x + powers @ table - np.log(2)
    return (z < 0.0).where(lower, log1p(-lower.apply("Exp")))


def interpolated(x: Tensor, knots: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> Tensor:
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
