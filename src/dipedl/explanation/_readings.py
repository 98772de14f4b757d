"""What a density has to say about single rows, for any density."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ..features.pipelines import names_after

_PROBES = 200

#: One row as one density sees it; "kind" says which entries there are.
Reading = dict[str, Any]


def read_rows(density: Any, Z: np.ndarray, names: list[str] | None, top: int) -> list[Reading]:
    """A reading for each row of features Z (n, p) with these names; `top` features or neighbours.

    A pipeline is followed to its last step, a ratio to both of its parts, a sum to its lowest
    blocks; a density with ``explain_rows(Z, top)`` speaks for itself, one with ``neighbors(Z)``
    through training rows; of any other there is only the score.
    """
    if isinstance(density, FrozenEstimator):
        return read_rows(density.estimator, Z, names, top)
    if isinstance(density, Pipeline):
        before = density[:-1]
        return read_rows(density[-1], before.transform(Z), names_after(before, names), top)
    if hasattr(density, "explain_rows"):
        return [_named(row, names) for row in density.explain_rows(Z, top)]
    if hasattr(density, "blocks_"):
        return _blocks(density, Z, names, top)
    if hasattr(density, "background_"):
        return _ratio(density, Z, names, top)
    if hasattr(density, "neighbors"):
        return _neighbours(density, Z, top)
    return [{"kind": "score"} for _ in Z]


def _ratio(density: Any, Z: np.ndarray, names: list[str] | None, top: int) -> list[Reading]:
    """The foreground's reading, with the background's beside it."""
    near = read_rows(density.density_, Z, names, top)
    far = read_rows(density.background_, Z, names, top)
    return [{**a, "background": b} for a, b in zip(near, far, strict=True)]


def _blocks(density: Any, Z: np.ndarray, names: list[str] | None, top: int) -> list[Reading]:
    """The blocks that add least, each with its own reading."""
    scores = density.block_scores(Z)
    inside = [
        read_rows(part, Z[:, block], None if names is None else names[block], top)
        for part, block in zip(density.densities_, density.blocks_, strict=True)
    ]
    return [
        {
            "kind": "blocks",
            "blocks": [
                {"block": int(b), "score": float(row[b]), **inside[b][i]}
                for b in np.argsort(row, kind="stable")[:top]
            ],
        }
        for i, row in enumerate(scores)
    ]


def _neighbours(density: Any, Z: np.ndarray, top: int) -> list[Reading]:
    distances, rows = density.neighbors(Z)
    typical = _typical_distance(density)
    return [
        {
            "kind": "neighbours",
            "neighbours": [
                {"row": int(i), "distance": float(r)}
                for i, r in zip(near[:top], far[:top], strict=True)
            ],
            "kth": len(near),
            "kth_distance": float(far[-1]),
            "typical_kth_distance": typical,
        }
        for near, far in zip(rows, distances, strict=True)
    ]


def _typical_distance(density: Any) -> float:
    """Median distance of training rows to their k-th nearest other row, from some of them."""
    index, k = density.neighbors_, density.n_neighbors_
    rows = index._fit_X
    some = rows[:: -(-len(rows) // _PROBES)]
    distances, _ = index.kneighbors(some, n_neighbors=min(k + 1, len(rows)))
    return float(np.median(distances[:, -1]))


def _named(row: Reading, names: list[str] | None) -> Reading:
    """The reading with the names of its features."""
    if names is None or "features" not in row:
        return row
    features = [
        entry if "name" in entry else {"name": names[entry["feature"]], **entry}
        for entry in row["features"]
    ]
    return {**row, "features": features}
