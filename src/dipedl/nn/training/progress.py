"""Progress of training: one line of text per epoch."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, TextIO

__all__ = ["TextProgress"]


@dataclass(frozen=True)
class TextProgress:
    """Prints epoch, loss, score, speed and remaining time; pass it as `progress`.

    Parameters
    ----------
    label : str, default=""
        Prefix of the lines.
    stream : file, optional
        Output; None is standard error.

    Examples
    --------
    >>> import sys
    >>> from dipedl.nn import TextProgress
    >>> show = TextProgress("digits", sys.stdout)
    >>> show({"epoch": 3, "epochs": 10, "loss": 0.25, "score": None, "rows_per_second": 1930.0,
    ...       "seconds_left": 174.0, "stopped_early": False})
    digits epoch  3/10  loss 0.25  1,930 rows/s  2 min 54 s left
    """

    label: str = ""
    stream: TextIO | None = None

    def __call__(self, report: dict[str, Any]) -> None:
        """Print the line of one epoch; `report` comes from `dipedl.nn.train`."""
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
        line = "  ".join(parts)
        print(f"{self.label} {line}".lstrip(), file=self.stream or sys.stderr, flush=True)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
