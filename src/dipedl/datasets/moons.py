"""Two moons in the plane, and points far from both."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..maths.arrays import check_integer, check_number
from .dataset import Dataset, Part, Provenance

__all__ = ["load_moons"]


def load_moons(n_samples: int = 1000, *, noise: float = 0.1, random_state: int = 0) -> Dataset:
    """Two interleaved half circles with Gaussian noise; the ood set fills a box around them.

    Moon 0 is the upper unit half circle about (0, 0), moon 1 the lower one about (1, 1/2). Points
    of the ood set keep at least ``gap = max(1/2, 5 * noise)`` from both noise-free arcs; the box
    reaches ``3 * gap`` beyond them.

    Parameters
    ----------
    n_samples : int, default=1000
        Points n, at least 2, in each of training, test and ood set; the moons share them evenly.
    noise : float, default=0.1
        Standard deviation of the noise, in units of the moons' radius.
    random_state : int, default=0
        Seed; the same seed gives the same points.

    Returns
    -------
    Dataset
        Inputs (n, 2), float64; labels (n,), int64; the ood set is ``ood["far"]``.

    Raises
    ------
    TypeError, ValueError
        If `n_samples` is not an integer >= 2, `noise` not a finite number >= 0, or `random_state`
        not an integer >= 0.

    Examples
    --------
    >>> from dipedl.datasets import load_moons
    >>> load_moons(200)
    Dataset('moons', X_train=(200, 2), X_test=(200, 2), n_classes=2, ood={'far': 200})
    """
    from sklearn.datasets import make_moons

    check_integer("n_samples", n_samples, 2)
    check_integer("random_state", random_state, 0)
    check_number("noise", noise, "finite and >= 0", lambda x: x >= 0)
    rng = np.random.RandomState(random_state)  # make_moons takes no Generator
    parts: list[Part] = [make_moons(n_samples, noise=noise, random_state=rng) for _ in range(2)]
    note = f"n_samples={n_samples}, noise={noise}, random_state={random_state}"
    source = Provenance("two moons (scikit-learn, make_moons)", licence="synthetic", notes=note)
    return Dataset(
        "moons",
        *parts[0],
        *parts[1],
        ood={"far": _far(n_samples, max(0.5, 5 * noise), rng)},
        target_names=("upper moon", "lower moon"),
        provenance=(source,),
    )


def _far(n: int, gap: float, rng: np.random.RandomState) -> NDArray[np.float64]:
    """Points (n, 2), uniform in the box less all within `gap` of a moon; by rejection."""
    low, high = np.array([-1, -0.5]) - 3 * gap, np.array([2, 1]) + 3 * gap
    sample = np.empty((0, 2))
    while len(sample) < n:
        points = rng.uniform(low, high, size=(2 * n, 2))
        mirrored = np.array([1, 0.5]) - points  # maps the lower moon onto the upper one
        distance = np.minimum(_distance_from_arc(points), _distance_from_arc(mirrored))
        sample = np.concatenate([sample, points[distance > gap]])
    return sample[:n]


def _distance_from_arc(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distance (n,) of points (n, 2) from the noise-free upper moon."""
    x, y = points.T
    to_circle = np.abs(np.hypot(x, y) - 1)
    to_ends = np.hypot(np.abs(x) - 1, y)
    distance: NDArray[np.float64] = np.where(y >= 0, to_circle, to_ends)
    return distance
