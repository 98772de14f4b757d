"""Explanations of images: pixels named by their place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..explanation import Card

_INPUT = re.compile(r"x(\d+)")


def in_places(card: Card, width: int) -> Card:
    """The card with input j of an image named "row 3, column 5", from 1 at the top left.

    `width` is that of the image in pixels; features that are no pixels keep their names.
    """
    return replace(card, parts=tuple(_placed(part, width) for part in card.parts))


def _placed(value: Any, width: int) -> Any:
    if isinstance(value, Mapping):
        return {key: _placed(item, width) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_placed(item, width) for item in value]
    pixel = _INPUT.fullmatch(value) if isinstance(value, str) else None
    return value if pixel is None else _place(int(pixel[1]), width)


def _place(j: int, width: int) -> str:
    return f"row {j // width + 1}, column {j % width + 1}"
