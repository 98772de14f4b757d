"""Confusion matrix of a classifier that may say "unknown"; shares of unknown classes flagged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..decisions.pipelines import last_step_with
from ..evidence import alarm_threshold
from ..maths.arrays import check_rate
from .canvas import COLORS, Display, axes_or_new, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer

__all__ = ["UnknownCounts", "UnknownRehearsalDisplay", "unknown_counts", "unknown_matrix"]

_MARKERS = "os^D"


@dataclass(frozen=True, eq=False)
class UnknownCounts:
    """Confusion counts of ID and OOD inputs, with a column "unknown".

    Attributes
    ----------
    counts : ndarray of int, shape (r, k + 1)
        One row per class, then one per OOD set; one column per class, then "unknown".
    rows : tuple of str, length r
        Names of the rows.
    classes : tuple of str, length k
        Names of the classes.
    threshold : float
        Above this uncertainty an input is called unknown.
    false_alarm_rate : float
        Share of known inputs that may be called unknown.
    n_held_out : int
        Number of held-out inputs that the threshold comes from.
    """

    counts: np.ndarray
    rows: tuple[str, ...]
    classes: tuple[str, ...]
    threshold: float
    false_alarm_rate: float
    n_held_out: int

    @property
    def shares(self) -> np.ndarray:
        """Shares of each row, shape (r, k + 1); NaN in a row without inputs."""
        total = self.counts.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.asarray(self.counts / total)


def unknown_counts(
    y: ArrayLike,
    proba: ArrayLike,
    uncertainty: ArrayLike,
    *,
    held_out: ArrayLike,
    false_alarm_rate: float = 0.05,
    ood: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    class_names: Sequence[str] | None = None,
) -> UnknownCounts:
    """Count predictions; an input is "unknown" if held-out inputs are rarely as uncertain.

    Parameters
    ----------
    y : array-like of int, shape (n,)
        True class indices, 0..k-1.
    proba : array-like, shape (n, k)
        Class probabilities.
    uncertainty : array-like, shape (n,)
        Higher = less sure.
    held_out : array-like, shape (m,)
        Uncertainties of held-out known inputs, not among the n; the threshold comes from them
        alone.
    false_alarm_rate : float in (0, 1), default=0.05
        Largest share of known inputs called unknown, on average over held-out rows.
    ood : mapping of str to (proba, uncertainty), optional
        Predictions for OOD inputs, by name of the set.
    class_names : sequence of str, length k, optional
        Default: 0..k-1.

    Raises
    ------
    ValueError
        If there are too few held-out inputs for the rate, or shapes do not match.

    Notes
    -----
    An input is unknown if its conformal p-value is at most the rate, that is above the threshold of
    `dipedl.evidence.alarm_threshold`.

    Examples
    --------
    >>> from dipedl.plots import unknown_counts
    >>> P = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    >>> held_out = [0.0, 0.1, 0.2, 0.3]
    >>> result = unknown_counts([0, 1, 1], P, [0.1, 0.2, 0.9], held_out=held_out,
    ...                         false_alarm_rate=0.2, ood={"stars": ([[0.5, 0.5]], [0.8])})
    >>> result.threshold, result.rows
    (0.3, ('0', '1', 'stars'))
    >>> result.counts
    array([[1, 0, 0],
           [0, 1, 1],
           [0, 0, 1]])
    """
    P = np.asarray(proba, dtype=np.float64)
    truth = np.asarray(y)
    if P.ndim != 2 or truth.shape != P.shape[:1]:
        raise ValueError(
            f"proba must have shape (n, k) with one label in y each, got {P.shape} and "
            f"{truth.shape}; pass predictions for labelled inputs"
        )
    k = P.shape[1]
    names = tuple(map(str, range(k))) if class_names is None else tuple(class_names)
    if len(names) != k:
        raise ValueError(f"class_names must hold {k} names, got {len(names)}")
    if not np.isin(truth, np.arange(k)).all():
        raise ValueError(f"y must hold indices 0..{k - 1}, got {np.unique(truth).tolist()}")
    known = np.asarray(held_out, dtype=np.float64)
    threshold = _threshold(known, false_alarm_rate)
    columns = _columns(P, uncertainty, threshold)
    rows = [np.bincount(columns[truth == i], minlength=k + 1) for i in range(k)]
    for name, (others, unsure) in (ood or {}).items():
        predictions = np.asarray(others, dtype=np.float64)
        if predictions.ndim != 2 or predictions.shape[1] != k:
            raise ValueError(f"ood[{name!r}] must have {k} columns, got {predictions.shape}")
        rows.append(np.bincount(_columns(predictions, unsure, threshold), minlength=k + 1))
    of_rows = (*names, *(ood or {}))
    return UnknownCounts(np.stack(rows), of_rows, names, threshold, false_alarm_rate, len(known))


def unknown_matrix(counts: UnknownCounts, *, ax: Axes | None = None) -> Axes:
    """Confusion matrix with a column "unknown", and one row per OOD set.

    Parameters
    ----------
    counts : UnknownCounts
        From `unknown_counts`.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        Each cell has its count and its share of the row, also as colour: blue for a known class,
        orange for unknown. The title tells where the threshold comes from.

    Examples
    --------
    >>> from dipedl.plots import unknown_counts, unknown_matrix
    >>> counts = unknown_counts([0, 1], [[0.9, 0.1], [0.2, 0.8]], [0.1, 0.9],
    ...                         held_out=[0.1, 0.2, 0.3, 0.4], false_alarm_rate=0.2)
    >>> ax = unknown_matrix(counts)
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['0', '1', 'unknown']
    """
    from matplotlib.patches import Rectangle

    n_rows, n_columns = counts.counts.shape
    ax = axes_or_new(ax, (1.6 + 1.1 * n_columns, 1.3 + 0.55 * n_rows))
    for i, j in np.ndindex(n_rows, n_columns):
        share = float(counts.shares[i, j])
        color = COLORS[1] if j == n_columns - 1 else COLORS[0]
        strength = 0.0 if np.isnan(share) else 0.6 * share
        corner = (j - 0.48, i - 0.47)
        ax.add_patch(Rectangle(corner, 0.96, 0.94, facecolor=color, alpha=strength, linewidth=0))
        number = f"{int(counts.counts[i, j]):,}"
        text = number if np.isnan(share) else f"{number}\n{share:.1%}"
        ax.text(j, i, text, ha="center", va="center", fontsize=9)
    ax.set(xlim=(-0.5, n_columns - 0.5), ylim=(n_rows - 0.5, -0.5), xlabel="called", ylabel="true")
    ax.set_xticks(range(n_columns), [*counts.classes, "unknown"])
    ax.set_yticks(range(n_rows), [fill(name, 18) for name in counts.rows])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    k = len(counts.classes)
    if n_rows > k:
        ax.axhline(k - 0.5, color=ink(), linewidth=0.8, alpha=0.5)
    ax.set_title(
        f"unknown: uncertainty above {counts.threshold:.3g}, which {counts.false_alarm_rate:.0%} of"
        f"\n{counts.n_held_out:,} known held-out inputs may exceed",
        fontsize="small",
    )
    return ax


class UnknownRehearsalDisplay(Display):
    """Share flagged of each class that a fit did not have, with 95 % intervals, by method.

    Parameters
    ----------
    rehearsal : dipedl.explanation.UnknownRehearsal
        Of `DIPClassifier.rehearse_unknown`.

    Attributes
    ----------
    points_ : dict of str to ErrorbarContainer
        Points and intervals of each method, the class that the model flags least on top.
    ax_, figure_ : Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl import DIPClassifier
    >>> from dipedl.density import GDADensity
    >>> from dipedl.plots import UnknownRehearsalDisplay
    >>> clf = DIPClassifier(density=GDADensity())
    >>> display = UnknownRehearsalDisplay.from_estimator(clf, *load_iris(return_X_y=True))
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['1', '2', '0']
    """

    points_: dict[str, ErrorbarContainer]

    def __init__(self, rehearsal: Any) -> None:
        self.rehearsal = rehearsal

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, groups: ArrayLike | None = None, **options: Any
    ) -> Self:
        """Leave each class out of a fit of the model in turn, and draw.

        Parameters
        ----------
        estimator : DIPClassifier
            Need not be fitted.
        X, y, groups
            As for `DIPClassifier.rehearse_unknown`.
        **options : optional
            As of `DIPClassifier.rehearse_unknown`.

        Raises
        ------
        TypeError
            If the estimator is no `DIPClassifier`.
        """
        model, before = last_step_with("rehearse_unknown", estimator)
        X = X if before is None else before.transform(X)
        return cls(model.rehearse_unknown(X, y, groups, **options)).plot()

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> Self:
        """Draw a line for each class.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; default: a new figure.
        legend : bool, default=True
            Name the methods.
        """
        found, (low, high) = self.rehearsal, self.rehearsal.intervals()
        order, m = np.argsort(found.shares[:, 0], kind="stable"), len(found.methods)
        ax = axes_or_new(ax, (5.5, 1.4 + 0.38 * len(order)))
        self.points_ = {}
        for j, name in enumerate(found.methods):
            share = found.shares[order, j]
            ends = np.abs(np.stack([low[order, j], high[order, j]]) - share)
            at = np.arange(len(order)) + 0.16 * (j - (m - 1) / 2)
            self.points_[name] = ax.errorbar(
                share, at, xerr=ends, fmt=_MARKERS[j], color=COLORS[j], label=name, markersize=4,
                linewidth=1.4,
            )  # fmt: skip
        ax.axvline(found.false_alarm_rate, color="0.5", linewidth=1, linestyle=":")
        ax.set_yticks(range(len(order)), [fill(found.classes[i], 18) for i in order])
        ax.invert_yaxis()
        ax.set(xlabel="share flagged if the class is unknown", xlim=(-0.02, 1.02))
        if legend:
            ax.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        return self._keep_axes(ax)


def _threshold(held_out: np.ndarray, rate: float) -> float:
    """Return the largest uncertainty that is not rare: ``p > rate`` up to it and not beyond."""
    check_rate(rate)
    threshold = -alarm_threshold(-held_out, rate) if len(held_out) else np.inf
    if threshold == np.inf:
        raise ValueError(
            f"held_out must hold at least {int(np.ceil(1 / rate)) - 1} uncertainties for a "
            f"false-alarm rate of {rate:g}, got {len(held_out)}; hold out more, or allow more"
        )
    return threshold


def _columns(P: np.ndarray, unsure: ArrayLike, threshold: float) -> np.ndarray:
    """Return the column of each input in the confusion matrix."""
    u = np.asarray(unsure, dtype=np.float64)
    if u.shape != P.shape[:1]:
        raise ValueError(
            f"uncertainty must have shape {P.shape[:1]}, one for each row of proba, got {u.shape}"
        )
    return np.asarray(np.where(u > threshold, P.shape[1], P.argmax(axis=1)))
