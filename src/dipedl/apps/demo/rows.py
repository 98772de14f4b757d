"""Rows of the table, from predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...datasets import Dataset
from ...metrics import (
    accuracy,
    aupr_out,
    bootstrap_ci,
    brier_score,
    ece,
    fpr_at_tpr,
    nll,
    ood_auroc,
    ood_brier,
)
from .result import ModelResult, Row, SetScore

ID = "ID"
DIP = "DIP-EDL vacuity"
BARE = ("bare max-prob", "bare entropy")
NO_MODEL = "no classifier"


def model_rows(
    models: Sequence[ModelResult], y: np.ndarray, n_resamples: int, seed: int
) -> Iterator[Row]:
    """One row for each uncertainty of each classifier; `y` (n,) are the labels of the test set."""
    for model in models:
        for method in (DIP, *BARE):
            yield _row(model, method, y, n_resamples, seed)


def _row(model: ModelResult, method: str, y: np.ndarray, n_resamples: int, seed: int) -> Row:
    known = model.on[ID]
    proba = known.dirichlet.mean if method == DIP else known.bare
    ood = {
        name: _set_score(
            known.scores[method],
            predictions.scores[method],
            n_resamples,
            seed,
            predictions.dirichlet.mean if method == DIP else predictions.bare,
            flagged(model, method, name),
        )
        for name, predictions in model.on.items()
        if name != ID
    }
    return Row(
        model=model.name,
        method=method,
        accuracy=accuracy(y, proba),
        brier=brier_score(y, proba),
        nll=nll(y, proba),
        ece=ece(y, proba),
        flagged=float(flagged(model, method, ID).mean()),
        ood=ood,
    )


def flagged(model: ModelResult, method: str, key: str) -> np.ndarray:
    """Which inputs of a set an uncertainty flags, (n,).

    For DIP-EDL those of ``predict_ood``. The scores of the bare classifier have no alarm of their
    own: they may flag as many inputs of the test set as ``predict_ood`` does, and not more.
    """
    if method == DIP:
        return model.on[key].flagged
    known = model.on[ID]
    allowed = int(known.flagged.sum())
    limits = np.append(-np.inf, np.sort(known.scores[method]))
    return np.asarray(model.on[key].scores[method] > limits[len(known.flagged) - allowed])


def trivial_rows(data: Dataset, n_resamples: int, seed: int) -> Iterator[Row]:
    """Rows of two trivial detectors, which ignore the shapes in the image."""
    detectors: dict[str, Callable[[Dataset, np.ndarray], np.ndarray]] = {
        "border ink": _border_ink,
        "mean intensity": lambda data, X: np.abs(X.mean(axis=1) - data.X_train.mean()),
    }
    for name, detector in detectors.items():
        known = detector(data, data.X_test)
        scores = {
            other: _set_score(known, detector(data, X), n_resamples, seed)
            for other, X in data.ood.items()
        }
        yield Row(NO_MODEL, name, None, None, None, None, None, scores)


def _set_score(
    u_in: np.ndarray,
    u_out: np.ndarray,
    n_resamples: int,
    seed: int,
    proba: np.ndarray | None = None,
    flagged: np.ndarray | None = None,
) -> SetScore:
    ci = bootstrap_ci(ood_auroc, u_in, u_out, n_resamples=n_resamples, random_state=seed)
    return SetScore(
        auroc=ci.estimate,
        auroc_low=ci.low,
        auroc_high=ci.high,
        aupr=aupr_out(u_in, u_out),
        aupr_prevalence=len(u_out) / (len(u_in) + len(u_out)),
        fpr95=fpr_at_tpr(u_in, u_out),
        brier=None if proba is None else ood_brier(proba),
        flagged=None if flagged is None else float(flagged.mean()),
    )


def _border_ink(data: Dataset, X: np.ndarray) -> np.ndarray:
    images = X.reshape(len(X), *(data.image_shape or X.shape[1:]))
    border = np.ones(images.shape[1:], dtype=bool)
    border[1:-1, 1:-1] = False
    return np.asarray(images[:, border].mean(axis=1))
