"""Predictions of a trained part, split by split: the arrays that everything else derives from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax

from ..results.scores import OOD_PREFIX
from .memo import Spent

#: Method of a classifier -> name of the array of its answers.
OUTPUTS = {"predict_proba": "probabilities", "logits": "logits", "transform": "features"}

Arrays = dict[str, dict[str, np.ndarray]]
Splits = Mapping[str, np.ndarray]


def classifier_arrays(model: Any, X: Splits, cost: Spent) -> Arrays:
    """Probabilities of every split, and logits and features if the classifier gives them."""
    network = _in_one_pass(model, next(iter(X.values()))[:64])
    found: Arrays = {}
    for split, rows in X.items():
        if network:
            outputs = _timed(partial(_logits_and_features, model), rows, cost, split)
            logits, features = np.split(outputs, [len(model.classes_)], axis=1)
            found[split] = {"logits": logits, "probabilities": softmax(logits, axis=1)}
        else:
            found[split] = {"probabilities": _timed(model.predict_proba, rows, cost, split)}
            if not hasattr(model, "transform"):
                continue
            features = model.transform(rows)  # not counted: densities need them
        found[split]["features"] = np.asarray(features, dtype=np.float32)
    return found


def _logits_and_features(model: Any, rows: np.ndarray) -> np.ndarray:
    """Both of a network classifier of `dipedl.networks` side by side, (n, k + p), in one pass."""
    import torch

    return np.asarray(
        model.apply_network(
            rows, lambda net, chunk: torch.cat(net.outputs_and_features(chunk), dim=1)
        )
    )


def density_arrays(model: Any, X: Splits, cost: Spent) -> Arrays:
    """Log-density of every split, in nats."""
    return {
        split: {"log_density": _timed(model.score_samples, rows, cost, split)}
        for split, rows in X.items()
    }


def method_arrays(model: Any, X: Splits, cost: Spent, kind: str | None = None) -> Arrays:
    """Probabilities and uncertainty of every split; of evidential methods the concentration too."""
    options = {} if kind is None else {"kind": kind}
    for name in ("predict_dirichlet", "sample_proba"):
        if hasattr(model, name):
            setattr(model, name, _once(getattr(model, name)))
    found: Arrays = {}
    for split, rows in X.items():
        uncertainty = _timed(partial(model.uncertainty, **options), rows, cost, split)
        # not counted: most methods have computed what this needs for the uncertainty
        found[split] = _probabilities(model, rows) | {"uncertainty": uncertainty}
    return found


def _once(answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same function, which is not called again for the array it was last called for."""
    last: list[Any] = [None, None]

    def asked(rows: Any) -> Any:
        if last[0] is not rows:
            last[:] = rows, answer(rows)
        return last[1]

    return asked


def _probabilities(model: Any, rows: np.ndarray) -> dict[str, np.ndarray]:
    if not hasattr(model, "predict_dirichlet"):
        return {"probabilities": np.asarray(model.predict_proba(rows), dtype=np.float64)}
    dirichlet = model.predict_dirichlet(rows)
    named = {
        "probabilities": np.asarray(dirichlet.mean),
        "concentration": np.asarray(dirichlet.concentration),
    }
    if dirichlet.log_evidence is not None:
        named["log_evidence"] = np.asarray(dirichlet.log_evidence)
    return named


def _in_one_pass(model: Any, few: np.ndarray) -> bool:
    """Return whether the methods of a network answer with its head and its features."""
    if not hasattr(model, "apply_network"):
        return False
    logits, features = np.split(_logits_and_features(model, few), [len(model.classes_)], axis=1)
    probabilities = softmax(logits, axis=1)
    return np.allclose(probabilities, model.predict_proba(few), atol=1e-5) and (
        np.array_equal(features, model.transform(few))
    )


def _timed(
    predict: Callable[[np.ndarray], Any], rows: np.ndarray, cost: Spent, split: str
) -> np.ndarray:
    # the cost of scoring is that of the test set and the OOD sets
    counts = split == "test" or split.startswith(OOD_PREFIX)
    with cost.counted() if counts else nullcontext():
        return np.asarray(predict(rows), dtype=np.float64)
