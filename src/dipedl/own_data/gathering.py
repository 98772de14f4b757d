"""Rows to learn from, in memory: all of a table, or some drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .tables.reading import Refused, Table


@dataclass(frozen=True)
class Gathered:
    """Rows of a table with their numbers; how many it has, and which could not be read."""

    frame: pd.DataFrame
    rows: np.ndarray
    total: int
    refused: list[Refused]


def gathered(
    table: Table,
    most: int | None = None,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Gathered:
    """All rows of a table, or `most` of them, each equally likely; in their order."""
    rng = np.random.default_rng(seed)
    frame, rows, keys = pd.DataFrame(), np.array([], dtype=int), np.array([])
    total, refused = 0, []
    waiting: list[tuple[pd.DataFrame, np.ndarray]] = []
    for piece in table.pieces():
        waiting.append((piece.frame, piece.rows))
        total += len(piece.rows) + len(piece.refused)
        refused += piece.refused
        if most is not None and sum(len(r) for _, r in waiting) > most:
            frame, rows, keys = _thinned(frame, rows, keys, waiting, most, rng)
            waiting = []
        if progress is not None:
            progress(piece.done)
    frame, rows, _ = _thinned(frame, rows, keys, waiting, most, rng)
    return Gathered(frame, rows, total, refused)


def _thinned(
    frame: pd.DataFrame,
    rows: np.ndarray,
    keys: np.ndarray,
    waiting: list[tuple[pd.DataFrame, np.ndarray]],
    most: int | None,
    rng: np.random.Generator,
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """The rows with the smallest of random keys: a sample without replacement of all so far."""
    frames = [part for part in [frame, *(f for f, _ in waiting)] if len(part)]
    if not frames:
        return frame, rows, keys
    whole = pd.concat(frames, ignore_index=True)
    numbers = np.concatenate([rows, *(r for _, r in waiting)])
    drawn = np.concatenate([keys, rng.random(len(numbers) - len(keys))])
    if most is None or len(whole) <= most:
        return whole, numbers, drawn
    kept = np.sort(np.argpartition(drawn, most - 1)[:most])
    return whole.iloc[kept].reset_index(drop=True), numbers[kept], drawn[kept]
