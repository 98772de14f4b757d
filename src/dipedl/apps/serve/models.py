"""Models by name, each replaced at once or not at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...answers import Answers
from ...classifier import DIPClassifier
from ...writing.files import sha256_of
from ..table.columns import CATEGORY, DATE, NUMERIC, ColumnSpec
from ..table.errors import UserError, list_names, suggest_name
from ..table.table_model import TableModel, is_of_table, load_any, plain_model, table_model
from .guard import Problem

__all__ = ["Models"]

#: Most columns of which a usual value may be changed, and values of one that are tried.
_MOST_CHANGED, _MOST_TRIED = 60, 21


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model that answers under a name."""

    name: str
    path: Path
    model: TableModel
    version: str
    loaded_at: str

    @cached_property
    def columns(self) -> list[ColumnSpec]:
        """Return the columns that the model sees."""
        return [column for column in self.model.columns if column.used]

    @cached_property
    def names(self) -> list[str]:
        """Return the names of the columns, in the order of a matrix."""
        return [column.name for column in self.columns]

    @cached_property
    def only_numbers(self) -> bool:
        """Return whether all columns are numeric."""
        return all(column.kind == NUMERIC for column in self.columns)

    @cached_property
    def usual(self) -> dict[str, float | str | None]:
        """Return an ordinary row: medians and commonest levels, changed where that is flagged.

        Each value may be usual and all of them together not; then columns take, one by one, the
        value that makes the row least rare.
        """
        values = {column.name: self._values(column) for column in self.columns}
        row = {name: candidates[0] for name, candidates in values.items()}
        flagged = self._answer_rows([row]).flagged[0]
        for name, candidates in values.items() if len(values) <= _MOST_CHANGED else ():
            if flagged:
                rows = [row | {name: value} for value in candidates]
                answers = self._answer_rows(rows)
                best = int(np.argmax(answers.p_values))
                row, flagged = rows[best], answers.flagged[best]
        return row

    def _values(self, column: ColumnSpec) -> list[Any]:
        """Return values of a column that the fit saw, the most usual first."""
        if column.kind == CATEGORY:
            known = self.model.usual[column.name].levels
            return [*(known or column.levels)][:_MOST_TRIED] or [None]
        if column.kind == DATE:
            dates, middle = list(map(column.date_text, column.dates)), len(column.dates) // 2
            return _from_middle(dates, middle) or [None]
        usual = self.model.usual.get(column.name)
        if usual is None or np.isnan(usual.low):
            return [0.0] if column.kind == NUMERIC else [None]
        below = np.cumsum(usual.ranges)
        return _from_middle(usual.cuts, int(np.searchsorted(below, below[-1] / 2)) + 1)

    def _answer_rows(self, rows: list[dict[str, Any]]) -> Answers:
        X, _, _ = self.model.inputs(pd.DataFrame(rows), np.arange(1, len(rows) + 1))
        answers: Answers = self.model.classifier.answers(X)
        return answers


def _from_middle(values: Sequence[Any] | np.ndarray, middle: int) -> list[Any]:
    """Return values in the order of their distance from that in a place."""
    order = sorted(range(len(values)), key=lambda i: abs(i - middle))
    return list(np.asarray(values)[order].tolist())


class Models:
    """Models by name.

    Parameters
    ----------
    paths : dict of str to Path
        The file of each model.

    Raises
    ------
    UserError
        If a file holds no model that can be served.
    """

    def __init__(self, paths: dict[str, Path]) -> None:
        self._served = {name: load_served(name, path) for name, path in paths.items()}
        self._problems: dict[str, str] = {}
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(list(self._served.values()))

    def find(self, name: str | None) -> ServedModel:
        """Return the model of a name, or the only one if `name` is None; else a Problem."""
        if name is None and len(self._served) == 1:
            return next(iter(self._served.values()))
        if name is None:
            raise Problem(422, "model", f"model must be one of {list_names(self._served)}")
        if name not in self._served:
            reason = f"there is no model {name[:64]!r}: {suggest_name(name[:64], self._served)}"
            raise Problem(404, "model", reason)
        return self._served[name]

    def problem(self, name: str) -> str | None:
        """Return why the last reload of a model failed; None if it did not."""
        return self._problems.get(name)

    def reload(self, name: str) -> ServedModel:
        """Read the file of a model again; UserError if it is broken, and the old model stays."""
        with self._lock:
            path = self.find(name).path
            try:
                self._served[name] = load_served(name, path)
            except UserError as error:
                self._problems[name] = str(error)
                raise
            except Exception as error:
                self._problems[name] = f"{path} could not be read: {type(error).__name__}"
                raise UserError(self._problems[name]) from error
            self._problems.pop(name, None)
            return self._served[name]


def load_served(name: str, path: Path) -> ServedModel:
    """Return the model in a file, once it has answered a row; UserError if there is none."""
    try:
        before = sha256_of(path) if path.is_file() else ""
        model = load_any(path)
        after = sha256_of(path)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    if before != after:
        raise UserError(f"{path} was written to while it was read; load it again")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    served = ServedModel(name, path, _servable(model, path), after[:12], now)
    try:
        _ = served.usual
    except ValueError as error:
        raise UserError(f"{path} holds a model that cannot answer: {error}") from error
    return served


def _servable(model: Any, path: Path) -> TableModel:
    if is_of_table(model):
        table = table_model(model, path)
        if table.of_images:
            raise UserError(f"{path} was fitted on a folder of images: use dipedl score")
        return table
    if not isinstance(model, DIPClassifier):
        raise UserError(
            f"{path} holds {type(model).__name__}, and a service answers by a DIPClassifier: "
            "make one with dipedl fit, or with DIPClassifier(...).fit(X, y).save(path)"
        )
    inputs = model.evidence_.columns_
    if not hasattr(model, "n_features_in_") or (inputs is not None and inputs.levels):
        raise UserError(
            f"{path} was fitted in Python on more than numbers: make it with dipedl fit, which "
            "keeps how columns are read"
        )
    return plain_model(model)
