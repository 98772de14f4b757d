"""Why a row was flagged, in one line out of its explanation card."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._writing.numbers import number_text
from ..explanation import Card

_MOST = 2
#: A column that adds less than this share of what the first one adds is no reason.
_LEAST_SHARE = 0.1


def reason(card: Card) -> str:
    """What is new in a row; else the columns that are furthest from usual; else how rare it is."""
    if card.news:
        return "never in the training data: " + ", ".join(card.news)
    far = list(_columns(card))[:_MOST]
    if far:
        return "; ".join(far)
    return str(card).splitlines()[3].strip()


def _columns(card: Card) -> Iterator[str]:
    """Columns by what they add to the distance, in the part that finds the row rarest."""
    parts = [part for part in card.parts if part["kind"] == "gaussian"]
    if parts:
        rarest = min(parts, key=lambda part: part.get("normal_score") or 0.0)
        entries = [entry for entry in rarest["features"] if "column" in entry]
        for entry in entries:
            if entry["contribution"] >= _LEAST_SHARE * entries[0]["contribution"]:
                yield _told(entry)


def _told(entry: dict[str, Any]) -> str:
    value, usual = entry["value"], entry["usual"]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    shown = "missing" if value is None else number_text(value) if number else repr(value)
    return f"{entry['name']} = {shown}" + (f" (typical {usual})" if usual else "")
