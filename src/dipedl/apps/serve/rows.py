"""Rows out of a request: JSON by names or as a matrix, or a stream of Arrow."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pydantic_core
from pydantic import ValidationError

from ..table.errors import list_names, suggest_name
from ..table.reading import RejectedRow, frame_of
from .arrow import arrow_table
from .models import Served
from .problems import MOST_COMPARED, OTHERS, Problem, check_columns, none_readable, too_many_rows
from .schemas import Rows

Asked = TypeVar("Asked", bound=Rows)
#: Missing names for which one like them is looked for.
_MOST_HINTS = 20
#: Texts, and what opens a list or an object. A text that does not close ends with the body: to look
#: for its end again from each of its quotes would take hours.
_OPENED = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|([\[{])', re.DOTALL)
#: Whole numbers of a table lie between this one and its negative.
_WHOLE = 2**63
_NUMBERS = {int, float, type(None)}
_CELLS = _NUMBERS | {bool, str}


@dataclass(frozen=True)
class Inputs:
    """Inputs of a classifier from n rows, their numbers in the request, and refused rows."""

    X: Any
    rows: np.ndarray
    refused: list[RejectedRow]


def parsed(kind: type[Asked], body: bytes, most: int) -> Asked:
    """A body of JSON; Problem with the field that is wrong."""
    _check_containers(body, most)
    try:
        content = pydantic_core.from_json(body)
    except ValueError as error:
        raise Problem(400, "body", f"the body must be JSON: {error}") from error
    if not isinstance(content, dict):
        raise Problem(422, "body", "the body must be an object with rows or a matrix")
    for name in content:
        if name not in kind.model_fields:
            said = f"there is no such field: {suggest_name(name[:64], kind.model_fields)}"
            raise Problem(422, name[:64] or "body", said)
    for name in ("rows", "matrix"):
        if content.get(name) is not None:
            _check_cells(name, content[name], most)
    try:
        asked = kind.model_validate(content)
    except ValidationError as error:
        raise _named(error) from error
    if (asked.rows is None) == (asked.matrix is None):
        raise Problem(422, "rows", "give either rows or a matrix")
    if asked.columns is not None and asked.matrix is None:
        raise Problem(422, "columns", "columns belong to a matrix; rows name theirs")
    return asked


def _check_containers(body: bytes, most: int) -> None:
    """Problem for more lists and objects than rows need: each takes far more memory than bytes."""
    most += OTHERS
    if body.count(b"[") + body.count(b"{") > most:
        # Those within texts are none.
        opened = (found for found in _OPENED.finditer(body) if found[1])
        if sum(1 for _ in islice(opened, most + 1)) > most:
            reason = f"the body must have at most {most:,} lists and objects, one per row"
            raise Problem(413, "body", f"{reason}; send fewer rows")


def _check_cells(name: str, rows: Any, most: int) -> None:
    """Problem for the first row or cell that is none."""
    kind = dict if name == "rows" else list
    said = f"{name} must be a list of {'objects' if kind is dict else 'lists'}"
    if not isinstance(rows, list):
        raise Problem(422, name, said)
    if len(rows) > most:
        raise too_many_rows(name, len(rows), most)
    for i, row in enumerate(rows):
        if not isinstance(row, kind):
            raise Problem(422, f"{name}[{i}]", said)
        if not _are_cells(row.values() if isinstance(row, dict) else row):
            items: Iterable[Any] = row.items() if isinstance(row, dict) else enumerate(row)
            at = next(at for at, cell in items if not _are_cells([cell]))
            said = "a cell must be a finite number, a text, true, false or null"
            raise Problem(422, _path([name, i, at]), said)


def _are_cells(cells: Collection[Any]) -> bool:
    kinds = set(map(type, cells))
    return (
        _CELLS.issuperset(kinds)
        and (float not in kinds or all(math.isfinite(x) for x in cells if type(x) is float))
        and (int not in kinds or all(-_WHOLE <= x < _WHOLE for x in cells if type(x) is int))
    )


def _named(error: ValidationError) -> Problem:
    """The first error, of the field and of what was expected there."""
    first = error.errors(include_url=False, include_context=False)[0]
    return Problem(422, _path(first["loc"][:2]), first["msg"])


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


def arrow_inputs(served: Served, body: bytes, most: int, most_bytes: int) -> Inputs:
    """The rows of a stream of Arrow; Problem if no row can be read."""
    table = arrow_table(body, served.names, most, most_bytes)
    frame = frame_of(table)
    return _checked(served, frame, np.arange(1, len(frame) + 1), [])


def _checked(
    served: Served, frame: pd.DataFrame, rows: np.ndarray, refused: list[RejectedRow]
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
) -> tuple[list[list[Any]], np.ndarray, list[RejectedRow]]:
    """Cells of the rows that have all columns, the numbers of these, and the other rows."""
    cells, numbers, refused = [], [], []
    near: dict[str, str] = {}
    for i, row in enumerate(rows, start=1):
        try:
            cells.append([row[name] for name in names])
            numbers.append(i)
        except KeyError:
            first, *others = (name for name in names if name not in row)
            if first not in near and len(near) < _MOST_HINTS:
                near[first] = (
                    suggest_name(first, list(row)[:MOST_COMPARED]) if row else "the row is empty"
                )
            also = f", nor {list_names(map(repr, others))}" if others else ""
            hint = f": {near[first]}" if first in near else ""
            refused.append(
                RejectedRow(i, first, f"is not there{also}{hint}; null stands for a gap")
            )
    return cells, np.asarray(numbers, dtype=int), refused


def _of_matrix(
    matrix: Sequence[list[Any]], given: Sequence[str], names: Sequence[str]
) -> tuple[list[list[Any]], np.ndarray, list[RejectedRow]]:
    check_columns(given, names, "columns")
    for i, row in enumerate(matrix):
        if len(row) != len(given):
            reason = f"a row must have {len(given)} cells, one per column, got {len(row)}"
            raise Problem(422, f"matrix[{i}]", reason)
    if list(given) == list(names):
        return list(matrix), np.arange(1, len(matrix) + 1), []
    known = {name: j for j, name in enumerate(given)}
    at = [known[name] for name in names]
    return [[row[j] for j in at] for row in matrix], np.arange(1, len(matrix) + 1), []


def _frame(cells: list[list[Any]], names: Sequence[str]) -> pd.DataFrame:
    columns = zip(*cells, strict=True) if cells else ([] for _ in names)
    return pd.DataFrame(dict(zip(names, map(list, columns), strict=True)), dtype=object)
