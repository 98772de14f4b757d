"""Why rows were flagged, in one line each out of their explanation cards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..classifier import DIPClassifier
from ..explanation import Card, explain_rarest
from ..explanation._card import column_told
from ..fitting.columns import InputColumns

_MOST = 2
#: A column that adds less than this share of what the first one adds is no reason.
_LEAST_SHARE = 0.1
#: A level or a gap that fewer rows of the fit had is unusual.
_RARE = 0.05


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
