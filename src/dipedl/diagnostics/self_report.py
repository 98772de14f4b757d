"""What a fitted classifier says about itself and about single answers, as methods."""

from __future__ import annotations

from typing import Any

from ..decisions._per_sample import of_one_state
from ..explanation import Card, explain
from ..writing.finding import Diagnosis
from ._diagnose import diagnose

__all__ = ["SelfReport"]


class SelfReport:
    """Diagnosis and explanation of a fitted `DIPClassifier`, `DIPModule` or baseline."""

    @of_one_state
    def diagnose(self) -> Diagnosis:
        """What the held-out rows say about this model, in plain words with numbers and remedies.

        Returns
        -------
        Diagnosis
            ``print`` and a notebook show a page; ``warnings`` are what should change something;
            ``to_dict()``.

        See Also
        --------
        dipedl.diagnostics.diagnose : what is looked at.
        """
        return diagnose(self)

    @of_one_state
    def explain(self, X: Any, top: int = 5) -> list[Card]:
        """Why each of the n inputs X (n, d) got its answer, one card each.

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs; for a `DIPModule` a batch of its network, as one argument.
        top : int, default=5
            Features or neighbours named on a card.

        Returns
        -------
        list of Card, length n
            ``print(card)``, ``card.to_dict()``, ``card.plot()``; a notebook shows the first ten.

        See Also
        --------
        dipedl.explanation.explain : what is on a card.
        """
        return explain(self, X, top)
