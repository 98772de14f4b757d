"""Answer or refuse by what mistakes cost: Chow's rule, with an alarm for unknown inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..maths.arrays import check_number, check_proba, check_rate, float_array
from .p_values import score_array
from .rejection import fill_labels

__all__ = ["Decision", "cost_matrix", "expected_costs", "unknown_probability"]

#: Share of unknown inputs that a flag catches, where nothing better is known.
HALF = 0.5


@dataclass(frozen=True, eq=False)
class Decision:
    """Answers of the least expected cost, and what they cost.

    Attributes
    ----------
    labels : ndarray, shape (n,)
        Labels of the least expected cost, also of inputs that are not answered.
    accepted : ndarray of bool, shape (n,)
        Where an answer is expected to cost no more than none, and the input is not flagged.
    flagged : ndarray of bool, shape (n,)
        Inputs unlike the training data.
    costs : ndarray, shape (n,)
        Expected cost of the decision, by the probability that the input is unknown.
    held_out_cost : float
        Mean cost of the same rule on the held-out rows, which are known inputs.
    held_out_accepted : float
        Share of the held-out rows that it answers.
    cost_reject, cost_unknown : float
        As given.
    unknown_probability : ndarray, shape (n,)
        Probability that the input is of no known class; 0 unless a share of such was given.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl import DIPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> decision = DIPClassifier().fit(X, y).decide(X[:2], cost_error=5, cost_reject=1)
    >>> decision.fill("ask").tolist()
    [0, 0]
    """

    labels: np.ndarray
    accepted: np.ndarray
    flagged: np.ndarray
    costs: np.ndarray
    held_out_cost: float
    held_out_accepted: float
    cost_reject: float
    cost_unknown: float
    unknown_probability: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def fill(self, marker: Any) -> np.ndarray:
        """The labels with `marker` in place of those not to give, shape (n,)."""
        return fill_labels(self.labels, self.accepted, marker)

    def expected_cost(self, unknown: float = 0.0, caught: float = 0.0) -> float:
        """Return the mean cost of inputs of which a share is unknown, and a share of that caught.

        Parameters
        ----------
        unknown : float, default=0.0
            Share of unknown inputs, in [0, 1].
        caught : float, default=0.0
            Share of these that gets no answer, in [0, 1]: from classes left out, or a guess.
        """
        for name, share in (("unknown", unknown), ("caught", caught)):
            check_number(name, share, "finite and in [0, 1]", lambda value: 0 <= value <= 1)
        of_unknown = caught * self.cost_reject + (1 - caught) * self.cost_unknown
        return (1 - unknown) * self.held_out_cost + unknown * of_unknown


def cost_matrix(k: int, cost_error: float | None = None, costs: Any = None) -> np.ndarray:
    """Return the cost of answering class j where class i is true, shape (k, k).

    Parameters
    ----------
    k : int
        Number of classes.
    cost_error : float, optional
        Of every mistake, >= 0; nothing for a right answer.
    costs : array-like, shape (k, k), optional
        True classes in rows, answers in columns, >= 0. Exactly one of the two is given.

    Raises
    ------
    ValueError
        If none or both are given, or one is negative, not finite, or of another shape.

    Examples
    --------
    >>> from dipedl.decisions import cost_matrix
    >>> cost_matrix(2, cost_error=5)
    array([[0., 5.],
           [5., 0.]])
    """
    if (cost_error is None) == (costs is None):
        raise ValueError(
            f"give exactly one of cost_error and costs, got cost_error={cost_error!r} and "
            f"costs={'None' if costs is None else 'a matrix'}"
        )
    if costs is None:
        return check_cost("cost_error", cost_error) * (1 - np.eye(k))
    matrix = float_array("costs", costs)
    if matrix.shape != (k, k):
        raise ValueError(
            f"costs must have shape ({k}, {k}), true classes in rows and answers in columns, in "
            f"the order of classes_, got shape {matrix.shape}"
        )
    wrong = np.argwhere(~(np.isfinite(matrix) & (matrix >= 0)))
    if len(wrong):
        i, j = wrong[0].tolist()
        raise ValueError(
            f"costs must be finite and >= 0, got {matrix[i, j]} in row {i}, column {j}; count "
            "from the cheapest outcome, which costs 0"
        )
    return matrix


def check_cost(name: str, value: Any) -> float:
    """Return a cost as a float; raise unless it is a finite number >= 0."""
    return check_number(name, value, "finite and >= 0", lambda cost: cost >= 0)


def expected_costs(proba: npt.ArrayLike, costs: npt.ArrayLike) -> np.ndarray:
    r"""Return the expected cost of each answer, shape (n, k): ``sum_i p_i costs[i, j]``.

    Chow's rule gives the answer of the least, or none if that costs less.

    Parameters
    ----------
    proba : array-like, shape (n, k)
        Calibrated class probabilities.
    costs : array-like, shape (k, k)
        As `cost_matrix` gives them.

    References
    ----------
    C. K. Chow, "On optimum recognition error and reject tradeoff", *IEEE Transactions on
    Information Theory* 16, 1970; C. Elkan, "The foundations of cost-sensitive learning", IJCAI
    2001.

    Examples
    --------
    >>> from dipedl.decisions import expected_costs
    >>> expected_costs([[0.75, 0.25]], [[0, 5], [20, 0]])
    array([[5.  , 3.75]])
    """
    P = check_proba("proba", proba)
    return np.asarray(P @ cost_matrix(P.shape[1], costs=costs))


def unknown_probability(
    p_values: npt.ArrayLike, unknown: float, caught: float = HALF, rate: float = 0.05
) -> np.ndarray:
    r"""Return the probability that inputs are unknown, by their conformal p-values, shape (n,).

    p-values of known inputs are uniform, those of unknown ones small: of density
    :math:`f(p) = \kappa p^{\kappa - 1}`, the calibrator of p-values to Bayes factors, with
    :math:`\kappa` such that a share `caught` lies below `rate`.

    .. math:: q(p) = \frac{\pi f(p)}{\pi f(p) + 1 - \pi},
              \qquad \kappa = \min(1, \log(\text{caught}) / \log(\text{rate}))

    With `caught` above one half, or `rate` if that is more, f has below `rate` the shape of one
    half, scaled to the share, and q jumps there: a smaller :math:`\kappa` would put nearly all of f
    next to zero.

    Parameters
    ----------
    p_values : array-like, shape (n,)
        As `conformal_p_values` gives them, in [0, 1].
    unknown : float
        Share of unknown inputs, pi, in [0, 1).
    caught : float, default=0.5
        Share of these with a p-value of at most `rate`, in [0, 1].
    rate : float, default=0.05
        In (0, 1).

    References
    ----------
    T. Sellke, M. J. Bayarri, J. O. Berger, "Calibration of p values for testing precise null
    hypotheses", *The American Statistician* 55, 2001, Section 3; V. Vovk, R. Wang, "E-values:
    calibration, combination and applications", *Annals of Statistics* 49, 2021, equation 1.

    Examples
    --------
    >>> from dipedl.decisions import unknown_probability
    >>> unknown_probability([0.01, 0.1, 1.0], unknown=0.1).round(3)
    array([0.47 , 0.131, 0.025])
    """
    share = check_number("unknown", unknown, "finite and in [0, 1)", lambda value: 0 <= value < 1)
    power = check_number("caught", caught, "finite and in [0, 1]", lambda value: 0 <= value <= 1)
    level, p = check_rate(rate, "rate"), score_array("p_values", p_values)
    if ((p < 0) | (p > 1)).any():
        raise ValueError(
            f"p_values must lie in [0, 1], got {p.min():g} to {p.max():g}; give those of "
            "conformal_p_values, not scores"
        )
    # A flag that catches no more than it does of known inputs says nothing.
    power = max(power, level)
    below = min(power, max(HALF, level))
    shape = np.where(p <= level, below, power)
    exponent = np.abs(np.log(shape) / np.log(level))
    weight = share * exponent * np.where(p <= level, power / below, 1.0)
    total = weight + (1 - share) * p ** (1 - exponent)
    q: np.ndarray = np.divide(weight, total, out=np.zeros(len(p)), where=total > 0)
    return q
