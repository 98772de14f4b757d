"""Problems: a request that is not answered has one shape of error."""

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
#: Columns of a request that a model does not know.
_OTHER_COLUMNS = 1_000


class Problem(Exception):
    """Error that a client can mend or must wait for: status, field of the request, reason."""

    def __init__(
        self,
        status: int,
        field: str,
        reason: str,
        headers: Mapping[str, str] | None = None,
        rejected: Sequence[RejectedRow] = (),
    ) -> None:
        super().__init__(reason)
        self.status, self.field = status, field[:_LONGEST]
        self.reason = reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]} ..."
        self.headers, self.rejected = dict(headers or {}), rejected

    def response(self, request_id: str) -> JSONResponse:
        """Return the error as the client gets it, see `schemas.Error`."""
        content: dict[str, Any] = {"status": self.status, "field": self.field}
        content |= {"reason": self.reason, "request_id": request_id}
        if self.rejected:
            content["refused"] = [row._asdict() for row in self.rejected]
        return JSONResponse(content, self.status, self.headers)


def too_large(most: int) -> Problem:
    """Return the error for a body over the limit."""
    return Problem(413, "body", f"the body must have at most {most:,} bytes; send fewer rows")


def too_many_rows(field: str, rows: int, most: int) -> Problem:
    """Return the error for rows over the limit."""
    reason = f"a request must have at most {most:,} rows, got {rows:,}; send them in parts"
    return Problem(413, field, reason)


def check_columns(columns: Sequence[str], names: Sequence[str], where: str) -> None:
    """Problem unless the columns of a request hold those of the model, and each is there once."""
    known = set(columns)
    if len(known) < len(columns):
        twice = sorted(name for name, n in Counter(columns).items() if n > 1)
        raise Problem(422, "columns", f"{where} names {list_names(map(repr, twice))} twice")
    if len(columns) > len(names) + _OTHER_COLUMNS:
        reason = f"at most {_OTHER_COLUMNS:,} columns that the model does not know"
        raise Problem(
            413, "columns", f"{where} may have {reason}, got {len(columns):,}; leave some out"
        )
    lacking = [name for name in names if name not in known]
    if lacking:
        near = suggest_name(lacking[0], list(columns)[:MOST_COMPARED])
        reason = f"{where} lacks {list_names(map(repr, lacking))} of the model: {near}"
        raise Problem(422, "columns", f"{reason}; a column of nulls stands for gaps")
