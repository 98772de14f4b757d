"""Inputs of a model out of a request: JSON by names or as a matrix, or a stream of Arrow."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pydantic_core
from pydantic import ValidationError

from ..table.errors import list_names, suggest_name
from ..table.reading import RejectedRow, frame_of
from .arrow import read_stream
from .guard import MOST_COMPARED, Problem, check_columns, too_many_rows
from .models import ServedModel
from .schemas import EXAMPLES, PredictRequest, Rows
from .settings import Settings

Request = TypeVar("Request", bound=Rows)
#: Inputs of a classifier, the numbers of their rows in the request, and the rows without inputs.
Inputs = tuple[Any, np.ndarray, list[RejectedRow]]
#: Brackets of a small body that open no rows.
_OTHER_BRACKETS = 1_000
#: Missing names for which one like them is looked for.
_MOST_HINTS = 20
#: Whole numbers of a table lie between this one and its negative.
_WHOLE = 2**63
_NUMBERS = {int, float, type(None)}
_CELLS = _NUMBERS | {bool, str}


def parse_json(kind: type[Request], body: bytes, most: int) -> Request:
    """Return a body of JSON with at most so many rows; Problem with the field that is wrong."""
    # Each list or object takes far more memory than the two bytes that it may have.
    allowed = most + _OTHER_BRACKETS + len(body) // 16
    if body.count(b"[") + body.count(b"{") > allowed:
        reason = f"the body must have at most {allowed:,} brackets, one per row, and few in texts"
        raise Problem(413, "body", f"{reason}; send fewer rows")
    try:
        content = pydantic_core.from_json(body)
    except ValueError as error:
        raise Problem(400, "body", f"the body must be JSON: {error}") from error
    if not isinstance(content, dict):
        raise Problem(422, "body", "the body must be an object with rows or a matrix")
    # Before pydantic, which would list every name and copy every row.
    for name, value in content.items():
        if name not in kind.model_fields:
            hint = suggest_name(name[:64], kind.model_fields)
            raise Problem(422, name[:64] or "body", f"there is no such field: {hint}")
        if name in ("rows", "matrix") and isinstance(value, list) and len(value) > most:
            raise too_many_rows(name, len(value), most)
    rows = content.get("rows")
    objects = [content, *(rows if isinstance(rows, list) else ())]
    if body.count(b":") > sum(len(one) for one in objects if isinstance(one, dict)):
        # A text holds a colon, or a name comes twice.
        json.loads(body, object_pairs_hook=_refuse_twice)
    request = _validate(kind, content)
    if (request.rows is None) == (request.matrix is None):
        raise Problem(422, "rows", "give either rows or a matrix")
    if request.columns is not None and request.matrix is None:
        raise Problem(422, "columns", "columns belong to a matrix; rows name theirs")
    return request


def _refuse_twice(pairs: list[tuple[str, Any]]) -> None:
    """Problem for a name that comes twice in an object: readers of JSON keep one of its values."""
    name, times = Counter(name for name, _ in pairs or [("", None)]).most_common(1)[0]
    if times > 1:
        raise Problem(422, name[:64] or "body", f"{name[:64]!r} comes twice in an object")


def parse_query(parameters: Mapping[str, str]) -> PredictRequest:
    """Return the request of a stream of Arrow, whose fields and sets stand in the query."""
    known = ("coverage", "by_class")
    content: dict[str, Any] = {name: parameters[name] for name in known if name in parameters}
    if "fields" in parameters:
        content["fields"] = [name.strip() for name in parameters["fields"].split(",")]
    return _validate(PredictRequest, content, strict=False)


def _validate(kind: type[Request], content: dict[str, Any], strict: bool | None = None) -> Request:
    try:
        return kind.model_validate(content, strict=strict)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = "".join(f"[{x}]" if isinstance(x, int) else f".{x}" for x in first["loc"][:2])
        such = json.dumps(EXAMPLES[str(first["loc"][0])])
        raise Problem(422, where.lstrip("."), f"{first['msg']}, such as {such}") from error


def json_inputs(served: ServedModel, request: Rows) -> Inputs:
    """Return the inputs in a body of JSON; Problem if no row can be read."""
    names = served.names
    field = "matrix" if request.rows is None else "rows"
    if request.rows is not None:
        cells, rows, rejected = _cells_of_rows(request.rows, names)
    else:
        matrix = request.matrix or []
        cells, rows, rejected = _cells_of_matrix(matrix, request.columns or names, names)
    valid = np.array([_are_cells(row) for row in cells], dtype=bool)
    for i in np.flatnonzero(~valid):
        name = next(
            name for name, cell in zip(names, cells[i], strict=True) if not _are_cells([cell])
        )
        reason = "a cell must be a finite number, a text, true, false or null"
        rejected.append(RejectedRow(int(rows[i]), name, reason))
    if not valid.all():
        cells, rows = [cells[i] for i in np.flatnonzero(valid)], rows[valid]
    if cells and served.only_numbers and all(_NUMBERS.issuperset(map(type, row)) for row in cells):
        # Hundreds of columns in one step.
        values = np.array(cells, dtype=np.float64)
        X = pd.DataFrame(values, columns=names) if served.model.named else values
        return X, rows, sorted(rejected)
    columns = map(list, zip(*cells, strict=True)) if cells else ([] for _ in names)
    frame = pd.DataFrame(dict(zip(names, columns, strict=True)), dtype=object)
    return _inputs(served, frame, rows, rejected, field)


def arrow_inputs(served: ServedModel, body: bytes, settings: Settings) -> Inputs:
    """Return the inputs in a stream of Arrow; Problem if no row can be read."""
    frame = frame_of(read_stream(body, served.names, settings.rows, settings.body_bytes))
    return _inputs(served, frame, np.arange(1, len(frame) + 1), [], "rows")


def _inputs(
    served: ServedModel,
    frame: pd.DataFrame,
    rows: np.ndarray,
    rejected: list[RejectedRow],
    field: str,
) -> Inputs:
    X, valid, unreadable = served.model.inputs(frame, rows)
    rejected = sorted([*rejected, *unreadable])
    if len(X):
        return X, rows[valid], rejected
    if not rejected:
        raise Problem(422, field, "there must be a row at least")
    first = rejected[0]
    where = f"{field}[{first.row - 1}]" + f".{first.column}" * bool(first.column)
    raise Problem(422, where, f"no row can be answered; {first}", rejected=rejected)


def _are_cells(cells: Collection[Any]) -> bool:
    kinds = set(map(type, cells))
    return (
        _CELLS.issuperset(kinds)
        and (float not in kinds or all(math.isfinite(x) for x in cells if type(x) is float))
        and (int not in kinds or all(-_WHOLE <= x < _WHOLE for x in cells if type(x) is int))
    )


def _cells_of_rows(
    rows: Sequence[Any], names: Sequence[str]
) -> tuple[list[list[Any]], np.ndarray, list[RejectedRow]]:
    """Return the cells of rows that have all columns, the numbers of these, and the other rows."""
    cells, numbers, rejected = [], [], []
    hints: dict[str, str] = {}
    for i, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            rejected.append(RejectedRow(i, "", "a row must be an object, names with their values"))
            continue
        try:
            cells.append([row[name] for name in names])
            numbers.append(i)
        except KeyError:
            first, *others = (name for name in names if name not in row)
            if first not in hints and len(hints) < _MOST_HINTS:
                near = suggest_name(first, list(row)[:MOST_COMPARED])
                hints[first] = f": {near if row else 'the row is empty'}"
            also = f", nor {list_names(map(repr, others))}" if others else ""
            reason = f"is not there{also}{hints.get(first, '')}; null stands for a gap"
            rejected.append(RejectedRow(i, first, reason))
    return cells, np.array(numbers, dtype=int), rejected


def _cells_of_matrix(
    matrix: Sequence[Any], columns: Sequence[str], names: Sequence[str]
) -> tuple[list[list[Any]], np.ndarray, list[RejectedRow]]:
    """Return the cells of whole rows in the order of the model, as `_cells_of_rows` does."""
    check_columns(columns, names, "columns")
    cells, numbers, rejected = [], [], []
    for i, row in enumerate(matrix, start=1):
        if isinstance(row, list) and len(row) == len(columns):
            cells.append(row)
            numbers.append(i)
        else:
            length = f"{len(row)} cells" if isinstance(row, list) else "no list"
            reason = f"a row must be a list of {len(columns)} cells, one per column, got {length}"
            rejected.append(RejectedRow(i, "", f"{reason}; null stands for a gap"))
    if list(columns) != list(names):
        index = {name: j for j, name in enumerate(columns)}
        cells = [[row[index[name]] for name in names] for row in cells]
    return cells, np.array(numbers, dtype=int), rejected
