"""Two models on the same rows: which answers change, and which model is right more often."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from ...answers import Answers
from ...metrics import brier_score
from ...writing.spelling import spellings
from ..monitor import Estimate
from ..monitor.windows import fingerprint
from .errors import UserError, list_names
from .evaluate import ScoredTable, answer_sample, share_seen
from .reading import Table
from .table_model import TableModel

_Z = float(stats.norm.ppf(0.975))
_MOVES = 5


class PairedScore(NamedTuple):
    """A mean over the same rows by either model, and new minus old with its paired interval.

    `difference` is None for a single row.
    """

    old: float
    new: float
    rows: int
    difference: Estimate | None


@dataclass(frozen=True)
class Comparison:
    """An old and a new model on the rows that both can read.

    Attributes
    ----------
    rows : int
        Rows that both answer.
    refused : tuple of int
        Rows that the old and the new model cannot read.
    seen : tuple of float
        Shares of the rows that the fits of the two were given too; of such rows a model knows more
        than of new ones.
    labels_changed, flags_raised, flags_dropped : int
        Rows with another label, newly flagged, and not flagged any more.
    moves : tuple of (str, str, int)
        The commonest changes of the label, from old to new.
    scores : dict of str to PairedScore
        "accuracy" and "brier" of the rows whose class either model knows; a class that a model does
        not know is never right. "flagged" of all rows, "flagged_at_old_rate" where the rates
        differ. "false_alarms" are flagged rows of a class that both know, and "unknown_flagged"
        those of a class that neither knows.
    rates : tuple of float
        False-alarm rates of the two: `flagged` where a p-value is at most that.
    only_old_classes, only_new_classes, only_old_columns, only_new_columns : tuple of str
    kinds_changed : tuple of str
        Columns that the two read as another kind.
    same_reference : bool
        Whether a monitor of the old model goes on with the new one: its held-out rows are the same.
    answers : DataFrame
        A line for each row, the largest change first: `change` is the total variation between the
        class probabilities, in [0, 1]; `p_old`, `p_new` are the probabilities of the own labels.
    """

    rows: int
    refused: tuple[int, int]
    seen: tuple[float, float]
    labels_changed: int
    flags_raised: int
    flags_dropped: int
    moves: tuple[tuple[str, str, int], ...]
    scores: dict[str, PairedScore]
    rates: tuple[float, float]
    only_old_classes: tuple[str, ...]
    only_new_classes: tuple[str, ...]
    only_old_columns: tuple[str, ...]
    only_new_columns: tuple[str, ...]
    kinds_changed: tuple[str, ...]
    same_reference: bool
    answers: pd.DataFrame

    @property
    def carried(self) -> bool:
        """Return whether the false-alarm rate of the old model is that of the new one."""
        return self.rates[0] == self.rates[1]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that ``json.dump`` takes, without the lines of `answers`."""
        made = {name: value for name, value in vars(self).items() if name != "answers"}
        scores = {
            name: one._asdict() | {"difference": one.difference and vars(one.difference)}
            for name, one in self.scores.items()
        }
        return made | {"scores": scores, "carried": self.carried}


def compare(
    old: TableModel, new: TableModel, before: Table, after: Table, rows: int | None = None
) -> Comparison:
    """Answer the same rows with two models, or `rows` of them drawn at random, and compare.

    `before` and `after` are one table, opened for the old and for the new model.
    """
    _check_comparable(old, new)
    sides = [
        _answer(name, model, table, rows)
        for name, model, table in (("old", old, before), ("new", new, after))
    ]
    at, *places = np.intersect1d(sides[0].rows, sides[1].rows, return_indices=True)
    if not len(at):
        raise UserError(f"no row of {before.path} can be read by both models: compare other rows")
    # Classes of the new model as the old one writes them: 1 and 1.0 are one class.
    named = old.classes, spellings(new.classes, old.classes)
    classes = list(dict.fromkeys([*named[0], *named[1]]))
    one = _decisions(old, sides[0].answers[places[0]], named[0], classes)
    other = _decisions(new, sides[1].answers[places[1]], named[1], classes)
    truth = _true_classes((old, new), sides[0].frame.iloc[places[0]], named)
    rates = [float(model.classifier.evidence_.false_alarm_rate) for model in (old, new)]
    scores = {"flagged": paired_share(one.flagged, other.flagged)}
    if rates[0] != rates[1]:
        again = other.p_values <= rates[0]
        scores["flagged_at_old_rate"] = paired_share(one.flagged, again)
    if truth is not None:
        scores = _label_scores(one, other, truth, classes) | scores
        groups = {"false_alarms": np.isin(truth, [c for c in named[0] if c in named[1]])}
        groups["unknown_flagged"] = pd.notna(truth) & ~np.isin(truth, classes)
        scores |= {
            name: paired_share(one.flagged[group], other.flagged[group])
            for name, group in groups.items()
            if group.any()
        }
    lines = {"row": at, "label_old": one.labels, "label_new": other.labels, "p_old": one.proba_own}
    lines |= {"p_new": other.proba_own, "flagged_old": one.flagged, "flagged_new": other.flagged}
    answers = pd.DataFrame(lines).assign(change=np.abs(one.proba - other.proba).sum(axis=1) / 2)
    if truth is not None:
        answers.insert(1, "class", truth)
    moved = answers[one.labels != other.labels]
    moves = Counter(zip(moved["label_old"], moved["label_new"], strict=True)).most_common(_MOVES)
    kinds = [{c.name: c.kind for c in model.columns if c.used} for model in (old, new)]
    return Comparison(
        rows=len(at),
        refused=(sides[0].refused, sides[1].refused),
        seen=(share_seen(old, sides[0]), share_seen(new, sides[1])),
        labels_changed=len(moved),
        flags_raised=int((other.flagged & ~one.flagged).sum()),
        flags_dropped=int((one.flagged & ~other.flagged).sum()),
        moves=tuple((*pair, n) for pair, n in moves),
        scores=scores,
        rates=(rates[0], rates[1]),
        only_old_classes=tuple(c for c in named[0] if c not in named[1]),
        only_new_classes=tuple(c for c in named[1] if c not in named[0]),
        only_old_columns=tuple(name for name in kinds[0] if name not in kinds[1]),
        only_new_columns=tuple(name for name in kinds[1] if name not in kinds[0]),
        kinds_changed=tuple(n for n, kind in kinds[0].items() if kinds[1].get(n, kind) != kind),
        same_reference=fingerprint(old.classifier) == fingerprint(new.classifier),
        answers=answers.sort_values(["change", "row"], ascending=[False, True], ignore_index=True),
    )


class _Decisions(NamedTuple):
    """Answers of a model over the classes of both: (n, k), and the rest (n,)."""

    proba: np.ndarray
    proba_own: np.ndarray
    labels: np.ndarray
    flagged: np.ndarray
    p_values: np.ndarray


def _decisions(
    model: TableModel, answers: Answers, names: list[str], classes: list[str]
) -> _Decisions:
    """Return answers with the classes of the model under other `names`, which `classes` hold."""
    own, rows = pd.Index(model.classes).get_indexer(answers.labels), np.arange(len(answers))
    proba = np.zeros((len(answers), len(classes)))
    proba[:, [classes.index(name) for name in names]] = answers.proba
    labels, flagged = np.array(names, dtype=object)[own], np.asarray(answers.flagged, dtype=bool)
    return _Decisions(proba, answers.proba[rows, own], labels, flagged, answers.p_values)


def _check_comparable(old: TableModel, new: TableModel) -> None:
    """Raise UserError, which names the difference, if no answer of one can be one of the other."""
    if old.of_images != new.of_images:
        images, table = ("old", "new") if old.of_images else ("new", "old")
        raise UserError(
            f"the {images} model answers images and the {table} one rows of a table: "
            "compare two models of the same kind"
        )
    if old.target != new.target:
        raise UserError(
            f"the old model predicts {old.target!r} and the new one {new.target!r}: "
            "compare two models of one target"
        )
    if not set(spellings(new.classes, old.classes)) & set(old.classes):
        raise UserError(
            f"the models have no class in common: the old one knows {list_names(old.classes)}, "
            f"the new one {list_names(new.classes)}"
        )


def _answer(name: str, model: TableModel, table: Table, rows: int | None) -> ScoredTable:
    try:
        return answer_sample(model, table, name, rows)
    except UserError as error:
        raise UserError(f"the {name} model cannot answer: {error}") from error


def _true_classes(
    models: tuple[TableModel, TableModel], frame: pd.DataFrame, named: tuple[list[str], list[str]]
) -> np.ndarray | None:
    """Return the true classes (n,) as the old model writes them, None for a gap.

    None without any.
    """
    frame = frame.reset_index(drop=True)
    old, new = (model.labels(frame) for model in models)
    if old is None or new is None:
        return None
    as_old = dict(zip(models[1].classes, named[1], strict=True))
    known = new.isin(models[1].classes) & ~old.isin(models[0].classes)
    truth = old.mask(known, new.map(as_old))
    return truth.to_numpy(dtype=object) if truth.notna().any() else None


def _label_scores(
    one: _Decisions, other: _Decisions, truth: np.ndarray, classes: list[str]
) -> dict[str, PairedScore]:
    """Return accuracy and Brier score of the rows with a class that a model knows."""
    known = np.isin(truth, classes)
    if not known.any():
        return {}
    y = pd.Index(classes).get_indexer(truth[known])
    right = [side.labels[known] == truth[known] for side in (one, other)]
    squares = [
        np.square(side.proba[known] - np.eye(len(classes))[y]).sum(axis=1) for side in (one, other)
    ]
    old, new = (brier_score(y, side.proba[known]) for side in (one, other))
    brier = PairedScore(old, new, len(y), mean_difference(squares[1] - squares[0]))
    return {"accuracy": paired_share(*right), "brier": brier}


def mean_difference(differences: np.ndarray) -> Estimate | None:
    """Return the mean of differences (n,) of pairs with Student's 95 % interval."""
    n, mean = len(differences), float(differences.mean())
    if n < 2:
        return None
    half = float(stats.t.ppf(0.975, n - 1) * stats.sem(differences))
    return Estimate(mean, mean - half, mean + half, n)


def paired_share(old: np.ndarray, new: np.ndarray) -> PairedScore:
    """Return the shares of two properties (n,) of the same rows, and how far they are apart.

    The interval is Wald's with half a row more in each cell of the table of pairs, which holds also
    where no pair or few differ.

    References
    ----------
    D. G. Bonett, R. M. Price, "Adjusted Wald confidence interval for a difference of binomial
    proportions based on paired data", *Journal of Educational and Behavioral Statistics* 37, 2012.
    """
    n, value = len(old), float(new.mean() - old.mean())
    up, down = (((new & ~old).sum() + 1) / (n + 2), ((old & ~new).sum() + 1) / (n + 2))
    half = _Z * np.sqrt((up + down - (up - down) ** 2) / (n + 2))
    low, high = np.clip([up - down - half, up - down + half], -1, 1).tolist()
    return PairedScore(float(old.mean()), float(new.mean()), n, Estimate(value, low, high, n))
