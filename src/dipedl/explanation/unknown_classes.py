"""Rehearsal of unknown classes: each class is left out of a fit in turn, and asked about."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from ..calibration.crossfit import pairs_among, row_hash, splitter_pairs
from ..columns import as_numbers
from ..decisions.pipelines import last_step
from ..density.base import is_frozen
from ..density.ensemble import default_candidates
from ..density.gaussian import RelativeDensity
from ..density.knn import KNNDensity
from ..evidence import RankNormal, alarm_threshold
from ..inputs import encode_table_rows, one_thread, validate_training_rows
from ..maths.arrays import check_flag, check_integer
from ..maths.scores import wilson
from ..maths.seeds import seed
from ..protocols import optional
from ..writing import notebook
from ..writing.finding import Finding, Number
from ..writing.progress import Stopwatch
from ..writing.text import percent, plain_labels

__all__ = ["UnknownRehearsal", "rehearse_unknown"]

#: What flags a row: the model, and what needs no density, or no classifier.
METHODS = ("dipedl", "max probability", "neighbours of features", "neighbours of inputs")
#: Rows of a class below which its share says nothing, and rows that a fit needs.
_FEWEST, _FEWEST_ROWS = 10, 100
#: Which neighbour; held-out rows that its threshold comes from, at most; folds of groups for it.
_NEIGHBOUR, _HELD_OUT, _GROUP_FOLDS = 5, 5_000, 20
#: Classes that a finding names at each end.
_NAMED = 2
#: Pixels of a bar in a notebook.
_BAR = 110
#: Neighbours are advised if they flag more by so much.
_CLEARLY_MORE = 0.05


@dataclass(frozen=True, eq=False)
class UnknownRehearsal:
    """Shares of rows that are flagged if their class is unknown, from fits without each class.

    Attributes
    ----------
    classes : tuple of str, length c
        Names of the classes, or of the groups of classes, that were left out in turn.
    rows : ndarray of int, shape (c,)
        Rows of each that were asked about.
    flagged : ndarray of int, shape (c, m)
        How many of them were flagged by each method.
    methods : tuple of str, length m
        The model; the largest probability of its classifier alone; the distance to the fifth
        nearest training row in the features of its density, and, if all inputs are numbers, in the
        inputs as they are.
    false_alarm_rate : float
        Share of known rows that each method may flag.
    skipped : dict of str to int
        Classes of too few rows to be asked about, with these.
    candidates : tuple of str, length s
        Settings that were compared with those of the model, as arguments of `DIPClassifier`; empty
        without ``select=True``.
    flagged_by_candidates : ndarray of int, shape (c, s), or None
        How many rows of each class the model flags with each of them.

    See Also
    --------
    dipedl.plots.UnknownRehearsalDisplay : a picture of it.
    """

    classes: tuple[str, ...]
    rows: np.ndarray
    flagged: np.ndarray
    methods: tuple[str, ...]
    false_alarm_rate: float
    skipped: dict[str, int]
    candidates: tuple[str, ...] = ()
    flagged_by_candidates: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.classes)

    @property
    def shares(self) -> np.ndarray:
        """Share of the rows of each class that is flagged by each method, shape (c, m)."""
        return np.asarray(self.flagged / self.rows[:, None])

    @property
    def mean(self) -> np.ndarray:
        """Mean of the shares over the classes, shape (m,)."""
        return np.asarray(self.shares.mean(axis=0))

    @property
    def choice(self) -> str | None:
        """Candidate to take; "" for the model as it is; None without ``select=True``.

        The one of the largest mean share; "" unless candidates that are chosen by the other classes
        flag more of each class than the model does, in the mean.
        """
        if not self.candidates:
            return None
        better = self.mean_of_chosen > self.mean[0]
        best = int(self._shares_to_compare.mean(axis=0).argmax())
        return ("", *self.candidates)[best if better else 0]

    @property
    def mean_of_chosen(self) -> float:
        """Mean share of a class that the settings flag which all other classes would choose.

        Unlike the mean of `choice`, it isn't optimistic: no class takes part in its own choice.
        """
        shares = self._shares_to_compare
        others = shares.sum(axis=0) - shares
        return float(shares[np.arange(len(self)), others.argmax(axis=1)].mean())

    @property
    def _shares_to_compare(self) -> np.ndarray:
        """Shares flagged by the model as it is, and by each candidate, shape (c, 1 + s)."""
        flagged = np.column_stack([self.flagged[:, 0], np.asarray(self.flagged_by_candidates)])
        return np.asarray(flagged / self.rows[:, None])

    def intervals(self) -> tuple[np.ndarray, np.ndarray]:
        """Return both ends (c, m) of Wilson's 95% intervals of the shares of a class's rows."""
        low, high = wilson(self.shares, self.rows[:, None])
        return low, high

    def to_frame(self) -> Any:
        """Return a table of pandas with a row for each class: rows, and share and ends by method.

        Columns are "rows", and of each method such as "dipedl" also "dipedl low" and "dipedl high".
        """
        pandas = optional("pandas", "to_frame")
        columns: dict[str, np.ndarray] = {"rows": self.rows}
        for j, name in enumerate(self.methods):
            for end, values in zip(("", " low", " high"), self._ends(), strict=True):
                columns[f"{name}{end}"] = values[:, j]
        return pandas.DataFrame(columns, index=pandas.Index(self.classes, name="class"))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that ``json.dump`` takes."""
        low, high = self.intervals()
        selection = {}
        if self.candidates:
            means = self._shares_to_compare.mean(axis=0).tolist()[1:]
            selection = {
                "candidates": dict(zip(self.candidates, means, strict=True)),
                "choice": self.choice,
                "mean_of_chosen": self.mean_of_chosen,
            }
        return {
            "false_alarm_rate": self.false_alarm_rate,
            "classes": [
                {"class": name, "rows": int(self.rows[i])}
                | {
                    method: {
                        "flagged": float(self.shares[i, j]),
                        "interval": [float(low[i, j]), float(high[i, j])],
                    }
                    for j, method in enumerate(self.methods)
                }
                for i, name in enumerate(self.classes)
            ],
            "skipped": dict(self.skipped),
        } | selection

    def finding(self) -> Finding:
        """Return the finding of it that a diagnosis holds."""
        shares, (low, high) = self.shares[:, 0], self.intervals()
        order = self._order()
        named = [
            f"{self.classes[i]!r} {percent(shares[i])} {_interval(low[i, 0], high[i, 0])}"
            for i in dict.fromkeys([*order[:_NAMED], *order[::-1][:_NAMED]])
        ]
        near = self.mean[2:].max()
        compared: dict[str, Number] = {}
        if self.candidates:
            compared["choice"] = self.choice or ""
            compared["mean_flagged_if_chosen_by_other_classes"] = self.mean_of_chosen
        numbers: dict[str, Number] = {
            "classes": len(self),
            "mean_flagged": float(self.mean[0]),
            "mean_flagged_by_max_probability": float(self.mean[1]),
            "mean_flagged_by_nearest_neighbours": float(near),
            "least_flagged": float(shares.min()),
            "least_flagged_class": self.classes[order[0]],
            "false_alarm_rate": self.false_alarm_rate,
            **compared,
        }
        text = (
            f"Fitted without a class, the model flags {percent(self.mean[0])} of its rows in the "
            f"mean over {len(self)} classes, at {100 * self.false_alarm_rate:g}% false alarms (max "
            f"probability alone {percent(self.mean[1])}, nearest neighbours {percent(near)}): "
            f"{', '.join(named)}."
        )
        return Finding("unknown_classes", "note", text, numbers, self._remedy())

    def __str__(self) -> str:
        """Return a page for readers, the class that is flagged least first."""
        head = ["class", "rows", *self.methods]
        lines = [head, *self._cells()]
        widths = [max(len(line[j]) for line in lines) for j in range(len(head))]
        table = "\n".join(
            "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )
        compared = ""
        if self.candidates:
            means = "\n".join(f"{share:>5}  {name}" for share, name in self._compared())
            compared = f"\n\nMean share with other densities\n\n{means}\n\n{self._advice()}"
        return f"{self._caption()}\n\n{table}{self._skipped()}{compared}"

    def _repr_html_(self) -> str:
        """Return the page for a notebook, with bars."""
        shares, low, high = self._ends()
        rows = []
        for i in self._order():
            cells = [
                notebook.bar(name, share, left, right, _BAR) + percent(share)
                for name, share, left, right in zip(
                    self.methods, shares[i], low[i], high[i], strict=True
                )
            ]
            rows.append([escape(self.classes[i]), f"{self.rows[i]:,}", *cells])
        head = ["class", "rows", *self.methods]
        parts = [notebook.table(self._caption(), head, rows)]
        if self.skipped:
            parts.append(f"<p>{escape(self._skipped().strip())}</p>")
        if self.candidates:
            compared = [[share, escape(name)] for share, name in self._compared()]
            parts.append(
                notebook.table("Mean share with other densities", ["flagged", "settings"], compared)
            )
            parts.append(f"<p>{escape(self._advice())}</p>")
        return notebook.frame(*parts)

    def _compared(self) -> list[tuple[str, str]]:
        """Return the mean share flagged by the model as it is, and by each candidate."""
        means = self._shares_to_compare.mean(axis=0)
        return list(zip(map(percent, means), ("as it is", *self.candidates), strict=True))

    def _advice(self) -> str:
        """Return which candidate to take, and how much it flags of a class of no say in it."""
        honest = f"what the other classes choose flags {percent(self.mean_of_chosen)} of a class"
        if not self.choice:
            return f"Leave the density as it is: {honest}."
        means = self._shares_to_compare.mean(axis=0)
        return (
            f"Take {self.choice}: it flags {100 * (means.max() - means[0]):.1f} points more. A "
            f"number by which something was chosen is optimistic: {honest}."
        )

    def _remedy(self) -> str:
        """Return what to try if nearest neighbours, or a candidate, flag clearly more."""
        if self.candidates:
            return f"Give {self.choice}." if self.choice else ""
        best = int(self.mean.argmax())
        if best < 2 or self.mean[best] < self.mean[0] + _CLEARLY_MORE:
            return ""
        inputs = ", features='passthrough'" * (best == METHODS.index("neighbours of inputs"))
        return (
            f"Compare density=KNNDensity({_NEIGHBOUR}){inputs}, as rehearse_unknown does with "
            "select=True; numbers by which something was chosen are optimistic."
        )

    def _ends(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.shares, *self.intervals()

    def _order(self) -> list[int]:
        return [int(i) for i in np.argsort(self.shares[:, 0], kind="stable")]

    def _cells(self) -> list[list[str]]:
        shares, low, high = self._ends()
        lines = [
            [self.classes[i], f"{self.rows[i]:,}"]
            + [
                f"{percent(shares[i, j])} {_interval(low[i, j], high[i, j])}"
                for j in range(len(self.methods))
            ]
            for i in self._order()
        ]
        return [*lines, ["mean", "", *map(percent, self.mean)]]

    def _caption(self) -> str:
        return (
            "Share flagged of a class that the fit did not have, at "
            f"{100 * self.false_alarm_rate:g}% false alarms, with 95% intervals"
        )

    def _skipped(self) -> str:
        named = ", ".join(f"{name!r} ({n})" for name, n in self.skipped.items())
        return f"\n\nNot asked about, with fewer than {_FEWEST} rows: {named}." if named else ""


def _interval(low: float, high: float) -> str:
    return f"[{100 * low:.0f}, {100 * high:.0f}]"


def rehearse_unknown(
    clf: Any,
    X: Any,
    y: Any,
    groups: Any = None,
    *,
    classes: Mapping[str, Sequence[Any]] | Iterable[Any] | None = None,
    max_rows: int | None = None,
    n_jobs: int | None = None,
    select: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> UnknownRehearsal:
    """Estimate how much of an unknown class a model would flag, by leaving each class out in turn.

    The model (classifier, features, density, thresholds) is fitted anew to the rows of the other
    classes, and asked about those of the class. The classifier's largest probability alone and the
    distance to the nearest training rows are asked at the same rate of false alarms.

    Parameters
    ----------
    clf : DIPClassifier
        Its settings are used; it need not be fitted.
    X, y : array-like or DataFrame, shape (n, d), and array-like, shape (n,)
        In-distribution inputs and their labels, as for ``fit``.
    groups : array-like, shape (n,), optional
        Person, device or site of each row, as for ``fit``.
    classes : list of labels, or dict of str to list of labels, optional
        Classes to leave out, one at a time; or groups of classes by name, such as product families,
        each left out as a whole. Default: every class.
    max_rows : int, optional
        Rows of a fit, and of a class that is asked about, at most; at least 100. A fit keeps the
        shares of the classes. Which rows depends on what they hold, not on their order.
    n_jobs : int, optional
        Fits that run at a time, as in joblib; default: that of `clf`.
    select : bool, default=False
        Compare densities too: those that the default fuses, but for the ones that are blind to
        distance, and nearest neighbours of the inputs as they are. Each is fitted without each
        class; the classifier isn't fitted again. The result says which one to give the model.
    progress : callable, optional
        Called with the number of classes that are done and that of all, first with 0.

    Returns
    -------
    UnknownRehearsal
        ``print`` and a notebook show a page; ``to_frame()`` is a table.

    Raises
    ------
    ValueError
        If fewer than two classes would be left; if no class has ten rows; if the classifier or the
        density is frozen, which has learned from every class; if an argument is out of range; with
        `select`, if only one class is left out.

    Notes
    -----
    It costs a fit of `clf` for each class. An estimate holds for classes like those at hand: a new
    one may be nearer to the known ones, or farther. It informs; a setting that is chosen by it
    makes it optimistic. Transformers in `FrozenEstimator` are used as they are.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl import DIPClassifier
    >>> from dipedl.density import GDADensity
    >>> from dipedl.explanation import rehearse_unknown
    >>> X, y = load_iris(return_X_y=True)
    >>> found = rehearse_unknown(DIPClassifier(density=GDADensity()), X, y)
    >>> found.classes, found.flagged[:, 0].tolist()
    (('0', '1', '2'), [50, 33, 46])
    """
    check_flag("select", select)
    clf, before = last_step(clf)
    _refuse_frozen(clf)
    X = encode_table_rows(clf, X if before is None else before.transform(X))
    X, y, _, groups, _ = validate_training_rows(clone(clf), X, y, groups=groups)
    if max_rows is not None and check_integer("max_rows", max_rows) < _FEWEST_ROWS:
        raise ValueError(f"max_rows must be at least {_FEWEST_ROWS}, got {max_rows}")
    left_out = _classes_to_leave_out(y, classes)
    numbers = {name: int(np.isin(y, labels).sum()) for name, labels in left_out.items()}
    skipped = {name: n for name, n in numbers.items() if n < _FEWEST}
    left_out = {name: labels for name, labels in left_out.items() if name not in skipped}
    if select and len(left_out) == 1:
        raise ValueError(
            f"select=True chooses for a class by the others, and {next(iter(left_out))!r} is the "
            "only one that is left out: name more classes, or leave out select"
        )
    if not left_out:
        raise ValueError(
            f"a class must have at least {_FEWEST} rows to be asked about, and y has none: "
            f"{skipped}; give more rows"
        )
    number = seed(clf.random_state)
    # In an order that depends on what rows hold and not on where they stand.
    order = np.argsort(row_hash(X, number), kind="stable")
    if groups is not None:
        order = order[np.argsort(np.random.default_rng(number).permutation(groups.max() + 1)
                                 [groups[order]], kind="stable")]  # fmt: skip
    jobs = []
    for labels in left_out.values():
        out = np.isin(y[order], labels)
        known, unknown = order[~out], order[out]
        if max_rows is not None:
            known = _first_rows(known, y, groups, max_rows)
            unknown = unknown[:max_rows]
        jobs.append((np.sort(known), unknown))  # as given, for a splitter that goes by time
    watch = Stopwatch(clf.verbose)
    most = max(len(known) for known, _ in jobs)
    watch.say(f"{len(jobs)} classes are left out in turn, each of a fit to {most} rows at most")
    if progress is not None:
        progress(0, len(jobs))
    counts, methods, n_jobs = [], METHODS, clf.n_jobs if n_jobs is None else n_jobs
    fits = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_flag_left_out)(clf, X, y, groups, *rows, select) for rows in jobs
    )
    compared: list[dict[str, int]] = []
    for counted, by_candidates in fits:
        counts.append([*counted.values()])
        methods = tuple(counted)
        compared.append(by_candidates)
        watch.say(f"{len(counts)} of {len(jobs)} classes left out")
        if progress is not None:
            progress(len(counts), len(jobs))
    rows = np.array([len(unknown) for _, unknown in jobs])
    found = UnknownRehearsal(
        tuple(left_out), rows, np.array(counts), methods, float(clf.false_alarm_rate), skipped
    )
    # One that cannot be fitted without a class is no candidate.
    names = [name for name in compared[0] if all(name in flagged for flagged in compared)]
    if not names:
        return found
    by_candidates = np.array([[flagged[name] for name in names] for flagged in compared])
    return replace(found, candidates=tuple(names), flagged_by_candidates=by_candidates)


def _refuse_frozen(clf: Any) -> None:
    """Raise ValueError if the classifier or the density has learned from every class already."""
    for part, frozen in (
        ("classifier", isinstance(clf.estimator, FrozenEstimator)),
        ("density", clf.density is not None and is_frozen(clf.density)),
    ):
        if frozen:
            raise ValueError(
                f"the {part} is frozen and has learned from every class: none is unknown to it, "
                f"and it cannot be fitted anew. Give the {part} unfitted, or rows of a class that "
                "it has never seen to predict_ood"
            )


def _classes_to_leave_out(y: np.ndarray, classes: Any) -> dict[str, list[Any]]:
    """Return the labels to leave out at a time, by name; ValueError if fewer than two are left."""
    known = np.unique(y)
    if len(known) == 2:
        raise ValueError(
            f"y has two classes, {known.tolist()}: with one left out there is nothing to classify. "
            "Give labels of three classes or more, such as finer ones, or rows of neither class to "
            "predict_ood"
        )
    if classes is None:
        return dict(zip(map(str, plain_labels(known)), ([c] for c in known.tolist()), strict=True))
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise TypeError(f"classes must be a list of labels or a dict of lists, got {classes!r}")
    named = classes if isinstance(classes, Mapping) else {str(c): [c] for c in classes}
    places = {label: label for label in known.tolist()}
    found: dict[str, list[Any]] = {}
    for name, labels in named.items():
        labels = list(np.atleast_1d(np.asarray(labels)).tolist())
        strange = [label for label in labels if label not in places]
        if strange or not labels:
            raise ValueError(
                f"classes must hold labels of y, which are {known.tolist()[:10]}, got "
                f"{strange or 'none'} for {name!r}"
            )
        if len(known) - len(set(labels)) < 2:
            raise ValueError(
                f"classes must leave two classes or more, and without {name!r} "
                f"{len(known) - len(set(labels))} of {len(known)} are left: leave fewer out at once"
            )
        found[str(name)] = labels
    if not found:
        raise ValueError("classes must name a class to leave out, got none; None takes all")
    return found


def _first_rows(
    rows: np.ndarray, y: np.ndarray, groups: np.ndarray | None, most: int
) -> np.ndarray:
    """Return the first of the rows (m,), of each class its share; or those of the first groups."""
    if len(rows) <= most:
        return rows
    if groups is not None:
        return rows[np.isin(groups[rows], groups[rows[:most]])]
    classes, place, counts = np.unique(y[rows], return_inverse=True, return_counts=True)
    share = np.maximum(2, np.floor(counts * most / len(rows)))
    rank = np.empty(len(rows), dtype=int)
    for c in range(len(classes)):
        rank[place == c] = np.arange(counts[c])
    return rows[rank < share[place]]


def _flag_left_out(
    clf: Any, X: Any, y: np.ndarray, groups: Any, known: np.ndarray, unknown: np.ndarray,
    select: bool,
) -> tuple[dict[str, int], dict[str, int]]:  # fmt: skip
    """Fit to the `known` rows; count the `unknown` ones that each method flags, and candidate."""
    classes, counts = np.unique(y[known], return_counts=True)
    known = known[np.isin(y[known], classes[counts > 1])]
    prior = np.asarray(clf.prior)
    if prior.ndim == 1:
        prior = prior[np.isin(np.unique(y), y[known])]
    settings = {"cv": pairs_among(clf.cv, known), "n_jobs": None, "verbose": 0}
    settings |= {"prior": prior} if prior.ndim == 1 else {}
    model = clone(clf).set_params(**settings)
    inputs, new = _safe_indexing(X, known), _safe_indexing(X, unknown)
    own = None if groups is None else np.unique(groups[known], return_inverse=True)[1]
    try:
        # Those of the fit to all classes are said there. A filter would not do: threads of a forest
        # may reset it.
        with warnings.catch_warnings(record=True):
            model.fit(inputs, y[known], **({} if own is None else {"groups": own}))
            Z, P, scores = model.predict_parts(new)
            learned = model.evidence_.transform(inputs)
    except Exception as error:
        out = np.unique(y[unknown]).tolist()
        error.add_note(f"this was a fit without class {', '.join(map(repr, out))}, left out by "
                       "rehearse_unknown")  # fmt: skip
        raise
    held_out, rate = model.evidence_.held_out_, float(clf.false_alarm_rate)
    bare = held_out.before_calibration().proba
    doubtful = P.max(axis=1) < alarm_threshold(bare.max(axis=1), rate, held_out.weights)
    flagged = dict(zip(METHODS, (scores < model.offset_, doubtful), strict=False))
    spaces = [(learned, Z)]
    if (numbers := as_numbers(inputs)) is not None and np.isfinite(numbers).all():
        spaces.append((numbers, as_numbers(new)))
    for name, (rows, asked) in zip(METHODS[2:], spaces, strict=False):
        usual, distance = _distances(rows, asked, y[known], own)
        flagged[name] = -distance < alarm_threshold(-usual, rate)
    found_by: dict[str, np.ndarray] = {}
    if select:
        numeric = len(spaces) == 2
        found_by = _flag_by_candidates(model, inputs, y[known], own, new, numeric)
    by_methods, by_candidates = (
        {name: int(rows.sum()) for name, rows in found.items()} for found in (flagged, found_by)
    )
    return by_methods, by_candidates


def _flag_by_candidates(
    model: Any, X: Any, y: np.ndarray, groups: np.ndarray | None, new: Any, numeric: bool
) -> dict[str, np.ndarray]:
    """Return which rows of `new` the fitted model flags with each candidate that can be fitted."""
    several = [
        {"density": density}
        for _, density in default_candidates()
        if not isinstance(density, Pipeline | RelativeDensity)  # blind to distance
    ]
    several += [{"density": KNNDensity(_NEIGHBOUR), "features": "passthrough"}] * numeric
    flagged = {}
    for settings in several:
        # The score of a single density does not depend on the classifier.
        evidence = model.evidence_model().set_params(normalizer=RankNormal(), **settings)
        name = ", ".join(f"{key}={value!r}" for key, value in settings.items())
        with warnings.catch_warnings(record=True):
            try:
                evidence.fit(X, y, groups, estimator=model.estimator)
            except (ValueError, FloatingPointError, MemoryError):
                continue
            flagged[name] = evidence.predict(new)[2] < evidence.offset_
    return flagged


def _distances(
    Z: np.ndarray, new: np.ndarray, y: np.ndarray, groups: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Distances to the fifth nearest of the rows Z (n, p): of these themselves, of `new` (m, p).

    No row is its own neighbour, nor one of its group. A row without finite features is far.
    """
    k = min(_NEIGHBOUR, len(Z) - 1)
    finite = np.isfinite(new).all(axis=1)
    distance = np.full(len(new), np.inf)
    with one_thread(Z, blas=True):
        index = NearestNeighbors(n_neighbors=k).fit(Z)
        if finite.any():
            distance[finite] = index.kneighbors(new[finite])[0][:, -1]
        if groups is None:
            some = Z[np.random.default_rng(0).permutation(len(Z))[:_HELD_OUT]]
            return index.kneighbors(some, k + 1)[0][:, -1], distance
        usual = []
        for train, held in splitter_pairs(_GROUP_FOLDS, y, None, groups) or ():
            others = NearestNeighbors(n_neighbors=min(k, len(train))).fit(Z[train])
            usual.append(others.kneighbors(Z[held])[0][:, -1])
        return np.concatenate(usual), distance
