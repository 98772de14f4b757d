"""Cards of the first rows of a table."""

from __future__ import annotations

from ..explanation import Card
from .saved import TableModel
from .tables.columns import as_inputs, check_known
from .tables.reading import Refused, Table


def explained(
    model: TableModel, table: Table, most: int, top: int
) -> tuple[list[tuple[int, Card]], list[Refused]]:
    """Row number and card of the first `most` rows that can be read, and what was refused."""
    check_known(model.columns, table.names, table.path)
    cards: list[tuple[int, Card]] = []
    refused: list[Refused] = []
    for piece in table.pieces():
        some = piece.frame.iloc[: most - len(cards)]
        X, fine, odd = as_inputs(model.columns, some, piece.rows[: len(some)])
        refused += [*piece.refused, *odd]
        if len(X):
            rows = piece.rows[: len(some)][fine].tolist()
            cards += zip(rows, model.classifier.explain(X, top=top), strict=True)
        if len(cards) >= most:
            break
    return cards, refused
