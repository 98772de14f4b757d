"""Problems whose class probabilities are known, to measure what is said about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..maths.arrays import check_integer
from ._truths import FAMILIES
from .dataset import Dataset, Provenance

__all__ = ["load_known_truth"]

#: Rows of a class that training needs, and how often problems are drawn until it has them.
_FEWEST, _ATTEMPTS = 4, 200
#: Share of all rows that training and test rows come from.
_NEAR = 2 / 3
#: Settings that a family cannot do without.
_USUAL: dict[str, dict[str, Any]] = {
    **{family: {"k": 3, "d": 5} for family in ("gaussians", "logistic", "additive")},
    "moons": {"noise": 0.2, "flip": 0.1},
}


def load_known_truth(
    family: str | tuple[np.ndarray, np.ndarray] = "gaussians",
    settings: Mapping[str, Any] | None = None,
    *,
    n_samples: int = 1000,
    n_test: int = 1000,
    random_state: int = 0,
) -> Dataset:
    """Labels drawn from known class probabilities, which come with the test rows.

    Training and test rows are the two thirds with the lowest value of a random linear direction;
    the others are the set "far".

    Parameters
    ----------
    family : str or tuple (X, P), default="gaussians"
        "gaussians", "logistic", "additive", "moons", "checker" or "rings"; or inputs (m, d) with
        their class probabilities (m, k).
    settings : mapping, optional
        Of the family, such as ``{"k": 3, "d": 5}`` (classes and inputs); each has a default.
    n_samples, n_test : int, default=1000
        Training rows, and at most so many test rows and far rows.
    random_state : int, default=0
        Seed of the problem and of the rows.

    Returns
    -------
    Dataset
        With ``truth``: the class probabilities of "test" and "far".

    Raises
    ------
    ValueError
        If there is no such family, or a class has too few rows; TypeError for unknown settings.

    Examples
    --------
    >>> from dipedl.datasets import load_known_truth
    >>> data = load_known_truth("moons", {"noise": 0.2, "flip": 0.1}, n_samples=200)
    >>> data.truth["test"].shape
    (1000, 2)
    """
    check_integer("n_samples", n_samples, 2)
    check_integer("n_test", n_test, 1)
    check_integer("random_state", random_state, 0)
    name = family if isinstance(family, str) else "given"
    if isinstance(family, str) and family not in FAMILIES:
        raise ValueError(f"family must be one of {list(FAMILIES)}, got {family!r}")
    given = dict(_USUAL.get(name, {}) if settings is None else settings)
    for attempt in range(_ATTEMPTS):
        rng = np.random.default_rng([random_state, attempt])
        X, P = _drawn(family, given, int(1.5 * n_samples) + 3 * n_test + 200, rng)
        if not np.isfinite(P).all() or P.shape[1] < 2:
            raise ValueError(f"settings must give two classes or more with probabilities: {given}")
        near = _is_near(X, rng)
        if near.sum() <= n_samples:
            raise ValueError(f"n_samples must be < {near.sum()} for {given}, got {n_samples}")
        y = (rng.random((len(X), 1)) > P.cumsum(axis=1)[:, :-1]).sum(axis=1)
        train, test = np.split(np.flatnonzero(near)[: n_samples + n_test], [n_samples])
        far = np.flatnonzero(~near)[:n_test]
        if np.bincount(y[train], minlength=P.shape[1]).min() >= _FEWEST:
            break
    else:
        raise ValueError(f"n_samples must give every class {_FEWEST} rows, got {n_samples}")
    return Dataset(
        f"{name}, {n_samples} rows",
        X[train],
        y[train],
        X[test],
        y[test],
        ood={"far": X[far]},
        target_names=tuple(map(str, range(P.shape[1]))),
        provenance=(Provenance(f"known truth: {name}", licence="synthetic", notes=str(given)),),
        truth={"test": P[test], "far": P[far]},
    )


def _drawn(
    family: str | tuple[np.ndarray, np.ndarray],
    settings: dict[str, Any],
    m: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (m, d) and their class probabilities (m, k); of given inputs, all there are."""
    if not isinstance(family, str):
        X, P = family
        order = rng.permutation(len(X))
        return X[order], P[order]
    draw, proba = FAMILIES[family](rng, **settings)
    X = draw(m, rng)
    return X, proba(X)


def _is_near(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rows (n,) up to the two-thirds quantile of a random direction."""
    Z = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    along = Z @ rng.normal(size=X.shape[1])
    return np.asarray(along <= np.quantile(along, _NEAR))
