"""Why rows were flagged, in one line each out of their explanation cards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._writing.numbers import number_text
from ..classifier import DIPClassifier
from ..explanation import Card, explain_rarest

_MOST = 2
#: A column that adds less than this share of what the first one adds is no reason.
_LEAST_SHARE = 0.1


def reasons(clf: DIPClassifier, X: Any) -> list[str]:
    """What is new in each row of X (n, d); else its least usual columns; else how rare it is."""
    return [_reason(card) for card in explain_rarest(clf, X)]


def _reason(card: Card) -> str:
    if card.news:
        return "never in the training data: " + ", ".join(card.news)
    far = list(_columns(card))[:_MOST]
    if far:
        return "; ".join(far)
    return str(card).splitlines()[3].strip()


def _columns(card: Card) -> Iterator[str]:
    """Columns by what they add to the distance, in the part that finds the row rarest."""
    for part in card.parts:
        entries = [entry for entry in part["features"] if "column" in entry]
        for entry in entries:
            if entry["contribution"] >= _LEAST_SHARE * entries[0]["contribution"]:
                yield _told(entry)


def _told(entry: dict[str, Any]) -> str:
    value, usual = entry["value"], entry["usual"]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    shown = "missing" if value is None else number_text(value) if number else repr(value)
    return f"{entry['name']} = {shown}" + (f" (typical {usual})" if usual else "")
