"""The card of one input, of a method that has no evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dirichlet import Dirichlet
from ..writing.numbers import plain
from ._card import leading, part_lines, rare

_NO_DENSITY = "  no density: reasons by column are not available"
_ONLY_A_SCORE = "  its density gives a score alone: reasons by column are not available"


@dataclass(frozen=True, eq=False)
class BaselineCard:
    """Why one input got its answer from a baseline.

    Attributes
    ----------
    method : str
        Name of the method.
    class_names, label, p_value, held_out, false_alarm_rate
        As of a `Card`.
    proba : ndarray, shape (k,)
        Probabilities of the method.
    dirichlet : Dirichlet or None
        The whole answer, of one input, where the method gives one.
    uncertainty, typical_uncertainty : float
        The method's own, higher is less sure, and the median of held-out inputs.
    parts : tuple of dict
        What the method's density saw, as on a `Card`; empty where it has none.
    """

    method: str
    class_names: tuple[str, ...]
    label: str
    proba: np.ndarray
    dirichlet: Dirichlet | None
    uncertainty: float
    typical_uncertainty: float
    p_value: float
    held_out: float
    false_alarm_rate: float
    parts: tuple[dict[str, Any], ...]

    @property
    def flagged(self) -> bool:
        """Whether the input is flagged as OOD."""
        return self.p_value <= self.false_alarm_rate

    def to_dict(self) -> dict[str, Any]:
        """Plain values that ``json.dump`` takes; what is not finite becomes text."""
        vacuity = {} if self.dirichlet is None else {"vacuity": float(self.dirichlet.vacuity[0])}
        made: dict[str, Any] = plain(
            {
                "method": self.method,
                "label": self.label,
                "proba": dict(zip(self.class_names, self.proba.tolist(), strict=True)),
                **vacuity,
                "uncertainty": self.uncertainty,
                "typical_uncertainty": self.typical_uncertainty,
                "p_value": self.p_value,
                "held_out": self.held_out,
                "false_alarm_rate": self.false_alarm_rate,
                "flagged": self.flagged,
                "parts": list(self.parts),
            }
        )
        return made

    def __str__(self) -> str:
        """The card as text: its `summary`, then the details."""
        return "\n".join([self.summary(), *self._details()])

    def summary(self) -> str:
        """The answer, how rare the input is, and the method's uncertainty: three lines."""
        return "\n".join(
            [
                leading(self.label, self.class_names, self.proba, np.argsort(-self.proba)),
                rare(self),
                f"  uncertainty by {self.method} {self.uncertainty:.4g}, "
                f"typically {self.typical_uncertainty:.4g}",
            ]
        )

    def _details(self) -> Iterator[str]:
        if self.dirichlet is not None:
            yield f"  {float(self.dirichlet.vacuity[0]):.1%} of the answer is the prior"
        reasons = [line for part in self.parts for line in part_lines(part)]
        yield from reasons or [_ONLY_A_SCORE if self.parts else _NO_DENSITY]
