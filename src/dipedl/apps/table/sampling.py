"""Rows to learn from, in memory: all of a table, or some drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from .reading import RejectedRow, Table, join_frames


@dataclass(frozen=True)
class Sample:
    """Rows of a table with their numbers; how many it has, and which could not be read."""

    frame: pd.DataFrame
    rows: np.ndarray
    total: int
    refused: list[RejectedRow]


def sample_rows(
    table: Table,
    most: int | None = None,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Sample:
    """All rows of a table, or `most` of them, each equally likely; in their order."""
    rng = np.random.default_rng(seed)
    kept: list[_Keyed] = []
    total, refused = 0, []
    for piece in table.pieces():
        kept.append(_Keyed(piece.frame, piece.rows, rng.random(len(piece.rows))))
        total += len(piece.rows) + len(piece.refused)
        refused += piece.refused
        if most is not None and sum(len(part.rows) for part in kept) > 2 * most:
            kept = [_thinned(kept, most)]
        if progress is not None:
            progress(piece.done)
    whole = _thinned(kept, most)
    return Sample(whole.frame, whole.rows, total, refused)


class _Keyed(NamedTuple):
    """Rows with their numbers, and a random key for each."""

    frame: pd.DataFrame
    rows: np.ndarray
    keys: np.ndarray


def _thinned(parts: list[_Keyed], most: int | None) -> _Keyed:
    """The rows with the smallest keys: a sample without replacement of all so far."""
    frames = [part.frame for part in parts if len(part.rows)] or [pd.DataFrame()]
    whole = join_frames(frames)
    rows, keys = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    if most is None or len(rows) <= most:
        return _Keyed(whole, rows, keys)
    kept = np.sort(np.argpartition(keys, most - 1)[:most])
    return _Keyed(whole.iloc[kept].reset_index(drop=True), rows[kept], keys[kept])
