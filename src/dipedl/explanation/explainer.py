"""Explain inputs: read each part of the density, and put what it says on a card per input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse, special
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from ..columns import (
    Inputs,
    by_row,
    column,
    column_texts,
    first_gaps,
    is_date,
    is_frame,
    missing_entries,
    new_levels,
)
from ..decisions.p_values import conformal_p_values
from ..decisions.pipelines import last_step_with
from ..dirichlet import most_probable
from ..features.pipelines import (
    input_sources,
    known_levels,
    names_after,
    sources_after,
    without_gaps,
)
from ..held_out import HeldOut
from ..inputs import encode_table_rows, one_thread, validate_rows
from ..maths.arrays import check_integer
from ..maths.scores import placements
from ..writing.text import plain_labels
from .cards import BaselineCard, Card, Cards

#: One row as one density sees it; "kind" says which entries there are.
Reading = dict[str, Any]

_PROBES = 200
_OVERFLOW = "a value that classifier, features or density cannot compute with"


def explain(clf: Any, X: Any, top: int = 5) -> list[Card]:
    """Explain the answer to each input of X (n, d).

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
        ``print(card)``, ``card.to_dict()``; a notebook shows the first ten.

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
    check_integer("top", top)
    cards: Cards = _cards(clf, X, top)
    rows = getattr(last_step_with("explain", clf)[0], "table_rows_", None)
    return cards if rows is None else Cards(card.with_row_numbers(rows) for card in cards)


def reasons(clf: Any, X: Any) -> list[str]:
    """Name the news in each row of X (n, d); else its least usual columns; else how rare it is.

    Of the parts of the density only the Gaussian that finds a row rarest is read.
    """
    cards = _cards(clf, X, 5, rarest_only=True)
    return [card.reason or card.summary().splitlines()[1].strip() for card in cards]


def _cards(clf: Any, X: Any, top: int, *, rarest_only: bool = False) -> Any:
    clf, before = last_step_with("explain", clf)
    X = encode_table_rows(clf, X) if before is None else X
    arriving = X if before is None else before.transform(validate_rows(X))
    if not clf.has_evidence:
        return _baseline_cards(clf, X, arriving, before, top)
    Z, proba, scores = clf.predict_parts(arriving)
    # Of a row that overflows there are no features, and nothing to read in them.
    overflows = np.isnan(Z).any(axis=1)
    Z = np.where(overflows[:, None], 0.0, Z)
    # The inputs of a network have no columns.
    rows = validate_rows(X) if hasattr(clf, "n_features_in_") else np.arange(len(Z))
    evidence_side = clf.evidence_
    if before is None and evidence_side.columns_ is not None:
        rows = evidence_side.columns_.restore_gaps(rows)
    held_out: HeldOut = evidence_side.held_out_
    P, alone = evidence_side.calibrate_proba(proba, scores), evidence_side.calibrate_in_full(proba)
    dirichlet = clf.dirichlet_of(P, scores)
    labels = clf.classes_[most_probable(dirichlet.concentration, P)]
    p_values = conformal_p_values(scores, held_out.scores, held_out.weights)
    columns = evidence_side.columns_
    user = UserColumns(clf, rows, before, Z, evidence_side.features_, columns)
    with one_thread(Z, blas=True):
        density_parts = _parts(clf, Z, proba)
        if rarest_only:
            parts = _rarest_gaussian(density_parts, user, top)
        else:
            rows_of_all = np.arange(len(Z))
            parts = list(
                zip(*(part.read(user, rows_of_all, top) for part in density_parts), strict=True)
            )
    news = user.news()
    with np.errstate(over="ignore"):
        evidence = np.exp(np.asarray(dirichlet.log_evidence))
    typical = held_out.quantile(0.5)
    return Cards(
        Card(
            class_names=_names(clf),
            label=str(labels[i]),
            classifier_proba=alone[i],
            dirichlet=dirichlet[i],
            evidence=float(evidence[i]),
            n=float(evidence_side.n_),
            p_value=float(p_values[i]),
            held_out=held_out.total,
            false_alarm_rate=float(clf.alarm_rate),
            score=float(scores[i]),
            typical_score=typical,
            parts=() if overflows[i] else parts[i],
            news=(*news[i], _OVERFLOW) if overflows[i] else tuple(news[i]),
        )
        for i in range(len(P))
    )


def _baseline_cards(clf: Any, X: Any, arriving: Any, before: Any, top: int) -> list[BaselineCard]:
    held_out: HeldOut = clf.held_out_rows()
    P, scores = clf.proba_and_scores(arriving)
    labels, typical = clf.predict(arriving), held_out.quantile(0.5)
    p_values = conformal_p_values(scores, held_out.scores, held_out.weights)
    dirichlet = clf.predict_dirichlet(arriving) if hasattr(clf, "predict_dirichlet") else None
    parts: list[tuple[Reading, ...]] = [()] * len(P)
    readable = getattr(clf, "readable_density", lambda rows: None)(arriving)
    if readable is not None:
        density, Z, features = readable
        user = UserColumns(clf, validate_rows(X), before, Z, features, None)
        readings = read_rows(density, Z, list(user.tokens), user.features_for(top))
        parts = [(user.in_columns(row, i, top),) for i, row in enumerate(readings)]
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
            held_out=held_out.total,
            false_alarm_rate=float(clf.alarm_rate),
            parts=parts[i],
        )
        for i in range(len(P))
    ]


class UserColumns:
    """The inputs X (n, d) of the user, and how the features Z (n, p) of the density hang on them.

    The steps `before` bring X to the model `clf`, and its `features` to Z; `columns` knows the
    usual values of the columns that arrive at the model.
    """

    def __init__(
        self,
        clf: Any,
        X: Any,
        before: Any,
        Z: np.ndarray,
        features: Any,
        columns: Inputs | None,
    ) -> None:
        self.X, self.before, self.Z, self.known = X, before, Z, columns
        fitted, p = clf if before is None else before, Z.shape[1]
        #: Names of the columns, those of the fit where X has none; none for texts and sparse rows.
        self.names: list[str] = []
        if not sparse.issparse(X) and len(getattr(X, "shape", ())) == 2:
            of_fit = None if is_frame(X) else getattr(fitted, "feature_names_in_", None)
            self.names = column_texts(X) if of_fit is None else list(map(str, of_fit))
        self.inputs = input_sources(len(self.names))
        start = sources_after(before, self.inputs) if self.names else None
        known = columns is not None and start is not None and len(columns.names) == len(start)
        #: Sources of the columns that arrive at the model, if it knows them.
        self.arriving = start if known and start is not None else []
        self._place = {source.column: j for j, source in enumerate(self.arriving)}
        last = None if start is None else sources_after(features, start)
        self.sources = last if last is not None and len(last) == p else None
        names = self.names if before is None else names_after(before, self.names or None)
        names = names if features is None else names_after(features, names)
        known_names = names is not None and len(names) == p
        self.features = names if known_names and names else [f"feature {j}" for j in range(p)]
        scaler = features[-1] if isinstance(features, Pipeline) else features
        #: The last step before the density, which is undone for readers.
        self.scaler = scaler if type(scaler) is StandardScaler else None
        #: A name for each feature that stands for no other, and the place of the feature.
        self.tokens = {f"feature {j}": j for j in range(p)}
        self._values: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def features_for(self, top: int) -> int:
        """Return how many features to read for the `top` columns: all, if a column has several."""
        columns = [source.columns for source in self.sources or []]
        return top if len(set(columns)) == len(columns) else max(top, len(columns))

    def news(self) -> list[list[str]]:
        """Return the values in each row that neither the fit nor the steps `before` saw."""
        n, columns = self.X.shape[0], self.known
        if self.before is None and columns is not None:
            return columns.describe_new(self.X)
        if self.before is None or not self.names:
            return [[] for _ in range(n)]
        news = [
            new_levels(self.names[c], column(self.X, c), levels)
            for c, levels in known_levels(self.before, self.inputs)
        ]
        gapless = set(without_gaps(self.before, self.inputs))
        # Columns whose gaps would arrive, and of which none arrived in the fit.
        shares = () if columns is None else columns.missing
        for source, share in zip(self.arriving, shares, strict=False):
            if source.column is not None and not source.filled and not share:
                gapless.add(source.column)
        news += [first_gaps(self.names[c], column(self.X, c)) for c in sorted(gapless)]
        return by_row(news, n)

    def in_columns(self, reading: Reading, i: int, top: int) -> Reading:
        """Put a reading of row i, with tokens for names, in the `top` columns of the user."""
        inner: Reading = {
            k: self.in_columns(v, i, top) for k, v in reading.items() if k == "background"
        }
        if "blocks" in reading:
            inner["blocks"] = [self.in_columns(block, i, top) for block in reading["blocks"][:top]]
        if "neighbours" in reading:
            inner["neighbours"] = reading["neighbours"][:top]
        if "features" in reading:
            entries = self._entries(reading["features"])
            # A column of many levels adds much for any of them.
            entries.sort(key=lambda entry: entry["expected"] - entry["contribution"])
            inner["features"] = [
                self._column(entry, i) if "column" in entry else self._feature(entry, i)
                for entry in entries[:top]
            ]
            others = (entry["contribution"] for entry in entries[top:])
            inner["rest"] = sum(others, reading["rest"])
        return reading | inner

    def _entries(self, features: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return features that are no column, and columns with what their features add."""
        others: list[dict[str, Any]] = []
        columns: dict[int, dict[str, Any]] = {}
        for entry in features:
            j = self.tokens.get(entry.get("name", ""))
            source = None if self.sources is None or j is None else self.sources[j]
            if source is None or len(source.columns) != 1 or source.words:
                others.append(entry | {"expected": 1.0})
            else:
                (c,) = source.columns
                if c not in columns:
                    columns[c] = {"column": c, "contribution": 0.0, "expected": 0.0}
                columns[c]["contribution"] += entry["contribution"]
                columns[c]["expected"] += 1.0
        return [*others, *columns.values()]

    def _feature(self, entry: dict[str, Any], i: int) -> dict[str, Any]:
        """Return the entry of a feature that is no column, before it was standardised."""
        j = self.tokens.get(entry.get("name", ""))
        if j is None:
            return entry
        entry |= {"name": self.features[j]}
        if self.scaler is None:
            return entry
        mean, scale = float(self.scaler.mean_[j]), float(self.scaler.scale_[j])
        return entry | {"value": float(self.Z[i, j]) * scale + mean, "mean": mean}

    def _column(self, entry: dict[str, Any], i: int) -> dict[str, Any]:
        """Return the entry of a column with its value in row i, and what is usual."""
        c = entry["column"]
        if c not in self._values:
            values = column(self.X, c)
            self._values[c] = np.asarray(values), missing_entries(values)
        values, gaps = self._values[c]
        value = None if gaps[i] else _plain(values[i])
        usual, share, unusual = "", None, False
        if self.known is not None and c in self._place:
            source, known = self.arriving[self._place[c]], self.known[self._place[c]]
            unit = source.back or float
            usual = known.describe_usual(unit)
            # Of filled gaps nothing tells how many there were.
            if not (source.filled and gaps[i]):
                share, unusual = known.share(value), known.is_unusual(value, unit)
        more = {"value": value, "usual": usual, "share": share, "unusual": unusual}
        return {"name": self.names[c], **entry, **more}


def _plain(value: Any) -> Any:
    """Return a number, a boolean or text; a date as text."""
    if isinstance(value, np.datetime64):
        return str(np.datetime_as_string(value, unit="auto"))
    value = value.item() if isinstance(value, np.generic) else value
    return str(value) if is_date(type(value)) else value


def _names(clf: Any) -> tuple[str, ...]:
    return tuple(map(str, plain_labels(np.asarray(clf.classes_))))


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of the density (None: the classifier), with its score of each row where known."""

    density: Any
    known: list[Reading]

    def read(self, user: UserColumns, rows: np.ndarray, top: int) -> list[Reading]:
        """Readings of these rows (m,) in the columns of the user."""
        names, most = list(user.tokens), user.features_for(top)
        readings = read_rows(self.density, user.Z[rows], names, most)
        numbered = zip(rows.tolist(), readings, strict=True)
        return [user.in_columns({**self.known[i], **reading}, i, top) for i, reading in numbered]


def _rarest_gaussian(parts: list[_Part], user: UserColumns, top: int) -> list[tuple[Reading, ...]]:
    """Read for each row the Gaussian with the lowest normal score alone, if there is one."""
    readings: list[tuple[Reading, ...]] = [()] * len(user.Z)
    # A density gives readings of one kind for all rows.
    one = np.arange(min(1, len(user.Z)))
    gaussians = [p for p in parts if [r["kind"] for r in p.read(user, one, 1)] == ["gaussian"]]
    if gaussians:
        scores = [[known.get("normal_score") or 0.0 for known in p.known] for p in gaussians]
        rarest = np.argmin(scores, axis=0)
        for c in np.unique(rarest):
            rows = np.flatnonzero(rarest == c)
            for i, reading in zip(rows.tolist(), gaussians[c].read(user, rows, top), strict=True):
                readings[i] = (reading,)
    return readings


def _parts(clf: Any, Z: np.ndarray, proba: np.ndarray) -> list[_Part]:
    """Return each part of the density, with the parts' scores of the rows if there are several."""
    density, held_out = clf.evidence_.density_, clf.evidence_.held_out_
    members = getattr(density, "estimators_", None)
    if members is None:
        return [_Part(density, [{}] * len(Z))]
    by_classifier = set(density.component_names_) - set(members)
    scored = density.component_scores(Z, proba if by_classifier else None)
    parts = []
    for name in density.component_names_:
        known: list[Reading] = [
            {"part": name, "score": float(s), **({} if z is None else {"normal_score": z})}
            for s, z in zip(scored[name], _normal_scores(held_out, name, scored[name]), strict=True)
        ]
        parts.append(_Part(members.get(name), known))
    return parts


def _normal_scores(held_out: HeldOut, name: str, scores: np.ndarray) -> list[float | None]:
    """Return the normal score of each score's rank among the held-out ones of the same part."""
    if held_out.components is None or name not in held_out.component_names:
        return [None] * len(scores)
    column = held_out.components[:, held_out.component_names.index(name)]
    share = placements(column, scores, held_out.weights)
    # One row's half stays at either end, where a normal score would be infinite.
    normal = special.ndtri((share * held_out.total + 0.5) / (held_out.total + 1))
    return [float(z) for z in normal]


def read_rows(density: Any, Z: np.ndarray, names: list[str] | None, top: int) -> list[Reading]:
    """Return a reading for each row of features Z (n, p) with these names.

    A pipeline is followed to its last step, a ratio to both of its parts, a sum to its lowest
    blocks; a density with ``explain_rows(Z, top)`` names the `top` features, one with
    ``neighbors(Z)`` as many training rows; of any other there is only the score.
    """
    if isinstance(density, FrozenEstimator):
        return read_rows(density.estimator, Z, names, top)
    if isinstance(density, Pipeline):
        before = density[:-1]
        return read_rows(density[-1], before.transform(Z), names_after(before, names), top)
    if hasattr(density, "explain_rows"):
        return [_with_names(row, names) for row in density.explain_rows(Z, top)]
    if hasattr(density, "blocks_"):
        return _blocks(density, Z, names, top)
    if hasattr(density, "background_"):
        near = read_rows(density.density_, Z, names, top)
        far = read_rows(density.background_, Z, names, top)
        return [{**a, "background": b} for a, b in zip(near, far, strict=True)]
    if hasattr(density, "neighbors"):
        return _neighbours(density, Z, top)
    return [{"kind": "score"} for _ in Z]


def _blocks(density: Any, Z: np.ndarray, names: list[str] | None, top: int) -> list[Reading]:
    """Return the blocks that add least, each with its own reading."""
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
    # The distance of some training rows to their k-th nearest other row.
    index, k = density.neighbors_, density.n_neighbors_
    some = index._fit_X[:: -(-len(index._fit_X) // _PROBES)]
    among, _ = index.kneighbors(some, n_neighbors=min(k + 1, len(index._fit_X)))
    typical = float(np.median(among[:, -1]))
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


def _with_names(row: Reading, names: list[str] | None) -> Reading:
    if names is None or "features" not in row:
        return row
    features = [
        entry if "name" in entry else {"name": names[entry["feature"]], **entry}
        for entry in row["features"]
    ]
    return {**row, "features": features}
