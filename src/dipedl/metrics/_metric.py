"""Metrics: functions with a direction, a kind and the value of a constant score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, ParamSpec, Protocol, cast

#: The kind says how a metric is called: ``id`` with ``(y, proba)``, ``ood`` with
#: ``(uncertainty_in, uncertainty_out)``, ``ood_proba`` with the ``(proba,)`` of OOD inputs,
#: ``risk`` with ``(correct, uncertainty)``.
Kind = Literal["id", "ood", "ood_proba", "risk"]

P = ParamSpec("P")


class Metric(Protocol[P]):
    """A function of arrays that returns a float, with its direction and kind.

    `baseline` takes the same arguments and gives the value that a constant score reaches on these
    data, for metrics whose value cannot be read without it, such as AUPR.
    """

    __name__: str
    higher_is_better: bool
    kind: Kind
    baseline: Callable[..., float] | None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> float:
        """Value of the metric."""
        ...


def metric(
    *, higher_is_better: bool, kind: Kind, baseline: Callable[..., float] | None = None
) -> Callable[[Callable[P, float]], Metric[P]]:
    """Declare a function to be a metric; the function stays the same and gets three attributes."""

    def declare(function: Callable[P, float]) -> Metric[P]:
        declared: Any = function
        declared.higher_is_better = higher_is_better
        declared.kind = kind
        declared.baseline = baseline
        return cast("Metric[P]", declared)

    return declare
