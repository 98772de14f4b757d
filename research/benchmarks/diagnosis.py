"""What is wrong with a collapsed method, measured on its predictions; nothing is trained."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dipedl_bench import Store

__all__ = ["diagnosed", "features_diagnosed", "predictions_diagnosed"]

#: Evidence below this is none: float32 keeps seven digits of a concentration of one.
_NONE = 1e-6


def predictions_diagnosed(
    test: Mapping[str, np.ndarray], prior: float | Sequence[float] = 1.0
) -> dict[str, Any]:
    """What the predictions on the test set show.

    "said": how often each class is the most probable one. With "concentration" (n, k) also
    "silent_classes", the number of classes that no row gives any evidence beyond the prior, as a
    ReLU leaves them whose unit is dead; and "no_evidence", the share of rows that give none.
    """
    proba = test["probabilities"]
    said = np.bincount(proba.argmax(axis=1), minlength=proba.shape[1])
    found: dict[str, Any] = {"said": said.tolist()}
    if "concentration" in test:
        without = np.abs(test["concentration"] - np.asarray(prior)) <= _NONE
        found["silent_classes"] = int(without.all(axis=0).sum())
        found["no_evidence"] = float(without.all(axis=1).mean())
    return found


def features_diagnosed(features: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """What the features (n, p) of the training rows allow a Gaussian for each class to be.

    "dead" features are the same for all rows, "dead_in_class" those that are so within some class;
    "fewest_rows" are of the rarest class; "condition" is the largest ratio of the eigenvalues of a
    class's covariance, None where one is singular in double precision.
    """
    values = np.asarray(features, dtype=np.float64)
    classes, counts = np.unique(y, return_counts=True)
    conditions = [_condition(values[y == k]) for k in classes]
    still = np.array([np.ptp(values[y == k], axis=0) == 0 for k in classes])
    return {
        "n_features": values.shape[1],
        "dead": int((np.ptp(values, axis=0) == 0).sum()),
        "dead_in_class": int(still.any(axis=0).sum()),
        "fewest_rows": int(counts.min()),
        "condition": None if None in conditions else max(c for c in conditions if c is not None),
    }


def diagnosed(stores: Sequence[Store]) -> dict[str, dict[str, dict[str, Any]]]:
    """Diagnoses by method and seed, of every row whose arrays are there."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for store in stores:
        for row in store.rows():
            try:
                found.setdefault(row["method"], {})[str(row["seed"])] = _of_row(store, row)
            except FileNotFoundError:
                # published rows are kept without their arrays
                continue
    return {method: of for method, of in found.items() if of}


def _of_row(store: Store, row: Mapping[str, Any]) -> dict[str, Any]:
    arguments = row["config"].get("arguments", {})
    prior = arguments.get("lambda2", arguments.get("prior", 1.0))
    found = predictions_diagnosed(store.arrays_of(row)["test"], prior)
    if "classifier" not in row["parts"]:
        return found
    train = store.arrays_of(row, "classifier").get("train", {})
    if not {"features", "y"} <= train.keys():
        return found
    return found | {"features": features_diagnosed(train["features"], train["y"])}


def _condition(rows: np.ndarray) -> float | None:
    if len(rows) <= rows.shape[1]:
        return None
    eigenvalues = np.linalg.eigvalsh(np.cov(rows, rowvar=False))
    smallest, largest = float(eigenvalues[0]), float(eigenvalues[-1])
    singular = smallest <= largest * len(eigenvalues) * np.finfo(np.float64).eps
    return None if singular else largest / smallest
