"""What a crossed suite is to show: a statement, what is compared, and how far it may be off."""

from __future__ import annotations

from typing import Literal

from .typed_toml import Frozen

__all__ = ["MeasureEntry"]


class MeasureEntry(Frozen):
    """One statement on the method of the group "ours", evaluated by `dipedl.bench.tables.measures`.

    Attributes
    ----------
    statement : str
        What was asked.
    what : str
        "compare": a metric with that of another method, where both have one. "value": the metric
        itself. "regret": AUROC of the best candidate, chosen with OOD labels, less ours.
        "baselines": mean metric with that of every baseline. "fit_cost": processor time of the fit
        over `times` that of `against` and one pass of scoring by each candidate.
        "prediction_cost": processor time of prediction over that of `against`, less one.
    metric : str
        Such as "auroc"; one of an OOD set is looked at for every OOD set.
    against : str
        A method, or "bare".
    beside : str, optional
        Another method, for the number ``{beside}``.
    by : {"difference", "share", "excess"}
        Ours less theirs, ours over theirs, or that less one.
    least, most : float, optional
        Bounds of what is good.
    judged : {"each", "mean"}
        Met if every line is good, or if the mean is: of shares, mean over mean.
    times : float
        See "fit_cost".
    dataset, ood : str, optional
        Only this data set, only this OOD set.
    found, miss : str
        What is said of all numbers, by ``{min}``, ``{max}``, ``{mean}``, ``{median}``, ``{ratio}``
        (mean over mean), ``{beside}`` and ``{density}`` (of the cost, without the classifier's own
        fits), and of one, by ``{value}``.
    """

    statement: str
    what: Literal["compare", "value", "regret", "baselines", "fit_cost", "prediction_cost"]
    metric: str = "auroc"
    against: str = "bare"
    beside: str = ""
    by: Literal["difference", "share", "excess"] = "difference"
    least: float | None = None
    most: float | None = None
    judged: Literal["each", "mean"] = "each"
    times: float = 1.0
    dataset: str = ""
    ood: str = ""
    found: str
    miss: str = "{value:+.3f}"

    def good(self, value: float) -> bool:
        """Whether a number is within the bounds."""
        low = self.least is None or value >= self.least
        return low and (self.most is None or value <= self.most)
