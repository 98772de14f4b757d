"""A saved model that takes tables and gives tables: what MLflow calls a pyfunc."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...classifier import DIPClassifier
from ...io import load
from ..table.columns import check_known
from ..table.score import ScoreRequest, answer_columns, answer_inputs
from ..table.table_model import TableModel, is_of_table, plain_model, table_model

__all__ = ["TableAnswers"]

_FIELDS = ("label", "probabilities", "vacuity", "p_value", "flagged")


class TableAnswers:
    """A fitted model that answers a table with a table, row by row.

    MLflow loads it without pickle, by ``loader_module="dipedl.apps.adapters.table_answers"`` and
    the file of the model as ``data_path``.

    Parameters
    ----------
    model : DIPClassifier
        Fitted. One of ``dipedl fit`` reads the columns as the command line does.

    Attributes
    ----------
    kinds : dict of str to str
        Kind of each column that it reads, in the order of the fit: "numeric", "category", ...

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.datasets import load_iris
    >>> from dipedl import DIPClassifier
    >>> from dipedl.apps.adapters import TableAnswers
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> TableAnswers(DIPClassifier().fit(X, y)).predict(10 * X.iloc[:1])[["vacuity", "flagged"]]
       vacuity  flagged
    0      1.0     True
    """

    def __init__(self, model: DIPClassifier) -> None:
        if not isinstance(model, DIPClassifier):
            raise TypeError(f"model must be a fitted DIPClassifier, got {type(model).__name__}")
        self.model, self._table = model, _table_model(model)
        self.kinds = {column.name: column.kind for column in self._table.columns if column.used}

    def predict(self, model_input: Any, params: Any = None) -> pd.DataFrame:
        """Label, probability of each class, vacuity, p-value and flag of each row.

        `model_input` (n, d) is a table with the columns in any order, or an array with those of the
        fit; after a fit without names of columns a table is read as an array. `params` of MLflow
        are ignored. ValueError names a column that is missing, or the row
        and column of an entry that cannot be read.
        """
        return pd.DataFrame(self.answers(model_input, _FIELDS))

    def answers(self, rows: Any, fields: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Columns of the answers to rows (n, d); `fields` are some of those of `predict`."""
        rows = rows.to_pandas() if hasattr(rows, "to_pandas") else rows
        by_name = isinstance(rows, pd.DataFrame) and self._table.named
        frame = rows if by_name else pd.DataFrame(np.asarray(rows), columns=list(self.kinds))
        check_known(self._table.columns, frame.columns, "the table")
        X = frame[list(self.kinds)]
        X = X if self._table.named else X.to_numpy()
        found = answer_inputs(self.model, X, ScoreRequest(fields=fields))
        return answer_columns(found, [str(name) for name in self.model.classes_], fields)


def _table_model(model: DIPClassifier) -> TableModel:
    if is_of_table(model):
        return table_model(model, Path("the model"))
    columns = model.evidence_.columns_
    return plain_model(model, texts=() if columns is None else columns.text_columns())


def _load_pyfunc(path: str) -> TableAnswers:
    """Load the file of a model, as MLflow calls it."""
    return TableAnswers(load(path))
