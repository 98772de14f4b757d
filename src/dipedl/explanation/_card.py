"""The card of one input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dirichlet import Dirichlet
from ._text import card_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Card"]


@dataclass(frozen=True, eq=False)
class Card:
    """Why one input got its answer.

    Attributes
    ----------
    class_names : tuple of str, length k
        The classes.
    label : str
        The answer.
    bare : ndarray, shape (k,)
        Probabilities of the classifier alone.
    dirichlet : Dirichlet
        The whole answer, of one input.
    evidence, n : float
        Evidence in equivalent training samples, and the number of training samples.
    p_value : float
        Conformal p-value of "this input is like the training data".
    held_out : float
        Held-out inputs that the p-value was taken from.
    false_alarm_rate : float
        The input is flagged if the p-value is at most this.
    score, typical_score : float
        Score of the density (nats, for a log-density), and the median of held-out inputs.
    parts : tuple of dict
        What each part of the density saw: for Gaussians the squared Mahalanobis distance to the
        nearest class and the features that add most to it; for neighbours the nearest training
        rows (numbered as in ``fit``) and their distances.
    """

    class_names: tuple[str, ...]
    label: str
    bare: np.ndarray
    dirichlet: Dirichlet
    evidence: float
    n: float
    p_value: float
    held_out: float
    false_alarm_rate: float
    score: float
    typical_score: float
    parts: tuple[dict[str, Any], ...]

    @property
    def mean(self) -> np.ndarray:
        """Class probabilities: the posterior mean, shape (k,)."""
        return np.asarray(self.dirichlet.mean[0])

    @property
    def vacuity(self) -> float:
        """Share of the prior in the answer."""
        return float(np.asarray(self.dirichlet.vacuity)[0])

    @property
    def flagged(self) -> bool:
        """Whether the input is called foreign."""
        return self.p_value <= self.false_alarm_rate

    def to_dict(self) -> dict[str, Any]:
        """Plain values that ``json.dump`` takes; what is not finite becomes text."""
        plain = {
            "label": self.label,
            "proba": dict(zip(self.class_names, self.mean.tolist(), strict=True)),
            "bare_proba": dict(zip(self.class_names, self.bare.tolist(), strict=True)),
            "evidence": self.evidence,
            "n": self.n,
            "vacuity": self.vacuity,
            "p_value": self.p_value,
            "held_out": self.held_out,
            "false_alarm_rate": self.false_alarm_rate,
            "flagged": self.flagged,
            "score": self.score,
            "typical_score": self.typical_score,
            "parts": list(self.parts),
        }
        made: dict[str, Any] = _plain(plain)
        return made

    def __str__(self) -> str:
        """The card as text."""
        return card_text(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the class probabilities, before and after the evidence; needs matplotlib.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; default: a new figure.
        """
        from ._drawing import draw_card

        return draw_card(self, ax)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value
