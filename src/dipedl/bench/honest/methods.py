"""A method is made, fitted with the classifier of its cell, and asked about every split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from ...maths.kinds import uncertainty_of
from ...maths.scores import max_prob
from ..run.memo import Memory, Spent
from ..spec.build import accepts, build
from .study import MethodEntry

if TYPE_CHECKING:
    from .classifiers import Given
    from .plan import Task

__all__ = ["Answers", "Refusal", "run_method", "unfitted_method"]

Arrays = dict[str, dict[str, np.ndarray]]
#: The method that is fitted with an unfitted classifier: it needs answers on held-out rows.
_OURS = "DIPClassifier"


class Refusal(Exception):
    """A method said no, and may."""


@dataclass
class Answers:
    """What a fitted method answered, and what that cost.

    Attributes
    ----------
    probabilities : dict of str to ndarray, shape (n, k)
        By split.
    uncertainty : dict of str to dict of str to ndarray, shape (n,)
        By row's name, then by split.
    spent : dict of str to Spent
        "fit": with all fits of the classifier and all its answers, as if no method had shared them.
        "classifier": of that, the fits of the classifier. "predict <split>": probabilities of a
        split. "score <split> <row>": its uncertainty, beyond that.
    """

    probabilities: dict[str, np.ndarray] = field(default_factory=dict)
    uncertainty: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    spent: dict[str, Spent] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)


def unfitted_method(entry: MethodEntry, where: str, **given: Any) -> Any:
    """The method of an entry; ValueError if a class or an argument does not exist."""
    return build(entry.estimator, entry.arguments, where, preset=entry.preset, **given)


def run_method(task: Task, cell: Given, X: Mapping[str, np.ndarray], seed: int) -> Answers:
    """Fit a method and ask it about the test rows and every foreign set.

    Parameters
    ----------
    task : Task
        The method.
    cell : Given
        Classifier and rows.
    X : mapping of str to ndarray
        Splits to ask about, "test" among them.
    seed : int
        Seed of the method.

    Raises
    ------
    Refusal
        If the method refuses classifier or rows with a ValueError or a TypeError, and may.
    """
    answers = Answers()
    try:
        model = _fitted(task, cell, seed, answers)
        for split, rows in X.items():
            _ask(model, task, rows, split, cell.memory, answers)
    except (ValueError, TypeError) as error:
        if task.entry.may_refuse:
            raise Refusal(str(error)) from error
        raise
    answers.about = _about(model)
    return answers


def _fitted(task: Task, cell: Given, seed: int, answers: Answers) -> Any:
    entry = task.entry
    model = unfitted_method(entry, task.where, random_state=seed, **_parts(entry, cell))
    fitting = cell.memory.fitting
    with _alone(answers, "fit", cell.memory):
        held = entry.calibrate and cell.held is not None and accepts(model.fit, "calibration")
        model.fit(cell.X, cell.y, **({"calibration": cell.held} if held else {}))
    answers.spent["classifier"] = cell.memory.fitting - fitting
    return model


def _parts(entry: MethodEntry, cell: Given) -> dict[str, Any]:
    """Classifier and features for the constructor."""
    if entry.trains:
        return {"estimator": cell.recipe}
    if cell.features is not None:
        return {"estimator": cell.fitted, "features": cell.features}
    if entry.estimator == _OURS:
        # Its own default standardises; the paper's preset takes inputs as they are.
        own = {"features": StandardScaler()} if entry.preset else {}
        return {"estimator": cell.estimator, **own}
    return {"estimator": cell.fitted, "features": StandardScaler()}


def _ask(
    model: Any, task: Task, rows: np.ndarray, split: str, memory: Memory, answers: Answers
) -> None:
    bare = task.entry.answers == "bare_proba"
    dirichlet, scores = None, None
    with _alone(answers, f"predict {split}", memory):
        if hasattr(model, "predict_dirichlet") and not bare:
            P, scores = model._proba_and_scores(rows)
            dirichlet = model._dirichlet(P, scores)
            P = dirichlet.mean
        else:
            P = model.classifier_proba(rows) if bare else model.predict_proba(rows)
    answers.probabilities[split] = np.asarray(P, dtype=np.float64)
    for row, kind in task.kinds.items():
        with _alone(answers, f"score {split} {row}", memory):
            u = max_prob(P) if bare else _uncertainty(model, rows, kind, dirichlet, scores)
        answers.uncertainty.setdefault(row, {})[split] = np.asarray(u, dtype=np.float64)


def _uncertainty(
    model: Any, rows: np.ndarray, kind: str | None, dirichlet: Any, scores: Any
) -> np.ndarray:
    """As ``model.uncertainty``; what the Dirichlet already holds is not computed again."""
    if dirichlet is None or kind is None:
        return np.asarray(model.uncertainty(rows, **({} if kind is None else {"kind": kind})))
    return uncertainty_of(
        kind,
        lambda: dirichlet,
        lambda: model.classifier_proba(rows),
        lambda: np.asarray(scores),
    )


class _alone:
    """Counts what passes inside, as if nothing of the classifier were remembered."""

    def __init__(self, answers: Answers, step: str, memory: Memory) -> None:
        self.answers, self.step, self.memory = answers, step, memory

    def __enter__(self) -> None:
        self.alone, self.here = self.memory.alone, self.memory.here
        # A copy: the memory adds to its own in place.
        self.here = Spent(self.here.wall, self.here.processor)
        self.spent = Spent()
        self.counting = self.spent.counted()
        self.counting.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.counting.__exit__(*error)
        looked_up = self.memory.here - self.here
        asked = self.memory.alone - self.alone
        self.answers.spent[self.step] = self.spent - looked_up + asked


def _about(model: Any) -> dict[str, Any]:
    """What a selection chose, in words, where the density says so."""
    density: Any = getattr(getattr(model, "evidence_", None), "density_", None)
    if not hasattr(density, "choice_"):
        return {}
    return {"chosen": str(density.choice_), "runner_up": str(density.runner_up_)}
