"""Report of a monitor: plain values, a page of text, a page for a notebook."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from ...writing.notebook import frame, table
from .windows import Estimate, Window

#: Names of the tests for readers.
TESTS = {"p_values": "p-values", "uncertainty": "uncertainty", "flagged": "flagged rows"}


@dataclass(frozen=True)
class DriftReport:
    """The state of a stream after a batch; ``str()`` gives a page.

    Attributes
    ----------
    rows, batches : int
        Seen so far.
    alarms : tuple of str
        Tests that have raised an alarm, now or before: "p_values", "uncertainty", "flagged". It is
        false with probability `false_alarm_rate` at most, all tests and all times together.
    evidence : dict of str to float
        Of each test, logarithm of the wealth against "no change", in nats.
    highest, limits : dict of str to float
        Its largest value so far, and where it raises an alarm.
    window : Window or None
        The last window. In each, the expected share of false ones among the columns (and p-values)
        that are named is `false_alarm_rate` at most; over many windows such false ones add up: a
        hint where to look, not an alarm.
    windows : int
        Windows so far, of the last 400.
    windows_differ : int
        Those in which p-values or a column differ.
    estimated_accuracy : Estimate or None
        Without labels, from all rows: the share of right answers that held-out rows of the same
        confidence had. The interval reaches from there to the share by the confidence with the
        evidence, as if the classifier guessed on rows that are new, and sampling beyond both.
    accuracy, brier : Estimate or None
        Of the rows that came with labels.
    false_alarm_rate : float
    reference : str
        Where the reference came from.
    """

    rows: int
    batches: int
    alarms: tuple[str, ...]
    evidence: dict[str, float]
    highest: dict[str, float]
    limits: dict[str, float]
    window: Window | None
    windows: int
    windows_differ: int
    estimated_accuracy: Estimate | None
    accuracy: Estimate | None
    brier: Estimate | None
    false_alarm_rate: float
    reference: str

    @property
    def alarm(self) -> bool:
        """Return whether any test has raised an alarm."""
        return bool(self.alarms)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that ``json.dump`` takes."""
        return {"alarm": self.alarm, **asdict(self)}

    def gauges(self) -> dict[str, float]:
        """Numbers by names such as Prometheus takes; a value that is not known is left out."""
        found = {
            "drift_alarm": float(self.alarm),
            "drift_rows": float(self.rows),
            "drift_windows_differ": float(self.windows_differ),
        }
        found |= {f"drift_evidence_{name}_nats": value for name, value in self.evidence.items()}
        estimates = ("estimated_accuracy", "accuracy", "brier")
        known = {name: getattr(self, name) for name in estimates}
        found |= {f"drift_{name}": one.value for name, one in known.items() if one is not None}
        if self.window is not None:
            if self.window.estimated_accuracy is not None:
                found["drift_window_estimated_accuracy"] = self.window.estimated_accuracy.value
            found["drift_window_ks_distance"] = self.window.distance
            found["drift_window_uncertainty_mean"] = self.window.uncertainty
            found["drift_window_flagged_share"] = self.window.flagged
            found["drift_window_columns_changed"] = float(len(self.window.changed))
        return found

    def __str__(self) -> str:
        """Return a page for readers."""
        return "\n".join(f"{name + ':':<24}{value}" for name, value in self._lines())

    def _repr_html_(self) -> str:
        """Return the page for a notebook."""
        rows = [(escape(name), escape(value)) for name, value in self._lines()]
        return frame(table("Drift of a stream", ("", ""), rows))

    def _lines(self) -> list[tuple[str, str]]:
        alarms = ", ".join(TESTS[name] for name in self.alarms)
        lines = [
            ("Alarm", f"YES, by {alarms}" if alarms else "no"),
            ("Rows", f"{self.rows:,} in {self.batches:,} batch{'es' * (self.batches != 1)}"),
            ("Reference", self.reference),
        ]
        lines += [
            (f"Evidence, {title}", f"{self.evidence[n]:.1f} nats, alarm at {self.limits[n]:.1f}")
            for n, title in TESTS.items()
        ]
        lines += self._window_lines()
        estimates = {
            "Estimated accuracy": self.estimated_accuracy,
            "Accuracy": self.accuracy,
            "Accuracy, last window": self.window.accuracy if self.window else None,
            "Brier score": self.brier,
        }
        lines += [
            (name, f"{e.value:.3f}, 95 % interval {e.low:.3f} to {e.high:.3f}, {e.rows:,} rows")
            for name, e in estimates.items()
            if e is not None
        ]
        if self.alarms and self.estimated_accuracy is not None:
            why = "a classifier may be sure of new kinds of rows: after an alarm, label some"
            lines.append(("On the estimate", why))
        return lines

    def _window_lines(self) -> list[tuple[str, str]]:
        w = self.window
        if w is None:
            return []
        changed = ", ".join(f"{name} (PSI {psi:.2f})" for name, psi in w.changed[:5]) or "none"
        more = f" and {len(w.changed) - 5} more" if len(w.changed) > 5 else ""
        distance = f"KS distance {w.distance:.3f}{', differs' if w.differs else ''}"
        return [
            ("Windows that differ", f"{self.windows_differ} of {self.windows}"),
            ("Last window", f"rows {w.first:,} to {w.last:,}: p-values: {distance}"),
            ("Columns changed", changed + more),
        ]
