"""Cards of inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from ..calibration.held_out import HeldOut
from ..decisions.p_values import conformal_p_values
from ..evidence import weighted_quantile
from ..inputs import last_step_with, validate_rows
from ..maths.scores import most_probable, placements
from ..writing.numbers import plain_labels
from ._baseline_card import BaselineCard
from ._card import Card, Cards
from ._in_columns import UserColumns, row_news, user_columns
from ._readings import Reading, read_rows

_MEDIAN = 0.5
_OVERFLOW = "a value that classifier, features or density cannot compute with"


@dataclass(frozen=True, eq=False)
class Behind:
    """What stands behind the scores of a baseline, for its cards.

    Attributes
    ----------
    density : object or None
        What `read_rows` can read; None where there is no density.
    Z : ndarray, shape (n, p), or None
        Features of the inputs that the density sees.
    features : transformer or None
        What makes them of the inputs.
    """

    density: Any = None
    Z: np.ndarray | None = None
    features: Any = None


def explain(clf: Any, X: Any, top: int = 5) -> list[Card]:
    """Why each input of X (n, d) got its answer.

    Parameters
    ----------
    clf : DIPClassifier, DIPModule or a baseline
        Fitted; or a pipeline or search that ends in a classifier.
    X : array-like or DataFrame, shape (n, d); or a batch of the module's network
        Inputs, for a pipeline those that its first step takes.
    top : int, default=5
        Features or neighbours named on a card, >= 1.

    Returns
    -------
    list of Card, or of `BaselineCard` for a baseline, length n
        ``print(card)``, ``card.to_dict()``; of a `Card` also ``card.plot()``. A notebook shows the
        first ten.

    Raises
    ------
    ValueError
        If `top` is no int, or less than 1.
    NotFittedError
        If `clf` is not fitted, or is a baseline without held-out rows.
    TypeError
        If it is another model.

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
    if not (isinstance(top, int | np.integer) and top >= 1):
        raise ValueError(f"top must be an int >= 1, got {top!r}")
    cards: list[Card] = _cards(clf, X, top, _all_parts)
    return cards


def explain_rarest(clf: Any, X: Any) -> list[Card]:
    """As `explain`, but each card has one part at most: the Gaussian that finds the row rarest."""
    cards: list[Card] = _cards(clf, X, 5, _rarest_gaussian)
    return cards


def _cards(clf: Any, X: Any, top: int, read: Read) -> Any:
    clf, before = last_step_with("explain", clf)
    arriving = X if before is None else before.transform(validate_rows(X))
    if not clf._has_evidence:
        return _baseline_cards(clf, X, arriving, before, top)
    Z, proba, scores = clf._seen(arriving)
    # Of a row that overflows there are no features, and nothing to read in them.
    unknown = np.isnan(Z).any(axis=1)
    Z = np.where(unknown[:, None], 0.0, Z)
    # The inputs of a network have no columns.
    given = validate_rows(X) if hasattr(clf, "n_features_in_") else np.arange(len(Z))
    evidence_side = clf.evidence_
    held: HeldOut = evidence_side.held_out_
    P = evidence_side.calibrated(proba, scores)
    dirichlet = clf._dirichlet(P, scores)
    labels = clf.classes_[most_probable(dirichlet.concentration, P)]
    p_values = conformal_p_values(scores, held.scores, held.weights)
    columns = evidence_side.columns_
    user = user_columns(clf, given, before, Z, evidence_side.features_, columns)
    parts = read(_parts(clf, Z, proba), user, top)
    news = row_news(columns, given, before)
    with np.errstate(over="ignore"):
        evidence = np.exp(np.asarray(dirichlet.log_evidence))
    typical = weighted_quantile(held.scores, _MEDIAN, held.weights)
    return Cards(
        Card(
            class_names=_names(clf),
            label=str(labels[i]),
            classifier_proba=P[i],
            dirichlet=dirichlet[i],
            evidence=float(evidence[i]),
            n=float(evidence_side.n_),
            p_value=float(p_values[i]),
            held_out=held.total,
            false_alarm_rate=float(clf._alarm_rate),
            score=float(scores[i]),
            typical_score=typical,
            parts=() if unknown[i] else parts[i],
            news=(*news[i], _OVERFLOW) if unknown[i] else tuple(news[i]),
        )
        for i in range(len(P))
    )


def _baseline_cards(clf: Any, X: Any, arriving: Any, before: Any, top: int) -> list[BaselineCard]:
    held: HeldOut = clf._held_out_rows()
    P, scores = clf._proba_and_scores(arriving)
    labels, typical = clf.predict(arriving), weighted_quantile(held.scores, _MEDIAN, held.weights)
    p_values = conformal_p_values(scores, held.scores, held.weights)
    dirichlet = clf.predict_dirichlet(arriving) if hasattr(clf, "predict_dirichlet") else None
    behind: Behind = clf._behind(arriving)
    readings: list[tuple[dict[str, Any], ...]] = [()] * len(P)
    if behind.density is not None and behind.Z is not None:
        user = user_columns(clf, validate_rows(X), before, behind.Z, behind.features, None)
        read = read_rows(behind.density, behind.Z, list(user.tokens), user.features_for(top))
        readings = [(user.in_columns(row, i, top),) for i, row in enumerate(read)]
    return [
        BaselineCard(
            method=type(clf).__name__,
            class_names=_names(clf),
            label=str(labels[i]),
            proba=P[i],
            dirichlet=None if dirichlet is None else dirichlet[i],
            uncertainty=-float(scores[i]),
            typical_uncertainty=-typical,
            p_value=float(p_values[i]),
            held_out=held.total,
            false_alarm_rate=float(clf._alarm_rate),
            parts=readings[i],
        )
        for i in range(len(P))
    ]


def _names(clf: Any) -> tuple[str, ...]:
    return tuple(map(str, plain_labels(np.asarray(clf.classes_))))


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of the density (none for the classifier), and what is known of it without reading."""

    density: Any
    known: list[Reading]

    def rarity(self) -> np.ndarray:
        """Normal score of each row, 0 where there is none, shape (n,)."""
        return np.array([known.get("normal_score") or 0.0 for known in self.known])

    def read(self, user: UserColumns, rows: np.ndarray, top: int) -> list[Reading]:
        """Readings of these rows (m,) in the columns of the user."""
        names, most = list(user.tokens), user.features_for(top)
        plain: list[Reading] = [{"kind": "score"} for _ in rows]
        readings = (
            plain if self.density is None else read_rows(self.density, user.Z[rows], names, most)
        )
        found = zip(rows.tolist(), readings, strict=True)
        return [user.in_columns({**self.known[i], **reading}, i, top) for i, reading in found]


#: Readings of parts for each row, by features of the user's columns and the number wanted.
Read = Callable[[list[_Part], UserColumns, int], list[tuple[Reading, ...]]]


def _all_parts(parts: list[_Part], user: UserColumns, top: int) -> list[tuple[Reading, ...]]:
    rows = np.arange(len(user.Z))
    return list(zip(*(part.read(user, rows, top) for part in parts), strict=True))


def _rarest_gaussian(parts: list[_Part], user: UserColumns, top: int) -> list[tuple[Reading, ...]]:
    """Of each row the Gaussian with the lowest normal score, if there is one; no other is read."""
    found: list[tuple[Reading, ...]] = [()] * len(user.Z)
    # A density says the same kind of thing about every row.
    one = np.arange(min(1, len(user.Z)))
    fit = [part for part in parts if [r["kind"] for r in part.read(user, one, 1)] == ["gaussian"]]
    if fit:
        rarest = np.argmin([part.rarity() for part in fit], axis=0)
        for c in np.unique(rarest):
            rows = np.flatnonzero(rarest == c)
            for i, reading in zip(rows.tolist(), fit[c].read(user, rows, top), strict=True):
                found[i] = (reading,)
    return found


def _parts(clf: Any, Z: np.ndarray, proba: np.ndarray) -> list[_Part]:
    """Each part of the density, with the parts' scores of the rows if there are several."""
    density, held = clf.evidence_.density_, clf.evidence_.held_out_
    members = getattr(density, "estimators_", None)
    if members is None:
        return [_Part(density, [{}] * len(Z))]
    by_classifier = set(density.component_names_) - set(members)
    scored = density.component_scores(Z, proba if by_classifier else None)
    return [_part(held, name, members.get(name), scored[name]) for name in density.component_names_]


def _part(held: HeldOut, name: str, density: Any, scores: np.ndarray) -> _Part:
    normal = _normal_scores(held, name, scores)
    known: list[Reading] = [
        {"part": name, "score": float(s), **({} if z is None else {"normal_score": z})}
        for s, z in zip(scores, normal, strict=True)
    ]
    return _Part(density, known)


def _normal_scores(held: HeldOut, name: str, scores: np.ndarray) -> list[float | None]:
    """Standard-normal score of each score's rank among the held-out ones of the same part."""
    if held.components is None or name not in held.component_names:
        return [None] * len(scores)
    column = held.components[:, held.component_names.index(name)]
    share = placements(column, scores, held.weights)
    # One row's half stays at either end, where a normal score would be infinite.
    normal = special.ndtri((share * held.total + 0.5) / (held.total + 1))
    return [float(z) for z in normal]
