"""Rows out of a request: JSON by names or as a matrix, or a stream of Arrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pydantic_core
from pydantic import ValidationError

from ..own_data.tables.columns import check_known
from ..own_data.tables.mistake import Mistake, listed, meant
from ..own_data.tables.reading import Refused
from .arrow import arrow_table
from .models import Served
from .problems import Problem, none_readable, too_many_rows
from .schemas import Rows

Asked = TypeVar("Asked", bound=Rows)
#: Names among which one like a missing one is looked for.
_LOOKED_AT = 200
_NUMBERS = {int, float, type(None)}


@dataclass(frozen=True)
class Inputs:
    """What a classifier gets of n rows, their numbers in the request, and refused rows."""

    X: Any
    rows: np.ndarray
    refused: list[Refused]


def parsed(kind: type[Asked], body: bytes, most: int) -> Asked:
    """A body of JSON; Problem with the field that is wrong."""
    try:
        content = pydantic_core.from_json(body)
    except ValueError as error:
        raise Problem(400, "body", f"the body must be JSON: {error}") from error
    if not isinstance(content, dict):
        raise Problem(422, "body", "the body must be an object with rows or a matrix")
    for name in ("rows", "matrix"):
        given = content.get(name)
        if isinstance(given, list) and len(given) > most:
            raise too_many_rows(name, len(given), most)
    try:
        asked = kind.model_validate(content)
    except ValidationError as error:
        raise _named(error, kind) from error
    if (asked.rows is None) == (asked.matrix is None):
        raise Problem(422, "rows", "give either rows or a matrix")
    if asked.columns is not None and asked.matrix is None:
        raise Problem(422, "columns", "columns belong to a matrix; rows name theirs")
    return asked


def _named(error: ValidationError, kind: type[Rows]) -> Problem:
    """The first error, of the field and of what was expected there."""
    first = error.errors(include_url=False, include_context=False)[0]
    where, said = list(first["loc"]), first["msg"]
    cell = {"rows": 3, "matrix": 3, "fields": 2}.get(str(where[0]), len(where))
    if len(where) > cell:
        where = where[:cell]
    if len(where) == 3:
        said = "a cell must be a finite number, a text, true, false or null"
    if first["type"] == "extra_forbidden":
        said = f"there is no such field: {meant(str(where[0])[:64], kind.model_fields)}"
    return Problem(422, _path(where), said)


def _path(where: Sequence[Any]) -> str:
    """Where in a body: rows[3].age."""
    told = "".join(f"[{x}]" if isinstance(x, int) else f".{str(x)[:64]}" for x in where)
    return told.lstrip(".") or "body"


def json_inputs(served: Served, asked: Rows) -> Inputs:
    """The rows of a JSON body; Problem if no row can be read."""
    names = served.names
    if asked.rows is not None:
        cells, numbers, refused = _of_names(asked.rows, names)
    else:
        cells, numbers, refused = _of_matrix(asked.matrix or [], asked.columns or names, names)
    if cells and served.only_numbers and all(_NUMBERS.issuperset(map(type, row)) for row in cells):
        # Hundreds of columns in one step; what JSON holds is finite.
        values = np.array(cells, dtype=np.float64)
        X = pd.DataFrame(values, columns=names) if served.model.named else values
        return Inputs(X, numbers, refused)
    return _checked(served, _frame(cells, names), numbers, refused)


def arrow_inputs(served: Served, body: bytes, most: int) -> Inputs:
    """The rows of a stream of Arrow; Problem if no row can be read."""
    names = served.names
    table = arrow_table(body, most)
    try:
        check_known(served.columns, table.column_names, "the table")
    except Mistake as error:
        raise Problem(422, "columns", str(error)) from error
    frame = table.select(names).to_pandas(ignore_metadata=True)
    return _checked(served, frame, np.arange(1, len(frame) + 1), [])


def _checked(
    served: Served, frame: pd.DataFrame, rows: np.ndarray, refused: list[Refused]
) -> Inputs:
    X, fine, odd = served.model.inputs(frame, rows)
    everything = sorted([*refused, *odd])
    if not len(X):
        if everything:
            raise none_readable(everything)
        raise Problem(422, "rows", "there must be a row at least")
    return Inputs(X, rows[fine], everything)


def _of_names(
    rows: Sequence[dict[str, Any]], names: Sequence[str]
) -> tuple[list[list[Any]], np.ndarray, list[Refused]]:
    """Cells of the rows that have all columns, the numbers of these, and the other rows."""
    cells, numbers, refused = [], [], []
    near: dict[str, str] = {}
    for i, row in enumerate(rows, start=1):
        try:
            cells.append([row[name] for name in names])
            numbers.append(i)
        except KeyError as error:
            name = str(error.args[0])
            if name not in near:
                near[name] = meant(name, list(row)[:_LOOKED_AT]) if row else "the row is empty"
            refused.append(Refused(i, name, f"is not there: {near[name]}; null stands for a gap"))
    return cells, np.asarray(numbers, dtype=int), refused


def _of_matrix(
    matrix: Sequence[list[Any]], given: Sequence[str], names: Sequence[str]
) -> tuple[list[list[Any]], np.ndarray, list[Refused]]:
    known = {name: j for j, name in enumerate(given)}
    if len(known) < len(given):
        twice = sorted(name for name, n in Counter(given).items() if n > 1)
        raise Problem(422, "columns", f"columns names {listed(map(repr, twice))} twice")
    for name in names:
        if name not in known:
            told = f"columns lacks {name!r} of the model: {meant(name, list(given)[:_LOOKED_AT])}"
            raise Problem(422, "columns", f"{told}; a column of nulls stands for gaps")
    for i, row in enumerate(matrix):
        if len(row) != len(given):
            reason = f"a row must have {len(given)} cells, one per column, got {len(row)}"
            raise Problem(422, f"matrix[{i}]", reason)
    if list(given) == list(names):
        return list(matrix), np.arange(1, len(matrix) + 1), []
    at = [known[name] for name in names]
    return [[row[j] for j in at] for row in matrix], np.arange(1, len(matrix) + 1), []


def _frame(cells: list[list[Any]], names: Sequence[str]) -> pd.DataFrame:
    columns = zip(*cells, strict=True) if cells else ([] for _ in names)
    return pd.DataFrame(dict(zip(names, map(list, columns), strict=True)))
