"""Rows in memory: all of a table, or some drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .reading import RejectedRow, Table


@dataclass(frozen=True)
class Sample:
    """Rows of a table with their numbers; how many it has, and which could not be read."""

    frame: pd.DataFrame
    rows: np.ndarray
    total: int
    refused: list[RejectedRow]


def sample_rows(table: Table, most: int | None = None, seed: int = 0) -> Sample:
    """Return all rows of a table, or `most` of them, each equally likely; in their order."""
    rng = np.random.default_rng(seed)
    frames: list[pd.DataFrame] = []
    keys: list[pd.Series] = []
    total, refused = 0, []
    for piece in table.pieces():
        # The rows with the smallest keys are a sample without replacement of all so far.
        frames.append(piece.frame.set_axis(piece.rows))
        keys.append(pd.Series(rng.random(len(piece.rows)), index=piece.rows))
        total += len(piece.rows) + len(piece.refused)
        refused += piece.refused
        if most is not None and sum(map(len, keys)) > 2 * most:
            smallest = pd.concat(keys).nsmallest(most).sort_index()
            frames, keys = [pd.concat(frames).loc[smallest.index]], [smallest]
    frame, key = pd.concat([f for f in frames if len(f)] or [pd.DataFrame()]), pd.concat(keys)
    if most is not None and len(frame) > most:
        frame = frame.loc[key.nsmallest(most).sort_index().index]
    return Sample(frame.reset_index(drop=True), frame.index.to_numpy(dtype=int), total, refused)
