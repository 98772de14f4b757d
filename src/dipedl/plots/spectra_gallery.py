"""Gallery of spectra with predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..dirichlet import Dirichlet
from ..spectra.spectra import Spectra
from .canvas import figure_or_new, vacuity_text
from .spectra import spectrum_plot

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

__all__ = ["spectrum_gallery", "spectrum_title", "trusted_spectra"]


def spectrum_title(
    mean: ArrayLike,
    vacuity: float,
    *,
    class_names: Sequence[str] | None = None,
    truth: str | None = None,
    snr: float = np.nan,
    redshift: float = np.nan,
) -> str:
    """Title of one spectrum: its classes; its vacuity, S/N and redshift if known.

    Parameters
    ----------
    mean : array-like, shape (k,)
        Mean class probabilities.
    vacuity : float
        In [0, 1].
    class_names : sequence of str, length k, optional
        Default: 0..k-1.
    truth : str, optional
        True class.
    snr, redshift : float
        NaN is left out.

    Examples
    --------
    >>> from dipedl.plots import spectrum_title
    >>> names = ["Galaxy", "Quasar"]
    >>> print(spectrum_title([0.12, 0.88], 0.031, class_names=names, truth="Quasar", snr=14.2))
    is Quasar; Quasar 0.88, Galaxy 0.12
    vacuity 0.031, S/N 14
    """
    p = np.asarray(mean, dtype=np.float64)
    names = [str(i) for i in range(len(p))] if class_names is None else list(class_names)
    if p.ndim != 1 or len(names) != len(p):
        raise ValueError(f"class_names must hold {p.size} names, got {len(names)}")
    classes = ", ".join(f"{names[i]} {p[i]:.2f}" for i in np.argsort(-p, kind="stable")[:3])
    facts = [f"vacuity {vacuity_text(float(vacuity))}"]
    facts += [f"S/N {snr:.3g}" if snr < 10 else f"S/N {snr:.0f}"] if np.isfinite(snr) else []
    facts += [f"z {round(redshift, 3) + 0.0:.3f}"] if np.isfinite(redshift) else []
    return f"{f'is {truth}; ' if truth else ''}{classes}\n{', '.join(facts)}"


def spectrum_gallery(
    spectra: Spectra,
    dirichlet: Dirichlet,
    *,
    class_names: Sequence[str] | None = None,
    columns: int = 3,
    smoothing: float = 4.0,
    fig: FigureBase | None = None,
) -> np.ndarray:
    """Spectra, each with its prediction as title.

    Parameters
    ----------
    spectra : Spectra
        m of them.
    dirichlet : Dirichlet
        Of these m.
    class_names : sequence of str, length k, optional
        Of the Dirichlet's classes; default: the names of `spectra` where there are k.
    columns : int, default=3
        Spectra per row.
    smoothing : float, default=4.0
        As in `spectrum_plot`.
    fig : Figure or SubFigure, optional
        Where to draw.

    Returns
    -------
    ndarray of Axes, shape (m,)
        In the order given.

    Raises
    ------
    ValueError
        If there is no spectrum, or not one Dirichlet each.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl import Dirichlet
    >>> from dipedl.plots import spectrum_gallery
    >>> from dipedl.spectra import Spectra, paper_grid
    >>> spectra = Spectra(np.ones((4, 3000), np.float32), paper_grid())
    >>> spectrum_gallery(spectra, Dirichlet(np.ones((4, 2)))).shape
    (4,)
    """
    m = len(spectra)
    if m == 0 or len(dirichlet) != m:
        raise ValueError(
            f"dirichlet must hold one row for each spectrum, of which there must be at least 1, "
            f"got {len(dirichlet)} for {m}; select the same rows of both"
        )
    rows = -(-m // columns)
    grid = figure_or_new(fig, (4.2 * columns, 3.2 * rows)).subplots(rows, columns, squeeze=False)
    for ax in grid.flat[m:]:
        ax.set_axis_off()
    for i, ax in enumerate(grid.flat[:m]):
        spectrum_plot(
            spectra.wavelength,
            spectra.flux[i],
            redshift=_value(spectra.redshift, i),
            mask=None if spectra.mask is None else spectra.mask[i],
            smoothing=smoothing,
            ax=ax,
        )
        ax.set_title(_title(spectra, dirichlet, i, class_names), fontsize="small", loc="left")
    return np.asarray(grid.flat[:m])


def trusted_spectra(
    spectra: Spectra,
    dirichlet: Dirichlet,
    *,
    n: int = 3,
    class_names: Sequence[str] | None = None,
    fig: FigureBase | None = None,
) -> np.ndarray:
    """The spectra with the most evidence, and below them those with the least.

    Parameters
    ----------
    spectra : Spectra
        At least `n`.
    dirichlet : Dirichlet
        Of these spectra; ranked by log-evidence, since vacuity ties at 1.
    n : int, default=3
        How many of each.
    class_names, fig
        As in `spectrum_gallery`.

    Returns
    -------
    ndarray of Axes, shape (2, n)
        The most trusted, most trusted first; the least trusted, least trusted first.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl import Dirichlet
    >>> from dipedl.plots import trusted_spectra
    >>> from dipedl.spectra import Spectra, paper_grid
    >>> spectra = Spectra(np.ones((9, 3000), np.float32), paper_grid())
    >>> trusted_spectra(spectra, Dirichlet(1 + np.eye(9)[:, :2]), n=2).shape
    (2, 2)
    """
    if not 1 <= n <= len(spectra) or len(dirichlet) != len(spectra):
        raise ValueError(
            f"n must be in 1..{len(spectra)}, with one Dirichlet for each of the {len(spectra)} "
            f"spectra, got n={n} and {len(dirichlet)}; ask for fewer"
        )
    order = np.argsort(-np.asarray(dirichlet.log_evidence), kind="stable")
    shown = np.concatenate([order[:n], order[::-1][:n]])
    axes = spectrum_gallery(
        spectra.select(shown), dirichlet[shown], class_names=class_names, columns=n, fig=fig
    )
    return axes.reshape(2, n)


def _title(
    spectra: Spectra, dirichlet: Dirichlet, i: int, class_names: Sequence[str] | None
) -> str:
    k = np.shape(dirichlet.concentration)[1]
    names = class_names or (spectra.target_names if len(spectra.target_names) == k else None)
    label = -1 if spectra.label is None else int(spectra.label[i])
    return spectrum_title(
        np.asarray(dirichlet.mean)[i],
        float(dirichlet.vacuity[i]),
        class_names=names,
        truth=spectra.target_names[label] if label >= 0 else None,
        snr=_value(spectra.snr, i),
        redshift=_value(spectra.redshift, i),
    )


def _value(values: np.ndarray | None, i: int) -> float:
    return np.nan if values is None else float(values[i])
