"""Search trees by their points: stored nodes could point anywhere, so they are computed again."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import Sizes, count, doubles, floats, maybe, need, number, one_of

#: What scikit-learn calls the compiled distances -> the names that make them.
_METRICS = {
    "EuclideanDistance64": "euclidean",
    "ManhattanDistance64": "manhattan",
    "ChebyshevDistance64": "chebyshev",
    "MinkowskiDistance64": "minkowski",
}


class _SearchTree:
    """A KDTree or a BallTree."""

    def take(self, value: Any) -> dict[str, Any]:
        parts = value.__getstate__()
        data, leaf_size, metric, weight = parts[0], parts[4], parts[11], parts[12]
        name = _METRICS.get(type(metric).__name__)
        need(name is not None, "has another distance")
        # Minkowski's state is its power, its weights and more.
        power, weights = metric.__getstate__()[:2] if name == "minkowski" else (None, ())
        need(not len(weights), "has a distance with weights")
        state = {
            "data": np.asarray(data),
            "leaf_size": leaf_size,
            "metric": name,
            "p": power,
            "weights": None if weight is None else np.asarray(weight),
        }
        need(_same(value, self.make(type(value), state)), "would be another one, built again")
        return state

    def make(self, cls: type, state: dict[str, Any]) -> Any:
        sizes = Sizes()
        doubles("n", "d")(state["data"], sizes)
        maybe(floats("n", least=0))(state["weights"], sizes)
        count(least=1)(state["leaf_size"], sizes)
        one_of(*_METRICS.values())(state["metric"], sizes)
        power = {}
        if state["metric"] == "minkowski":
            number(1, 1e6)(state["p"], sizes)
            power = {"p": state["p"]}
        need(sizes["n"] and sizes["d"], "has no points")
        return cls(
            state["data"],
            leaf_size=min(state["leaf_size"], sizes["n"] + 1),
            metric=state["metric"],
            sample_weight=state["weights"],
            **power,
        )

    def cost(self, state: dict[str, Any]) -> int:
        """Bytes that the tree takes beside its points: two bounds per node."""
        data = state["data"]
        nodes = 4 * len(data) // min(max(int(state["leaf_size"]), 1), len(data) + 1) + 2
        return int(8 * len(data) + nodes * (32 + 16 * data.shape[-1]))


def _same(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a.get_arrays(), b.get_arrays(), strict=True))


CODECS: dict[str, Any] = {
    f"sklearn.neighbors.{name}": _SearchTree() for name in ("KDTree", "BallTree")
}
