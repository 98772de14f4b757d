"""Why rows got their answers: cards of the first rows of a table, and a line for flagged ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..classifier import DIPClassifier
from ..explanation import Card, explain_rarest
from ..explanation._card import column_told
from ..fitting.columns import InputColumns
from .saved import TableModel
from .tables.columns import as_inputs, check_known
from .tables.images import FILE
from .tables.mistake import Mistake
from .tables.reading import Refused, Table

_MOST = 2
#: A column that adds less than this share of what the first one adds is no reason.
_LEAST_SHARE = 0.1
#: A level or a gap that fewer rows of the fit had is unusual.
_RARE = 0.05


class Explained(NamedTuple):
    """The card of a row by its number; of an image by its file too."""

    row: int
    file: str
    card: Card


def explained(
    model: TableModel, table: Table, most: int, top: int
) -> tuple[list[Explained], list[Refused]]:
    """The first `most` rows that can be read, and what was refused."""
    check_known(model.columns, table.names, table.path)
    cards: list[Explained] = []
    refused: list[Refused] = []
    for piece in table.pieces():
        some = piece.frame.iloc[: most - len(cards)]
        X, fine, odd = as_inputs(model.columns, some, piece.rows[: len(some)])
        refused += [*piece.refused, *odd]
        if len(X):
            rows = piece.rows[: len(some)][fine].tolist()
            files = some[FILE][fine].tolist() if model.of_images else [""] * len(rows)
            cards += map(Explained, rows, files, cards_of(model, X, top))
        if len(cards) >= most:
            return cards, [one for one in refused if one.row < cards[-1].row]
    return cards, refused


def cards_of(model: TableModel, X: Any, top: int) -> list[Card]:
    """Cards of inputs X (n, d) that name training rows as their file does, if there is one."""
    cards = list(model.classifier.explain(X, top=top))
    try:
        return [in_rows_of_file(card, model.rows) for card in cards] if len(model.rows) else cards
    except IndexError as error:
        raise Mistake(
            f"the file of the model lists {len(model.rows):,} training rows, fewer than it learned "
            "from: copy it again, or fit it again"
        ) from error


def in_rows_of_file(card: Card, rows: np.ndarray) -> Card:
    """The card with the numbers that training rows have in their file."""
    return replace(card, parts=tuple(_renumbered(part, rows) for part in card.parts))


def _renumbered(part: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    made = dict(part)
    if "blocks" in part:
        made["blocks"] = [_renumbered(block, rows) for block in part["blocks"]]
    if "background" in part:
        made["background"] = _renumbered(part["background"], rows)
    if "neighbours" in part:
        made["neighbours"] = [{**e, "row": int(rows[e["row"]])} for e in part["neighbours"]]
    return made


def reasons(clf: DIPClassifier, X: Any) -> list[str]:
    """What is new in each row of X (n, d); else its least usual columns; else how rare it is."""
    return [_reason(card, clf.evidence_.columns_) for card in explain_rarest(clf, X)]


def _reason(card: Card, columns: InputColumns | None) -> str:
    if card.news:
        return "never in the training data: " + ", ".join(card.news)
    far = list(_far(card))
    if far:
        unusual = [entry for entry in far if columns is None or _is_unusual(entry, columns)]
        return "; ".join(map(_told, (unusual or far)[:_MOST]))
    return str(card).splitlines()[3].strip()


def _far(card: Card) -> Iterator[dict[str, Any]]:
    """Columns by what they add to the distance, in the part that finds the row rarest."""
    for part in card.parts:
        entries = [entry for entry in part["features"] if "column" in entry]
        for entry in entries:
            if entry["contribution"] >= _LEAST_SHARE * entries[0]["contribution"]:
                yield entry


def _is_unusual(entry: dict[str, Any], columns: InputColumns) -> bool:
    """Whether a value lies outside its typical range, or is had by few rows of the fit."""
    c, value = entry["column"], entry["value"]
    if value is None:
        return bool(columns.missing[c] < _RARE)
    if c in columns.levels:
        return columns.levels[c].get(value, 0.0) < _RARE
    return not columns.low[c] <= value <= columns.high[c]


def _told(entry: dict[str, Any]) -> str:
    usual = entry["usual"]
    return column_told(entry) + (f" (typical {usual})" if usual else "")
