"""Conclusions of the demo in words; every number comes from the rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .result import DemoResult, Row
from .rows import BARE, DIP, ID, NO_MODEL

#: Name and description of each OOD set in the report.
SET_TITLES = {
    "kmnist": ("K-MNIST", "handwritten Japanese characters, white on black like the digits"),
    "omniglot": ("Omniglot", "characters of many alphabets, dark on white"),
    "omniglot_inverted": ("Omniglot inverted", "the same drawings, white on black"),
}


def set_title(key: str) -> str:
    """Name of the test set or of an OOD set in the report."""
    return "digits" if key == ID else SET_TITLES[key][0]


_COUNTS = {1: "One classifier", 2: "Two classifiers", 3: "Three classifiers", 4: "Four classifiers"}
# An AUROC of a trivial detector that marks an easy set in the text.
_EASY = 0.95


@dataclass(frozen=True)
class SetFinding:
    """One OOD set: AUROC of vacuity (`dip`) and of the better bare score for each classifier.

    `trivial` is the best AUROC of a trivial detector, `flagged` the share flagged by the alarm.
    """

    title: str
    dip: tuple[float, ...]
    bare: tuple[float, ...]
    trivial: float
    trivial_by: str
    flagged: tuple[float, ...]

    @property
    def dip_range(self) -> str:
        """From the lowest to the highest AUROC of vacuity."""
        return _range(self.dip)

    @property
    def bare_range(self) -> str:
        """From the lowest to the highest AUROC of the better bare score."""
        return _range(self.bare)

    @property
    def wins(self) -> int:
        """Number of classifiers for which vacuity is ahead."""
        return sum(d > b for d, b in zip(self.dip, self.bare, strict=True))

    @property
    def easy(self) -> bool:
        """Whether a trivial detector does well."""
        return self.trivial >= _EASY

    @property
    def verdict(self) -> str:
        """Which score is ahead, in words."""
        if self.wins == len(self.dip):
            return "vacuity is ahead" + (" for every classifier" if len(self.dip) > 1 else "")
        if self.wins == 0:
            return "their own confidence is better"
        return f"vacuity is ahead for {self.wins} of {len(self.dip)} classifiers"


def findings(result: DemoResult) -> list[SetFinding]:
    """One finding per OOD set."""
    by_method: dict[str, list[Row]] = {}
    for row in result.rows:
        by_method.setdefault(row.method, []).append(row)
    trivial = [row for row in result.rows if row.model == NO_MODEL]
    found = []
    for name in result.receipt.n_ood:
        best = max(trivial, key=lambda row: row.ood[name].auroc)
        bare = zip(*(by_method[method] for method in BARE), strict=True)
        found.append(
            SetFinding(
                title=SET_TITLES[name][0],
                dip=tuple(row.ood[name].auroc for row in by_method[DIP]),
                bare=tuple(max(row.ood[name].auroc for row in pair) for pair in bare),
                trivial=best.ood[name].auroc,
                trivial_by=best.method,
                flagged=tuple(row.ood[name].flagged or 0.0 for row in by_method[DIP]),
            )
        )
    return found


def headline(result: DemoResult) -> str:
    """The conclusion, one paragraph."""
    found = findings(result)
    counts = result.receipt
    start = (
        f"{_COUNTS[len(result.models)]} learned {counts.n_train:,} digits, then saw new digits and "
        "OOD images. "
    )
    told = " ".join(
        f"On {f.title} {f.verdict}: AUROC {f.dip_range} for vacuity, {f.bare_range} for the better "
        "score of the bare classifier."
        for f in sorted(found, key=lambda f: -f.wins)
    )
    known = [row.flagged for row in result.rows if row.method == DIP and row.flagged is not None]
    flagged = ", ".join(f"{_percent(f.flagged)} of {f.title}" for f in found)
    alarm = (
        f" The alarm, set on training digits for at most {_percent([counts.false_alarm_rate])} "
        f"false alarms, flags {_percent(known)} of new digits and {flagged}.  "
    )
    return start + told + alarm + f"On new digits, {_accuracy_change(result)}."


def cautions(result: DemoResult) -> list[str]:
    """Cautions that these numbers call for."""
    found = findings(result)
    said = [
        f"{f.title} is an easy set: “{f.trivial_by}”, which ignores all shapes, reaches AUROC "
        f"{f.trivial:.3f} on it. A high AUROC on it proves little."
        for f in found
        if f.easy
    ]
    said += [
        f"On {f.title} {f.verdict}. The likely reason: its strokes are as white, thin and centred "
        "as those of digits, so their density is not low; only the shapes differ."
        for f in found
        if f.wins < len(f.dip)
    ]
    return said


def _accuracy_change(result: DemoResult) -> str:
    accuracy: dict[str, dict[str, float]] = {}
    for row in result.rows:
        if row.accuracy is not None:
            accuracy.setdefault(row.model, {})[row.method] = row.accuracy
    change = max(abs(a[DIP] - a[BARE[0]]) for a in accuracy.values())
    if change == 0:
        return "accuracy stays as it is"
    return f"accuracy changes by at most {100 * change:.1f} points"


def _range(values: Iterable[float]) -> str:
    low, high = f"{min(values := tuple(values)):.3f}", f"{max(values):.3f}"
    return low if low == high else f"{low}–{high}"


def _percent(values: Iterable[float]) -> str:
    low, high = f"{100 * min(values := tuple(values)):.0f}", f"{100 * max(values):.0f}"
    return f"{low} %" if low == high else f"{low}–{high} %"
