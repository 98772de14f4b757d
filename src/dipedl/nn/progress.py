"""A line of text about the last epoch of a training."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TextIO

from ..writing.live_line import LiveLine

__all__ = ["TextProgress"]


@dataclass(frozen=True)
class TextProgress:
    """Shows epoch, loss, score, speed and remaining time; pass it as `progress`.

    In a terminal and in a notebook one line is rewritten; a log gets a line every ten seconds, and
    that of the last epoch.

    Parameters
    ----------
    label : str, default=""
        Prefix of the line.
    stream : file, optional
        Output; None is standard error, or the output of the notebook's cell.

    Examples
    --------
    >>> import sys
    >>> from dipedl.nn import TextProgress
    >>> show = TextProgress("digits", sys.stdout)
    >>> show({"epoch": 10, "epochs": 10, "loss": 0.25, "score": None, "rows_per_second": 1930.0,
    ...       "seconds_left": 0.0, "stopped_early": False})
    digits epoch 10/10  loss 0.25  1,930 rows/s  0 s left
    """

    label: str = ""
    stream: TextIO | None = None

    def __call__(self, report: dict[str, Any]) -> None:
        """Show an epoch; `report` comes from `dipedl.nn.train`."""
        parts = [
            *([f"member {report['member']}/{report['members']}"] if "member" in report else []),
            f"epoch {report['epoch']:>{len(str(report['epochs']))}}/{report['epochs']}",
            f"loss {report['loss']:.4g}",
            *([] if report["score"] is None else [f"score {report['score']:.4g}"]),
            f"{report['rows_per_second']:,.0f} rows/s",
            "stopped early"
            if report["stopped_early"]
            else f"{_clock(report['seconds_left'])} left",
        ]
        last = report["stopped_early"] or report["epoch"] == report["epochs"]
        self._line.show(f"{self.label} {'  '.join(parts)}".lstrip(), last=last)

    @cached_property
    def _line(self) -> LiveLine:
        return LiveLine(self.stream)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
