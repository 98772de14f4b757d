"""A model as functions of SQL in DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import pandas as pd
import pyarrow as pa

from ...classifier import DIPClassifier
from ..table.columns import NUMERIC
from .table_answers import TableAnswers

__all__ = ["register_duckdb"]

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
