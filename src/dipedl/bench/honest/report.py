"""The study as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .table import StudyTable


def render(table: StudyTable, rows: Sequence[Mapping[str, Any]]) -> str:
    raise NotImplementedError
