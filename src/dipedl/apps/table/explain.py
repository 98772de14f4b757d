"""Explanations of answers: cards of the first rows of a table, or of one row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...explanation import Card
from .columns import as_inputs, check_known
from .errors import UserError
from .images import FILE
from .reading import RejectedRow, Table
from .table_model import TableModel


class ExplainedRow(NamedTuple):
    """The card of a row by its number; of an image by its file too."""

    row: int
    file: str
    card: Card


def explain_rows(
    model: TableModel, table: Table, most: int, top: int, row: int | None = None
) -> tuple[list[ExplainedRow], list[RejectedRow]]:
    """Explain the first `most` rows that can be read, or row `row` alone; and what was refused."""
    check_known(model.columns, table.names, table.path)
    cards: list[ExplainedRow] = []
    refused: list[RejectedRow] = []
    last, most = 0, most if row is None else 1
    for piece in table.pieces():
        at = np.arange(len(piece.frame)) if row is None else np.flatnonzero(piece.rows == row)
        at = at[: most - len(cards)]
        some = piece.frame.iloc[at].reset_index(drop=True)
        X, fine, odd = as_inputs(model.columns, some, piece.rows[at])
        refused += [one for one in [*piece.refused, *odd] if row in (None, one.row)]
        last = max([last, int(piece.rows.max(initial=0)), *(one.row for one in piece.refused)])
        if len(X):
            rows = piece.rows[at][fine].tolist()
            files = some[FILE][fine].tolist() if model.of_images else [""] * len(rows)
            cards += map(ExplainedRow, rows, files, cards_of(model, X, top))
        if len(cards) >= most:
            return cards, [one for one in refused if one.row < cards[-1].row]
    if row is not None and not refused:
        raise UserError(f"row {row}: {table.path} has rows 1 to {last:,}")
    return cards, refused


def cards_of(model: TableModel, X: Any, top: int) -> list[Card]:
    """Return cards of inputs X (n, d) that name training rows as their file does."""
    try:
        return list(model.classifier.explain(X, top=top))
    except IndexError as error:
        raise UserError(
            f"the file of the model lists {len(model.rows):,} training rows, fewer than it learned "
            "from: copy it again, or fit it again"
        ) from error
