"""Cards of inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from .._validation import indexable
from ..calibration.held_out import HeldOut
from ..decisions.p_values import conformal_p_values
from ..evidence import weighted_quantile
from ..fitting.own_steps import last_step
from ..maths.kinds import most_probable
from ..maths.scores import placements
from ._card import Card, Cards
from ._in_columns import row_news, user_columns
from ._readings import read_rows

_MEDIAN = 0.5
_OVERFLOW = "a number that classifier, features or density cannot compute with"


def explain(clf: Any, X: Any, top: int = 5) -> list[Card]:
    """Why each input of X (n, d) got its answer.

    Parameters
    ----------
    clf : DIPClassifier or DIPModule
        Fitted; or a pipeline or search that ends in a classifier.
    X : array-like or DataFrame, shape (n, d); or a batch of the module's network
        Inputs, for a pipeline those that its first step takes.
    top : int, default=5
        Features or neighbours named on a card, >= 1.

    Returns
    -------
    list of Card, length n
        ``print(card)``, ``card.to_dict()``, ``card.plot()``; a notebook shows the first ten.

    Raises
    ------
    ValueError
        If `top` is less than 1.
    NotFittedError
        If `clf` is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl import DIPClassifier
    >>> from dipedl.density import GDADensity
    >>> from dipedl.explanation import explain
    >>> data = load_iris(as_frame=True)
    >>> clf = DIPClassifier(density=GDADensity()).fit(data.data, data.target)
    >>> odd = data.data.iloc[:1].assign(**{"sepal width (cm)": 9.0})
    >>> explain(clf, odd)[0].parts[0]["features"][0]["name"]
    'sepal width (cm)'
    """
    if top < 1:
        raise ValueError(f"top must be >= 1, got {top!r}")
    clf, before = last_step(clf)
    Z, proba, scores = clf._seen(X if before is None else before.transform(indexable(X)))
    # Of a row that overflows there are no features, and nothing to read in them.
    unknown = np.isnan(Z).any(axis=1)
    Z = np.where(unknown[:, None], 0.0, Z)
    # The inputs of a network have no columns.
    given = indexable(X) if hasattr(clf, "n_features_in_") else np.arange(len(Z))
    evidence_side = clf.evidence_
    held: HeldOut = evidence_side.held_out_
    P = evidence_side.calibrated(proba, scores)
    dirichlet = clf._dirichlet(P, scores)
    labels = clf.classes_[most_probable(dirichlet.concentration, P)]
    p_values = conformal_p_values(scores, held.scores, held.weights)
    user = user_columns(clf, given, before, Z)
    parts = [
        [user.in_columns(reading, i, top) for i, reading in enumerate(part)]
        for part in _parts(clf, Z, proba, user.tokens, user.features_for(top))
    ]
    news = row_news(clf, given, before)
    with np.errstate(over="ignore"):
        evidence = np.exp(np.asarray(dirichlet.log_evidence))
    typical = weighted_quantile(held.scores, _MEDIAN, held.weights)
    return Cards(
        Card(
            class_names=tuple(str(name) for name in np.asarray(clf.classes_).tolist()),
            label=str(labels[i]),
            classifier_proba=P[i],
            dirichlet=dirichlet[i],
            evidence=float(evidence[i]),
            n=float(evidence_side.n_),
            p_value=float(p_values[i]),
            held_out=held.total,
            false_alarm_rate=float(clf.false_alarm_rate),
            score=float(scores[i]),
            typical_score=typical,
            parts=() if unknown[i] else tuple(part[i] for part in parts),
            news=(*news[i], _OVERFLOW) if unknown[i] else tuple(news[i]),
        )
        for i in range(len(P))
    )


def _parts(
    clf: Any, Z: np.ndarray, proba: np.ndarray, names: list[str], top: int
) -> list[list[dict[str, Any]]]:
    """Readings of each part of the density, for each row; with the parts' scores if several."""
    density, held = clf.evidence_.density_, clf.evidence_.held_out_
    members = getattr(density, "estimators_", None)
    if members is None:
        return [read_rows(density, Z, names, top)]
    by_classifier = set(density.component_names_) - set(members)
    scored = density.component_scores(Z, proba if by_classifier else None)
    parts = []
    for name in density.component_names_:
        scores = scored[name]
        plain = [{"kind": "score"} for _ in scores]
        rows = read_rows(members[name], Z, names, top) if name in members else plain
        normal = _normal_scores(held, name, scores)
        parts.append(
            [
                {
                    "part": name,
                    "score": float(s),
                    **({} if z is None else {"normal_score": z}),
                    **row,
                }
                for s, z, row in zip(scores, normal, rows, strict=True)
            ]
        )
    return parts


def _normal_scores(held: HeldOut, name: str, scores: np.ndarray) -> list[float | None]:
    """Standard-normal score of each score's rank among the held-out ones of the same part."""
    if held.components is None or name not in held.component_names:
        return [None] * len(scores)
    column = held.components[:, held.component_names.index(name)]
    share = placements(column, scores, held.weights)
    # One row's half stays at either end, where a normal score would be infinite.
    normal = special.ndtri((share * held.total + 0.5) / (held.total + 1))
    return [float(z) for z in normal]
