"""Why a request is not answered: one shape for every error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import JSONResponse

from ..table.errors import list_names, suggest_name
from ..table.reading import RejectedRow

#: Names of columns come from the request, and may be long.
_LONGEST = 1_000
#: Names among which one like a missing one is looked for.
MOST_COMPARED = 200
#: Columns that a model does not know, and lists and objects of a body that are no rows.
OTHERS = 1_000


class Problem(Exception):
    """Error that a client can mend or must wait for: status, field of the request, reason."""

    def __init__(
        self,
        status: int,
        field: str,
        reason: str,
        headers: Mapping[str, str] | None = None,
        refused: Sequence[RejectedRow] = (),
    ) -> None:
        super().__init__(reason)
        self.status, self.field = status, field
        self.reason = reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]} ..."
        self.headers, self.refused = dict(headers or {}), refused

    def response(self, request_id: str) -> JSONResponse:
        """The error as the client gets it."""
        content: dict[str, Any] = {
            "status": self.status,
            "field": self.field,
            "reason": self.reason,
            "request_id": request_id,
        }
        if self.refused:
            content["refused"] = [one._asdict() for one in self.refused]
        return JSONResponse(content, self.status, self.headers)


def too_large(most: int) -> Problem:
    """A body over the limit."""
    return Problem(413, "body", f"the body must have at most {most:,} bytes; send fewer rows")


def too_many_rows(field: str, rows: int, most: int) -> Problem:
    """Rows over the limit."""
    reason = f"a request must have at most {most:,} rows, got {rows:,}; send them in parts"
    return Problem(413, field, reason)


def check_columns(given: Sequence[str], names: Sequence[str], where: str) -> None:
    """Problem unless the columns that are given are those of the model, and each is there once."""
    known = set(given)
    if len(known) < len(given):
        twice = sorted(name for name, n in Counter(given).items() if n > 1)
        raise Problem(422, "columns", f"{where} names {list_names(map(repr, twice))} twice")
    if len(given) > len(names) + OTHERS:
        reason = f"at most {OTHERS:,} columns that the model does not know, got {len(given):,}"
        raise Problem(413, "columns", f"{where} may have {reason}; leave some out")
    lacking = [name for name in names if name not in known]
    if lacking:
        told = f"{where} lacks {list_names(map(repr, lacking))} of the model"
        near = suggest_name(lacking[0], list(given)[:MOST_COMPARED])
        raise Problem(422, "columns", f"{told}: {near}; a column of nulls stands for gaps")


def none_readable(refused: Sequence[RejectedRow]) -> Problem:
    """No row that could be answered: the field is that of the first."""
    one = refused[0]
    told = f"row {one.row}, column {one.column!r}: {one.reason}"
    name = f"rows[{one.row - 1}].{one.column}"
    return Problem(422, name, f"no row can be answered; {told}", refused=refused)
