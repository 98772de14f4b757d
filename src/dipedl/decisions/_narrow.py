"""Dirichlets whose intervals are known to be too narrow."""

from __future__ import annotations

from typing import ClassVar, Self

from ..dirichlet import Dirichlet
from ..fitting.progress import warn_caller
from ..maths.array_namespace import Array
from ..writing.finding import Finding, FindingWarning


class EvidenceDirichlet(Dirichlet):
    """A Dirichlet whose strength is the evidence alone; asked for intervals, it says so."""

    _finding: ClassVar[Finding] = Finding(
        "intervals_of_evidence",
        "warning",
        "These intervals are often several times too narrow: their width is that of the evidence, "
        "which says where data were seen, and not how wrong the probabilities are.",
        remedy="Give spread=dipedl.calibration.Rehearsal() to the model.",
    )

    def credible_interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """As of `Dirichlet`, with a `FindingWarning`."""
        warn_caller(FindingWarning(self._finding), once=True)
        return super().credible_interval(level)

    def _repr_html_(self) -> str:
        return super()._repr_html_() + self._finding._repr_html_()


class ShortDirichlet(EvidenceDirichlet):
    """A Dirichlet of a spread, where one strength for all classes is known not to be enough."""

    _finding: ClassVar[Finding] = Finding(
        "intervals_fall_short",
        "warning",
        "These intervals may hold less than they promise: there are few rows, a class has few of "
        "them, or the labels are nearly without noise.",
        remedy="diagnose() of the classifier says which.",
    )

    @classmethod
    def like(cls, found: Dirichlet) -> Self:
        """The same Dirichlets, of this kind."""
        return cls(found.concentration, found.log_evidence, found.prior)
