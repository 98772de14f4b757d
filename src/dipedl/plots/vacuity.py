"""Histograms of uncertainty, and vacuity against a quantity of the inputs, such as S/N."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from ..decisions.pipelines import uncertainty
from .canvas import COLORS, LINES, Display, axes_or_new, ink
from .canvas import log_odds as to_log_odds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

__all__ = ["VacuityHistogramDisplay", "vacuity_against"]

_ODDS_TICKS = np.array([0.001, 0.1, 0.5, 0.9, 0.999])
#: Vacuities nearer to 0 or 1 than this count as this far from them, in histograms and curves.
_BIN_EDGE, _CURVE_EDGE = 1e-4, 1e-6
#: Fewer points than this are drawn one by one, more as hexagons.
_SINGLE = 800
#: Most bins of a curve, and fewest inputs in each.
_BINS, _LEAST = 12, 15
_POWERS = 10.0 ** np.arange(-5, 0)
_TICKS = np.array([*_POWERS, 0.5, *(1 - _POWERS)])
_FINE_TICKS = np.unique([*_TICKS, *(2 * _POWERS), *(5 * _POWERS), *(1 - 2 * _POWERS)])


class VacuityHistogramDisplay(Display):
    """Share of inputs by vacuity or confidence, one outline a set; both ends are stretched.

    Parameters
    ----------
    vacuity : mapping of str to array-like, shape (n_i,)
        Values in [0, 1] by name of the set, such as ``{"ID": u_in, "OOD": u_out}``. Those beyond
        0.0001 or 0.9999 are counted in the outermost bins.

    Attributes
    ----------
    outlines_ : dict of str to Patch
        Outline of each set.
    ax_, figure_ : Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl import DIPClassifier
    >>> from dipedl.plots import VacuityHistogramDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = DIPClassifier().fit(X, y)
    >>> display = VacuityHistogramDisplay.from_estimator(clf, X, ood={"far": X + 5})
    >>> list(display.outlines_)
    ['ID', 'far']
    """

    outlines_: dict[str, Patch]

    def __init__(self, vacuity: Mapping[str, ArrayLike]) -> None:
        self.vacuity = vacuity

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        ood: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Ask a fitted model about inputs, and draw.

        Parameters
        ----------
        estimator : DIPClassifier
            Fitted; or a pipeline or search that ends in one.
        X : array-like, shape (n, d)
            Inputs like those of the fit, but not among them; called "ID".
        ood : mapping of str to array-like, shape (m_i, d), optional
            Other inputs, by name of the set.
        **options : optional
            As of `plot`.

        Raises
        ------
        TypeError
            If the estimator is no `DIPClassifier` and ends in none.
        """
        sets = {"ID": X, **(ood or {})}
        return cls({name: uncertainty(estimator, rows) for name, rows in sets.items()}).plot(
            **options
        )

    @classmethod
    def from_predictions(
        cls,
        vacuity: ArrayLike,
        *,
        ood: Mapping[str, ArrayLike] | None = None,
        **options: Any,
    ) -> Self:
        """Draw vacuities that are there already.

        Parameters
        ----------
        vacuity : array-like, shape (n,)
            Of known inputs; called "ID".
        ood : mapping of str to array-like, shape (m_i,), optional
            Of other inputs, by name of the set.
        **options : optional
            As of `plot`.

        Raises
        ------
        ValueError
            If a set is empty or not finite.
        """
        return cls({"ID": vacuity, **(ood or {})}).plot(**options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        bins: int = 36,
        threshold: float | None = None,
        legend: bool = True,
    ) -> Self:
        """Draw the outlines over log-odds.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; default: a new figure.
        bins : int, default=36
            Number of bins.
        threshold : float, optional
            Drawn as a line.
        legend : bool, default=True
            Name the sets.

        Raises
        ------
        ValueError
            If no set is given, or one is empty or not finite.
        """
        if not self.vacuity:
            raise ValueError("vacuity must hold at least one set, got none; pass {'ID': u_in}")
        for name, values in self.vacuity.items():
            if np.ndim(values) != 1 or not np.size(values) or not np.isfinite(values).all():
                raise ValueError(
                    f"vacuity[{name!r}] must be a non-empty 1-d array of finite numbers, "
                    f"got shape {np.shape(values)}; clip or drop what is infinite"
                )
        ax, self.outlines_ = axes_or_new(ax), {}
        low, high = to_log_odds(np.array([0.0, 1.0]), _BIN_EDGE)
        edges = np.linspace(low, high, bins + 1)
        ax.set_xticks(to_log_odds(_ODDS_TICKS, _BIN_EDGE), [f"{t:g}" for t in _ODDS_TICKS])
        ax.set_xticks(to_log_odds(np.array([0.01, 0.99]), _BIN_EDGE), minor=True)
        for i, (name, values) in enumerate(self.vacuity.items()):
            counts = np.histogram(to_log_odds(np.asarray(values, float), _BIN_EDGE), edges)[0]
            share, color = counts / np.size(values), COLORS[i % len(COLORS)]
            outline = self.outlines_[name] = ax.stairs(share, edges, color=color, label=name)
            outline.set(linestyle=LINES[i % len(LINES)], linewidth=1.8)
            ax.stairs(share, edges, fill=True, alpha=0.12, color=color)
        if threshold is not None:
            at = float(to_log_odds(np.asarray(threshold), _BIN_EDGE))
            ax.axvline(at, color="0.5", linewidth=1, linestyle=":")
        ax.set(xlabel="vacuity (both ends stretched)", ylabel="share of the set")
        if legend:
            ax.legend()
        return self._keep_axes(ax)


def vacuity_against(
    sets: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    log: bool = False,
    xlabel: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Vacuity against a quantity: all points, with median and 16-84 % band of each set.

    Parameters
    ----------
    sets : mapping of str to (x, vacuity)
        The quantity and the vacuity (both (n_i,)) by name of the class or set. Where x is NaN, or
        not positive on a logarithmic axis, the input is left out, and the axes say how many are.
    log : bool, default=False
        Draw x on a logarithmic axis.
    xlabel : str, optional
        Label of x.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        Median and band are of at most 12 bins per set, of equal counts of at least 15 inputs; a set
        of fewer than 15 has no line. The vacuity axis is in log-odds, and holds all bands and 99 %
        of the points; those beyond are drawn at its ends. Up to 800 points are dots, more are
        hexagons, darker where there are more.

    Raises
    ------
    ValueError
        If no set is given, lengths differ, a vacuity is outside [0, 1], or no input has an x.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.plots import vacuity_against
    >>> snr = np.geomspace(3, 100, 60)
    >>> ax = vacuity_against({"Galaxy": (snr, 1 / snr)}, log=True, xlabel="S/N")
    >>> ax.get_xlabel(), ax.get_ylabel(), [line.get_label() for line in ax.lines]
    ('S/N', 'vacuity', ['Galaxy'])
    """
    if not sets:
        raise ValueError("sets must hold at least one set, got none; pass {'Galaxy': (snr, u)}")
    pairs = {name: _check_pair(name, *pair) for name, pair in sets.items()}
    points, omitted = {}, 0
    for name, (x, u) in pairs.items():
        known = np.isfinite(x) & (x > 0) if log else np.isfinite(x)
        points[name] = x[known], to_log_odds(u[known], _CURVE_EDGE)
        omitted += int((~known).sum())
    if not any(len(x) for x, _ in points.values()):
        needed = "finite and positive" if log else "finite"
        raise ValueError(f"sets must hold at least one x that is {needed}, got none")
    ax = axes_or_new(ax)
    bands = {name: _band(pair) for name, pair in points.items() if len(pair[0]) >= _LEAST}
    low, high = _limits(points, bands)
    _draw_points(ax, {name: (x, np.clip(z, low, high)) for name, (x, z) in points.items()}, log)
    for i, name in enumerate(points):
        if name in bands:
            at, bottom, middle, top = bands[name]
            color, line = COLORS[i % len(COLORS)], LINES[i % len(LINES)]
            ax.plot(at, middle, label=name, color=color, linestyle=line, linewidth=2)
            ax.fill_between(at, bottom, top, color=color, alpha=0.2, linewidth=0)
    room = 0.03 * (high - low)
    low, high = low - room, high + room
    ax.set_ylim(low, high)
    _vacuity_ticks(ax, low, high)
    ax.set(xlabel=xlabel, ylabel="vacuity")
    if log:
        ax.set_xscale("log")
        _plain_ticks(ax)
    if omitted:
        text = f"{omitted:,} without a value left out"
        ax.text(0.99, 1.01, text, ha="right", va="bottom", fontsize=8, transform=ax.transAxes)
    ax.legend()
    return ax


def _draw_points(ax: Axes, sets: Mapping[str, tuple[np.ndarray, np.ndarray]], log: bool) -> None:
    from matplotlib.colors import to_rgba

    x, z = (np.concatenate([pair[i] for pair in sets.values()]) for i in range(2))
    if len(x) <= _SINGLE:
        for i, (own, height) in enumerate(sets.values()):
            color = COLORS[i % len(COLORS)]
            ax.scatter(own, height, s=7, alpha=0.4, color=color, linewidths=0)
        return
    scale: Literal["log", "linear"] = "log" if log else "linear"
    hexagons = ax.hexbin(x, z, gridsize=(34, 22), xscale=scale, mincnt=1, linewidths=0)
    counts = np.asarray(hexagons.get_array(), dtype=np.float64)
    # One colour of varying strength, so that it can be the text colour of a dark page too.
    shades = np.tile(to_rgba(ink()), (len(counts), 1))
    shades[:, 3] = 0.06 + 0.34 * np.log(counts) / max(np.log(counts.max()), 1e-9)
    hexagons.set_array(None)
    hexagons.set_facecolor(list(map(tuple, shades)))
    hexagons.set_edgecolor("none")


def _band(pair: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """x, low end, median and high end, each (n_bins,), of bins of equal counts."""
    x, z = pair
    groups = np.array_split(np.argsort(x, kind="stable"), min(_BINS, len(x) // _LEAST))
    at = np.array([np.median(x[rows]) for rows in groups])
    ends = np.array([np.quantile(z[rows], (0.16, 0.5, 0.84)) for rows in groups])
    return np.column_stack([at, ends]).T


def _limits(
    sets: Mapping[str, tuple[np.ndarray, np.ndarray]], bands: Mapping[str, np.ndarray]
) -> tuple[float, float]:
    """Ends of the axis: a few points at 0 or 1 would leave no room for the others."""
    ends = [np.quantile(np.concatenate([z for _, z in sets.values()]), (0.005, 0.995))]
    every = np.concatenate([*ends, *(band[1:].ravel() for band in bands.values())])
    low, high = float(every.min()), float(every.max())
    return (low, high) if high - low > 2 else (low - 1, high + 1)


def _vacuity_ticks(ax: Axes, low: float, high: float) -> None:
    for ticks in (_TICKS, _FINE_TICKS):
        places = to_log_odds(ticks, _CURVE_EDGE)
        inside = (places >= low) & (places <= high)
        if inside.sum() > 2:
            break
    ax.set_yticks(places[inside], [f"{tick:.6f}".rstrip("0") for tick in ticks[inside]])


def _plain_ticks(ax: Axes) -> None:
    """Numbers such as 5, 10, 20 instead of powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _check_pair(name: str, x: ArrayLike, vacuity: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    across, u = np.asarray(x, dtype=np.float64), np.asarray(vacuity, dtype=np.float64)
    if across.ndim != 1 or across.shape != u.shape:
        raise ValueError(
            f"sets[{name!r}] must be two 1-d arrays of one length, got shapes {across.shape} and "
            f"{u.shape}; give every input an x, NaN where it is not known"
        )
    if not ((u >= 0) & (u <= 1)).all():
        raise ValueError(f"sets[{name!r}] must have a vacuity in [0, 1] for every input")
    return across, u
