"""A saved model that takes tables and gives tables: a pyfunc of MLflow, functions of DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ...classifier import DIPClassifier
from ...io import load
from ..table.columns import NUMERIC, check_known
from ..table.score import ScoreRequest, answer_columns, answer_inputs
from ..table.table_model import is_of_table, plain_model, table_model

__all__ = ["TableAnswers", "register_duckdb"]

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
        at = Path("the model")
        self.model = model
        self._table = table_model(model, at) if is_of_table(model) else plain_model(model)
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


def _load_pyfunc(path: str) -> TableAnswers:
    """Load the file of a model, as MLflow calls it."""
    return TableAnswers(load(path))


#: What an answer gives in SQL, and its type there.
_TYPES = {"label": "VARCHAR", "vacuity": "DOUBLE", "p_value": "DOUBLE", "flagged": "BOOLEAN"}


def register_duckdb(
    connection: Any, model: DIPClassifier | TableAnswers, prefix: str = "dipedl"
) -> list[str]:
    """Functions of SQL that ask a model: ``dipedl_vacuity(a, b)`` of its columns, in their order.

    ``dipedl_label``, ``dipedl_vacuity``, ``dipedl_p_value`` and ``dipedl_flagged`` take a number
    for each numeric column and a text for each other one. NULL is a gap, which a model takes if it
    was fitted with gaps. DuckDB calls them with some thousand rows at a time, in Arrow: see the
    page "Other libraries".

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        Where the functions are registered, until it is closed.
    model : DIPClassifier or TableAnswers
        Fitted; for example ``dipedl.load("model.dipedl")``.
    prefix : str, default="dipedl"
        Of the names: another one for a second model.

    Returns
    -------
    list of str
        The calls with the columns of the model, as they are written in a query.

    Raises
    ------
    ValueError
        In a query: an entry cannot be read, or is a gap that the model does not take.
    """
    answers = model if isinstance(model, TableAnswers) else TableAnswers(model)
    types = ["DOUBLE" if kind == NUMERIC else "VARCHAR" for kind in answers.kinds.values()]
    columns = ", ".join('"{}"'.format(name.replace('"', '""')) for name in answers.kinds)
    for field, type_ in _TYPES.items():
        connection.create_function(
            f"{prefix}_{field}",
            _function(answers, field),
            types,
            type_,
            type="arrow",
            null_handling="special",
        )
    return [f"{prefix}_{field}({columns})" for field in _TYPES]


def _function(answers: TableAnswers, field: str) -> Callable[..., pa.Array]:
    def answer(*columns: pa.ChunkedArray) -> pa.Array:
        parts = zip(answers.kinds, columns, strict=True)
        frame = pd.DataFrame({name: part.to_pandas() for name, part in parts})
        return pa.array(answers.answers(frame, (field,))[field])

    # DuckDB counts the parameters.
    places = [Parameter(f"c{j}", Parameter.POSITIONAL_ONLY) for j in range(len(answers.kinds))]
    answer.__signature__ = Signature(places)  # type: ignore[attr-defined]
    return answer
