"""A cell of a table: what we measured, how sure that is, and what the paper prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from dipedl.writing.numbers import plain

from ..results.paper import Published

Interval = tuple[float, float]

_OOD = ("auroc", "aupr", "fpr95", "brier_ood")
_OOD_ERRORS = 4
_ERRORS_OF_AN_INTERVAL = 4  # 95 %: 1.96 on each side


@dataclass(frozen=True)
class Cell:
    """One number of a table: mean and population sd (ddof 0, as the paper's) of `values`.

    `values` has one per seed, in the corruption table one per seed and draw. `over_seeds` is the
    95 % t-interval of the mean, None with a single seed; it covers the choice of the seed, which
    also chooses the split, and not that of the test images. `over_images` is the 95 % bootstrap
    interval over the test images, its ends averaged over seeds: all seeds share the test images, so
    their errors go together and averaging does not narrow them. `baseline` is the value of
    guessing, where that depends on the data (AUPR). `why` says why ours differs from the paper's,
    `metric` what the number is, such as ``auroc/kmnist``.
    """

    mean: float
    sd: float
    values: tuple[float, ...]
    over_seeds: Interval | None = None
    over_images: Interval | None = None
    baseline: float | None = None
    paper: Published | None = None
    why: str | None = None
    metric: str = ""

    @property
    def spread(self) -> float:
        """How far the mean may be from that of other seeds: the standard deviation over seeds.

        With one seed or two at least so many standard errors over images as the standard deviations
        of published metrics with four seeds seldom exceed: one, of OOD metrics four. 0 where none
        is known.
        """
        if len(self.values) > 2 or self.over_images is None:
            return self.sd
        low, high = self.over_images
        errors = _OOD_ERRORS if self.metric.startswith(_OOD) else 1
        return max(self.sd, errors * (high - low) / _ERRORS_OF_AN_INTERVAL)

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.paper is None else self.mean - self.paper.mean

    @property
    def differs(self) -> bool | None:
        """Return whether ours and the paper's are more than two standard deviations apart.

        The standard deviation is that of the difference of one run of ours and one of theirs,
        ``sqrt(sd_ours^2 + sd_paper^2)``; half a unit of the paper's last decimal is allowed on top,
        for its rounding. None where the paper gives no standard deviation. With a single seed ours
        counts as zero.
        """
        if self.paper is None or self.paper.sd is None:
            return None
        allowed = 2 * np.hypot(self.sd, self.paper.sd) + self.paper.rounding
        return bool(abs(self.mean - self.paper.mean) > allowed)

    def as_json(self) -> dict[str, Any]:
        """Everything, as plain values."""
        found = {
            "mean": self.mean,
            "sd": self.sd,
            "n": len(self.values),
            "values": self.values,
            "ci95_seeds": self.over_seeds,
            "ci95_images": self.over_images,
            "baseline": self.baseline,
            "paper": self.paper and vars(self.paper),
            "difference": self.difference,
            "differs": self.differs,
            "why": self.why,
        }
        return {name: plain(value) for name, value in found.items()}


def cell_over_seeds(
    values: Sequence[float],
    intervals: Sequence[Interval] = (),
    *,
    baseline: float | None = None,
    paper: Published | None = None,
    why: str | None = None,
    metric: str = "",
) -> Cell:
    """A cell from one value per seed, with the bootstrap interval of each seed if any."""
    data = np.asarray(values, dtype=np.float64)
    return Cell(
        mean=float(data.mean()),
        # An nll is infinite where a true class got probability zero; it has no spread then.
        sd=float(data.std()) if np.isfinite(data).all() else np.nan,
        values=tuple(map(float, data)),
        over_seeds=_t_interval(data),
        over_images=_mean_ends(intervals),
        baseline=baseline,
        paper=paper,
        why=why,
        metric=metric,
    )


def _mean_ends(intervals: Sequence[Interval]) -> Interval | None:
    if not len(intervals):
        return None
    low, high = np.mean(intervals, axis=0)
    return float(low), float(high)


def _t_interval(data: np.ndarray) -> Interval | None:
    if len(data) < 2 or not np.isfinite(data).all():
        return None
    half = stats.t.ppf(0.975, len(data) - 1) * data.std(ddof=1) / np.sqrt(len(data))
    return float(data.mean() - half), float(data.mean() + half)
