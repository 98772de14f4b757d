"""Deadline of training: pause before an epoch, resume later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._checks import check_number

__all__ = ["TrainingPaused"]


class TrainingPaused(Exception):
    """Training stopped before its deadline; the checkpoint has the state to resume.

    Parameters
    ----------
    epoch : int
        Epochs done.
    epochs : int
        Total number of epochs.
    seconds_left : float
        Time that was left, less than the duration of an epoch.

    Examples
    --------
    >>> from dipedl.nn import TrainingPaused
    >>> print(TrainingPaused(3, 10, 4.2))
    paused after epoch 3 of 10 with 4.2 s left; the same call with a later deadline goes on
    """

    def __init__(self, epoch: int, epochs: int, seconds_left: float) -> None:
        # all three in args, from which an exception is rebuilt in another process
        super().__init__(epoch, epochs, seconds_left)
        self.epoch, self.epochs, self.seconds_left = epoch, epochs, seconds_left

    def __str__(self) -> str:
        return (
            f"paused after epoch {self.epoch} of {self.epochs} with {self.seconds_left:.1f} s "
            "left; the same call with a later deadline goes on"
        )


def check_deadline(deadline: Any, checkpoint: str | Path | None) -> None:
    """Raise unless `deadline` is None, or a number with a checkpoint."""
    if deadline is None:
        return
    check_number("deadline", deadline, "of seconds of time.monotonic(), or None", lambda _: True)
    if checkpoint is None:
        raise ValueError(
            "deadline needs a checkpoint, got checkpoint=None: what was trained would be lost; "
            "pass a path"
        )
