"""Conflict-aware evidential deep learning, C-EDL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import rotate
from sklearn.utils.validation import check_is_fitted

from ..answers import Decisions
from ..columns import is_frame, is_pandas
from ..dirichlet import DIRICHLET_KINDS, Dirichlet, log_or_minus_inf
from ..inputs import validate_inputs
from ..maths.arrays import check_choice, check_integer, check_number
from ..maths.seeds import random_state_of
from ..networks.backbones import image_shape
from .edl import EDL
from .post_hoc import PostHoc

__all__ = ["CEDL"]

#: What a difference of both parts of the conflict takes off, and what keeps a ratio finite.
_LAMBDA, _LEAST = 0.5, 1e-8
#: Largest angle in degrees, first and last shift in rows, and noise in units of the inputs' range.
_ANGLE, _SHIFTS, _NOISE = 15.0, (-2, 1), 0.01


def measure_conflict(evidence: np.ndarray, beta: float) -> np.ndarray:
    """Conflict within and between views of n inputs, in [0, 1], shape (n,).

    `evidence` has shape (views, n, k); see `CEDL`.
    """
    n_views, n, k = evidence.shape
    mean = evidence.mean(axis=0)
    across = (evidence.std(axis=0) / (mean + _LEAST)).mean(axis=1)
    within = np.zeros(n)
    for of_view in evidence:
        total, squares = of_view.sum(axis=1, keepdims=True), np.zeros(n)
        for c in range(k - 1):  # pairs of classes, one row of them at a time
            own, others = of_view[:, c, None], of_view[:, c + 1 :]
            least, most = np.minimum(own, others), np.maximum(own, others)
            of_pairs = np.zeros_like(others)
            np.divide(2 * least**2, most * total, out=of_pairs, where=most > 0)
            squares += (of_pairs**2).sum(axis=1)
        within += 1 - np.exp(-beta * np.sqrt(squares))
    within /= n_views
    conflict = within + across - within * across - _LAMBDA * (within - across) ** 2
    return np.asarray(np.clip(conflict, 0.0, 1.0))


@dataclass(eq=False, repr=False)
class CEDL(Decisions, PostHoc):
    r"""Evidence of several views of an input, less where the views or their classes disagree.

    .. math:: \alpha = 1 + e^{-\delta C} \bar e, \qquad
        C = C_w + C_a - C_w C_a - \tfrac{1}{2} (C_w - C_a)^2,

    with :math:`\bar e` the mean evidence over the views and C, clipped to [0, 1], of two parts.
    :math:`C_a` is the mean over classes of the standard deviation across views, over the mean.
    :math:`C_w` is the mean over views of :math:`1 - \exp(-\beta \sqrt{\sum_{i < j} c_{ij}^2})`,
    with :math:`c_{ij} = 2 \min(e_i, e_j)^2 / (\max(e_i, e_j) \sum_k e_k)` for each pair of classes.

    Parameters
    ----------
    estimator : classifier with ``predict_dirichlet``, optional
        None is ``EDL()``. A copy is fitted; one in `sklearn.frozen.FrozenEstimator` is used as it
        is.
    image_shape : tuple of int, optional
        (height, width) or (channels, height, width) of the rows of X, whose views are turned by up
        to 15 degrees, shifted by up to two rows, round the edge, or noisy. None for inputs that are
        no images, whose views are noisy. Noise has 1 % of the range of the training inputs, in a
        table of that of a column.
    n_views : int, default=5
        Views of an input, the input itself among them, >= 2.
    beta : float, default=1.5
        How fast the conflict between classes saturates, >= 0.
    delta : float, default=1.0
        How much evidence conflict costs, >= 0. All three are the released code's.
    random_state : int, RandomState or None, default=0
        Draws the views.

    Attributes
    ----------
    classes_, estimator_, n_features_in_
        As of `MaxSoftmax`.
    views_ : list of tuple
        Name and size of the change of each view but the first.
    pixels_ : tuple of float or None
        Least and largest training pixel; None for a table.

    Raises
    ------
    TypeError
        From ``fit``: the estimator has no method ``predict_dirichlet``.

    Notes
    -----
    The released code draws the views of each input anew, here they are drawn once, so that an
    answer depends on its input alone. Views of images keep to the range of the training pixels,
    those of tables are not clipped. It has softplus evidence, `EDL` what its settings say.

    References
    ----------
    Barker, Bethell, Gerasimou, "Robust adversarial quantification via conflict-aware evidential
    deep learning", ICLR 2026, section 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import CEDL, EDL
    >>> from dipedl.networks import Training
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CEDL(EDL(training=Training(epochs=30, batch_size=16))).fit(X, y)
    >>> model.score(X, y) > 0.9, model.predict_dirichlet(X[:2])
    (True, Dirichlet(n=2, k=3, dtype=float64))
    """

    image_shape: tuple[int, ...] | None = None
    n_views: int = 5
    beta: float = 1.5
    delta: float = 1.0
    random_state: Any = 0

    def _template(self) -> Any:
        return EDL() if self.estimator is None else self.estimator

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        if not hasattr(self._template(), "predict_dirichlet"):
            raise TypeError(
                "estimator must have a method predict_dirichlet, as EDL has, "
                f"got {self.estimator!r}"
            )
        check_integer("n_views", self.n_views, 2)
        check_number("beta", self.beta, ">= 0", lambda b: b >= 0)
        check_number("delta", self.delta, ">= 0", lambda d: d >= 0)

    def _check_rows(self, y: np.ndarray) -> None:
        if self.image_shape is not None:
            image_shape(self.image_shape, self.n_features_in_)

    def _fit_score(self, X: Any, y: np.ndarray) -> None:
        rng, rows = random_state_of(self.random_state), _as_floats(X)
        table = self.image_shape is None
        unit = np.ptp(rows, axis=0) if table else np.ptp(rows)
        self.pixels_ = None if table else (float(rows.min()), float(rows.max()))
        self.views_: list[tuple[str, Any]] = []
        for kind in rng.choice(
            ["noise"] if table else ["turn", "shift", "noise"], self.n_views - 1
        ):
            if kind == "turn":
                size: Any = float(rng.uniform(-_ANGLE, _ANGLE))
            elif kind == "shift":
                size = int(rng.randint(_SHIFTS[0], _SHIFTS[1] + 1))
            else:
                size = _NOISE * unit * rng.normal(size=rows.shape[1])
            self.views_.append((str(kind), size))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of inputs X (n, d), the means of the Dirichlets, shape (n, k)."""
        return np.asarray(self.predict_dirichlet(X).mean)

    def predict_dirichlet(self, X: Any) -> Dirichlet:
        """The Dirichlet of each of the n inputs X (n, d)."""
        check_is_fitted(self, "views_")
        X = validate_inputs(self, X)
        rows = _as_floats(X)
        first = self.estimator_.predict_dirichlet(_named_as(X, rows))
        views = (
            self.estimator_.predict_dirichlet(_named_as(X, self._view(rows, *view)))
            for view in self.views_
        )
        evidence = np.stack([d.concentration - d.prior for d in (first, *views)])
        kept = np.exp(-self.delta * measure_conflict(evidence, self.beta))
        mean = evidence.mean(axis=0) * kept[:, None]
        return Dirichlet(first.prior + mean, log_or_minus_inf(mean.sum(axis=1)), first.prior)

    def _view(self, rows: np.ndarray, kind: str, size: Any) -> np.ndarray:
        if kind == "noise":
            noisy = np.asarray(rows + size)
            return noisy if self.pixels_ is None else noisy.clip(*self.pixels_)
        images = rows.reshape(-1, *image_shape(self.image_shape, rows.shape[1]))
        if kind == "shift":
            images = np.roll(images, size, axis=2)
        else:
            images = rotate(images, size, (2, 3), reshape=False, order=1, mode="nearest")
        return images.reshape(rows.shape)

    def uncertainty(self, X: Any, kind: str = "differential_entropy") -> np.ndarray:
        """Uncertainty of each input X (n, d), shape (n,).

        The `kind` is one of the Dirichlet's: "differential_entropy", the authors' choice,
        "vacuity", "total", "aleatoric", "epistemic".
        """
        check_choice("kind", kind, DIRICHLET_KINDS)
        return np.asarray(getattr(self.predict_dirichlet(X), kind))


def _as_floats(X: Any) -> np.ndarray:
    rows = np.asarray(X)
    return rows if rows.dtype.kind == "f" else rows.astype(np.float64)


def _named_as(X: Any, rows: np.ndarray) -> Any:
    """Return rows (n, d) with the names of the columns of X, if it has any."""
    if not is_frame(X):
        return rows
    return type(X)(rows, **{"columns" if is_pandas(X) else "schema": list(X.columns)})
