"""Conclusions of the demo in words; every number comes from the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


_COUNTS = {2: "two", 3: "three", 4: "four"}
_ALONE = {
    False: "The classifier alone, flagging the drawings it is least sure of, with as many false "
    "alarms, finds {}.",
    True: "The classifiers alone, flagging the drawings they are least sure of, with as many false "
    "alarms, find {}.",
}
# An AUROC of a trivial detector that marks an easy set in the text.
_EASY = 0.95
# Of 100, how many must be flagged to leave the misses unmentioned.
_FEW_MISSES = 90
ENTROPY = BARE[1]


@dataclass(frozen=True)
class SetFinding:
    """One OOD set: the share flagged by dipedl (`dip`) and by bare entropy, for each classifier.

    `trivial` is the best AUROC of a trivial detector.
    """

    title: str
    dip: tuple[float, ...]
    bare: tuple[float, ...]
    trivial: float
    trivial_by: str

    @property
    def lead(self) -> float:
        """By how much the mean share of dipedl exceeds that of the entropy."""
        return _mean(self.dip) - _mean(self.bare)

    @property
    def wins(self) -> int:
        """Number of classifiers for which dipedl flags more."""
        return sum(d > b for d, b in zip(self.dip, self.bare, strict=True))

    @property
    def easy(self) -> bool:
        """Return whether a trivial detector does well."""
        return self.trivial >= _EASY

    @property
    def verdict(self) -> str:
        """Which of the two flags more, in words."""
        if self.wins == len(self.dip):
            return "dipedl flags more" + (" for every classifier" if len(self.dip) > 1 else "")
        if self.wins == 0:
            return "the classifier's own entropy flags as many or more"
        return f"dipedl flags more for {self.wins} of {len(self.dip)} classifiers"


def findings(result: DemoResult) -> list[SetFinding]:
    """One finding per OOD set."""
    by_method: dict[str, list[Row]] = {}
    for row in result.rows:
        by_method.setdefault(row.method, []).append(row)
    trivial = [row for row in result.rows if row.model == NO_MODEL]
    found = []
    for name in result.receipt.n_ood:
        best = max(trivial, key=lambda row: row.ood[name].auroc)
        found.append(
            SetFinding(
                title=SET_TITLES[name][0],
                dip=tuple(row.ood[name].flagged or 0.0 for row in by_method[DIP]),
                bare=tuple(row.ood[name].flagged or 0.0 for row in by_method[ENTROPY]),
                trivial=best.ood[name].auroc,
                trivial_by=best.method,
            )
        )
    return found


def headline(result: DemoResult) -> str:
    """The conclusion in three sentences, for a reader who knows none of the metrics."""
    found = findings(result)
    known = [row.flagged or 0.0 for row in result.rows if row.method == DIP]
    ours = of_hundred(share for f in found for share in f.dip)
    alone = of_hundred(share for f in found for share in f.bare)
    several = len(result.models) > 1
    of = f" (mean of {_COUNTS[len(result.models)]} classifiers)" if several else ""
    return (
        f"Of 100 drawings that are no digits dipedl flags {ours}; of 100 new digits "
        f"{of_hundred(known)}{of}. {_ALONE[several].format(alone)} {_where(found)}"
    )


def _where(found: Sequence[SetFinding]) -> str:
    """The third sentence: on which set the lead is largest, and on which smallest."""
    best, worst = max(found, key=lambda f: f.lead), min(found, key=lambda f: f.lead)
    return f"It gains most on {_against(best)}, and {_least(worst)} on {_against(worst)}."


def _least(worst: SetFinding) -> str:
    return "least" if worst.lead > 0 else "loses" if worst.lead < 0 else "nothing"


def _against(one: SetFinding) -> str:
    return f"{one.title} ({of_hundred(one.dip)} against {of_hundred(one.bare)})"


def of_hundred(shares: Iterable[float]) -> str:
    """The mean of shares as a count out of 100."""
    return f"{100 * _mean(tuple(shares)):.0f}"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


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
        f"Of 100 images of {f.title} dipedl misses {of_hundred(1 - share for share in f.dip)}; "
        f"{f.verdict}. The likely reason for the misses: white, thin and centred strokes like a "
        "digit's; only shapes differ."
        for f in found
        if 100 * _mean(f.dip) < _FEW_MISSES
    ]
    said += _surer(result)
    said.append(f"On new digits, {_accuracy_change(result)}{_ece_change(result)}.")
    return said


def _surer(result: DemoResult) -> list[str]:
    """OOD sets on which probabilities with the evidence are surer than without, by classifier."""
    rows = {(row.model, row.method): row for row in result.rows}
    said = []
    for name in result.receipt.n_ood:
        surer = [
            model.title
            for model in result.models
            if (rows[model.name, DIP].ood[name].brier or 0)
            > (rows[model.name, ENTROPY].ood[name].brier or 0)
        ]
        if surer:
            said.append(
                f"On {SET_TITLES[name][0]} the probabilities are surer with dipedl than without "
                f"for: {', '.join(surer)}. There the classifier alone is the more cautious one."
            )
    return said


def _by_method(result: DemoResult, name: str) -> dict[str, dict[str, float]]:
    """A score of the new digits by model, and in it by method."""
    found: dict[str, dict[str, float]] = {}
    for row in result.rows:
        value = getattr(row, name)
        if value is not None:
            found.setdefault(row.model, {})[row.method] = value
    return found


def _accuracy_change(result: DemoResult) -> str:
    accuracy = _by_method(result, "accuracy")
    change = max(abs(a[DIP] - a[BARE[0]]) for a in accuracy.values())
    if change == 0:
        return "accuracy stays as it is"
    return f"accuracy changes by at most {100 * change:.1f} points"


def _ece_change(result: DemoResult) -> str:
    """For which classifiers confidence is farther from accuracy with the evidence than without."""
    titles = {model.name: model.title for model in result.models}
    worse = [
        f"{titles[name]} ({e[BARE[0]]:.3f} to {e[DIP]:.3f})"
        for name, e in _by_method(result, "ece").items()
        if round(e[DIP], 3) > round(e[BARE[0]], 3)
    ]
    if not worse:
        return " and confidence is no farther from it than before (ECE)"
    return f", and confidence is farther from it than before (ECE) for: {', '.join(worse)}"
