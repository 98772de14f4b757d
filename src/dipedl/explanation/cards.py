"""Cards: why one input got its answer, as values, as text and for a notebook."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from ..dirichlet import Dirichlet, leading_classes, sum_other_classes
from ..writing.notebook import bar, frame, probability, table
from ..writing.text import number_text, one_line, percent, plain

_MOST_CLASSES = 3
#: With more classes, this many have bars and the others are summed.
_MOST_BARS = 11
_MOST_CARDS = 10
_WIDTH = 88
#: A mean of less than this share of the value is what rounding left of zero.
_NOISE = 1e-10
_BAR = 240
_NO_DENSITY = "  no density: reasons by column are not available"
_ONLY_A_SCORE = "  its density gives a score alone: reasons by column are not available"
#: A column that adds less than this share of what the first one adds is no reason.
_LEAST_SHARE = 0.1
_MOST_REASONS = 2
_COLUMNS = ("class", "95 % interval (mark: alone)", "with the evidence", "classifier alone")


@dataclass(frozen=True, eq=False, kw_only=True)
class AnswerCard:
    """Base of cards: the answer to one input, how rare the input is, and readings of a density.

    Attributes
    ----------
    class_names : tuple of str, length k
        The classes.
    label : str
        The answer.
    p_value : float
        Conformal p-value of "this input is like the training data".
    held_out : float
        Held-out inputs that the p-value was taken from.
    false_alarm_rate : float
        The input is flagged if the p-value is at most this.
    parts : tuple of dict
        Reading of each part of the density: for Gaussians the squared Mahalanobis distance to the
        nearest class and the columns that add most beyond what they add on average ("expected"),
        with their values, what is usual in the units of the inputs, the "share" of the training
        rows that had this level or gap, and whether the value is "unusual"; for neighbours the
        nearest training rows (numbered as in ``fit``) and their distances.
    """

    class_names: tuple[str, ...]
    label: str
    p_value: float
    held_out: float
    false_alarm_rate: float
    parts: tuple[dict[str, Any], ...]

    @property
    def flagged(self) -> bool:
        """True if the input is flagged as OOD."""
        return self.p_value <= self.false_alarm_rate

    def by_class(self, P: np.ndarray) -> dict[str, float]:
        """Return probabilities P (k,) by the names of the classes."""
        return dict(zip(self.class_names, P, strict=True))

    def answer_and_rarity(self, P: np.ndarray, order: np.ndarray) -> list[str]:
        """Return two lines: the answer with its first classes, and how rare the input is.

        The classes have probabilities P (k,) and are named in this order.
        """
        named = ((one_line(self.class_names[c]), P[c]) for c in order[:_MOST_CLASSES])
        first = ", ".join(f"{name} {share:.1%}" for name, share in named)
        verdict = "flagged as OOD" if self.flagged else "not flagged"
        fewer = self.p_value * (self.held_out + 1) - 1
        held_out = f"{self.held_out:,.0f} held-out inputs"
        among = (
            f"none of {held_out} is less typical"
            if fewer < 0.5
            else f"{fewer:,.0f} of {held_out} are no more typical"
        )
        return [
            f"Answer {self.label!r}: {first}",
            f"  p-value {self.p_value:.3g}: {among} ({verdict} at {self.false_alarm_rate:.3g})",
        ]


@dataclass(frozen=True, eq=False, kw_only=True)
class Card(AnswerCard):
    """The answer to one input, and the reasons for it; beside those of every card it has these.

    Attributes
    ----------
    classifier_proba : ndarray, shape (k,)
        Probabilities of the classifier alone.
    dirichlet : Dirichlet
        The whole answer, of one input.
    evidence, n : float
        Evidence in equivalent training samples, and the number of training samples.
    score, typical_score : float
        Score of the density (nats, for a log-density), and the median of held-out inputs.
    news : tuple of str
        Values that the fit never saw in any row: levels of a column, a gap in a column without
        gaps, a number that some part of the model cannot compute with.
    """

    classifier_proba: np.ndarray
    dirichlet: Dirichlet
    evidence: float
    n: float
    score: float
    typical_score: float
    news: tuple[str, ...] = ()

    @property
    def mean(self) -> np.ndarray:
        """Class probabilities: the posterior mean, shape (k,)."""
        return np.asarray(self.dirichlet.mean[0])

    @property
    def vacuity(self) -> float:
        """Share of the prior in the answer."""
        return float(np.asarray(self.dirichlet.vacuity)[0])

    @property
    def reason(self) -> str:
        """New or least usual values of the input in words; "" where no column stands out.

        Levels that the fit never saw; else the values that few training rows had, of those that add
        most to the distance in the part that finds the input rarest; else, if the distance is
        larger than expected, the numbers that are unusual beside the others alone.
        """
        if self.news:
            return f"never in the training data: {', '.join(self.news)}"
        gaussians = [part for part in self.parts if part["kind"] == "gaussian"]
        if not gaussians:
            return ""
        part = min(gaussians, key=lambda part: part.get("normal_score") or 0.0)
        far = list(_far(part["features"]))
        unusual = [_with_usual(entry) for entry in far if entry["unusual"]]
        if unusual:
            return "; ".join(unusual[:_MOST_REASONS])
        numbers = [
            _with_usual(entry)
            for entry in far
            if entry["value"] is not None and entry["share"] is None and entry["usual"]
        ]
        if numbers and part["squared_distance"] > part["expected"]:
            return f"unusual beside the other columns: {', '.join(numbers[:_MOST_REASONS])}"
        return ""

    def with_row_numbers(self, rows: np.ndarray) -> Card:
        """Return the card with the numbers (n,) that training rows have in their file."""
        return replace(self, parts=tuple(_renumber(part, rows) for part in self.parts))

    def summary(self) -> str:
        """Return three lines: the answer, how rare the input is, and why or how much evidence."""
        why = "flagged because" if self.flagged else "least usual:"
        reason = f"  {why} {self.reason}" if self.reason else _evidence(self)
        # Far from all data the mean ties, and the classifier decides.
        order = np.lexsort((-self.classifier_proba, -self.mean.round(12)))
        return "\n".join([*self.answer_and_rarity(self.mean, order), reason])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that ``json.dump`` takes; what is not finite becomes text."""
        names = "evidence n vacuity p_value held_out false_alarm_rate flagged score typical_score"
        values = {
            "label": self.label,
            "proba": self.by_class(self.mean),
            "classifier_proba": self.by_class(self.classifier_proba),
            **{name: getattr(self, name) for name in names.split()},
            "parts": self.parts,
            "news": self.news,
        }
        return dict(plain(values))

    def __str__(self) -> str:
        """Return the card as text: its `summary`, then the details."""
        return "\n".join([self.summary(), *_details(self), *_all_parts(self)])

    def _repr_html_(self) -> str:
        """Return the card for a notebook."""
        return frame(_as_html(self))


@dataclass(frozen=True, eq=False, kw_only=True)
class BaselineCard(AnswerCard):
    """The answer of a baseline to one input; beside those of every card it has these.

    Attributes
    ----------
    method : str
        Name of the method.
    proba : ndarray, shape (k,)
        Probabilities of the method.
    dirichlet : Dirichlet or None
        The whole answer, of one input, where the method gives one.
    uncertainty, typical_uncertainty : float
        Uncertainty by the method, higher is less sure, and the median of held-out inputs.
    """

    method: str
    proba: np.ndarray
    dirichlet: Dirichlet | None
    uncertainty: float
    typical_uncertainty: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that ``json.dump`` takes; what is not finite becomes text."""
        vacuity = {} if self.dirichlet is None else {"vacuity": float(self.dirichlet.vacuity[0])}
        names = "uncertainty typical_uncertainty p_value held_out false_alarm_rate flagged"
        values = {
            "method": self.method,
            "label": self.label,
            "proba": self.by_class(self.proba),
            **vacuity,
            **{name: getattr(self, name) for name in names.split()},
            "parts": self.parts,
        }
        return dict(plain(values))

    def __str__(self) -> str:
        """Return the card as text: its `summary`, then the details."""
        lines = [self.summary()]
        if self.dirichlet is not None:
            lines.append(f"  {float(self.dirichlet.vacuity[0]):.1%} of the answer is the prior")
        reasons = [line for part in self.parts for line in _part_lines(part)]
        return "\n".join(lines + (reasons or [_ONLY_A_SCORE if self.parts else _NO_DENSITY]))

    def summary(self) -> str:
        """Return three lines: the answer, how rare the input is, and the method's uncertainty."""
        own = f"{self.uncertainty:.4g}, typically {self.typical_uncertainty:.4g}"
        lines = self.answer_and_rarity(self.proba, np.argsort(-self.proba))
        return "\n".join([*lines, f"  uncertainty by {self.method} {own}"])


def _renumber(part: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    renumbered = dict(part)
    if "blocks" in part:
        renumbered["blocks"] = [_renumber(block, rows) for block in part["blocks"]]
    if "background" in part:
        renumbered["background"] = _renumber(part["background"], rows)
    if "neighbours" in part:
        renumbered["neighbours"] = [{**e, "row": int(rows[e["row"]])} for e in part["neighbours"]]
    return renumbered


class Cards(list[Card]):
    """Cards of several inputs: a list, of which a notebook shows the first."""

    def _repr_html_(self) -> str:
        """Return the first cards, one below the other, for a notebook."""
        head = self[:_MOST_CARDS]
        more = f"<p>The first {len(head)} of {len(self):,} cards.</p>"
        return frame(*map(_as_html, head), more * (len(self) > len(head)))


def _as_html(card: Card) -> str:
    head, *facts = (*card.summary().splitlines(), *_details(card))
    # Of many classes the leading ones have bars, and all others one.
    first = leading_classes(np.stack([card.mean, card.classifier_proba]), _MOST_BARS)
    left = len(card.class_names) - len(first)
    names = [*(card.class_names[i] for i in first), *[f"other {left}"] * (left > 0)]
    dirichlet = Dirichlet(sum_other_classes(card.dirichlet.concentration, first))
    alone = sum_other_classes(card.classifier_proba[None], first)[0]
    low, high = dirichlet.credible_interval()
    ends = zip(dirichlet.mean[0], low[0], high[0], strict=True)
    rows = (
        [escape(name), bar(name, *of, _BAR, mark=p), *(escape(probability(x)) for x in (of[0], p))]
        for name, of, p in zip(names, ends, alone, strict=True)
    )
    flag = "<mark>flagged as OOD</mark>" if card.flagged else ""
    parts = _text("\n".join(_all_parts(card)))
    folded = f"<details><summary>What the density saw</summary>{parts}</details>"
    return "".join([table(head, _COLUMNS, rows), flag, _text("\n".join(facts)), folded])


def _text(lines: str) -> str:
    return f"<pre>{escape(textwrap.dedent(lines))}</pre>"


def _evidence(card: Card) -> str:
    evidence = f"{card.evidence:,.0f}" if card.evidence >= 10 else f"{card.evidence:.2g}"
    return (
        f"  evidence: {evidence} of {card.n:,.0f} equivalent training samples; "
        f"{card.vacuity:.1%} of the answer is the prior"
    )


def _details(card: Card) -> Iterator[str]:
    first = int(card.classifier_proba.argmax())
    name, share = one_line(card.class_names[first]), card.classifier_proba[first]
    yield f"  classifier alone: {name} {share:.1%}"
    if card.reason:
        yield _evidence(card)
    yield f"  score of the density {card.score:.4g}, typically {card.typical_score:.4g}"


def _far(features: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield columns that add more than on average, by how much."""
    entries = [entry for entry in features if "column" in entry]
    more = [entry["contribution"] - entry["expected"] for entry in entries]
    for entry, beyond in zip(entries, more, strict=True):
        if beyond > 0 and beyond >= _LEAST_SHARE * more[0]:
            yield entry


def _all_parts(card: Card) -> Iterator[str]:
    for part in card.parts:
        if "normal_score" in part:
            z = f"{part['normal_score']:+.1f} standard deviations among held-out inputs"
            yield f"  by {part['part']!r}: {z}"
        elif "part" in part:
            yield f"  by {part['part']!r}: score {part['score']:.4g}"
        yield from _part_lines(part)


def _part_lines(part: dict[str, Any]) -> Iterator[str]:
    """Yield lines about the reading of one part of a density."""
    if part["kind"] == "gaussian":
        yield from _gaussian(part)
    for block in part.get("blocks", ()):
        yield f"    block {block['block']} adds {block['score']:.4g}"
        yield from _part_lines(block)
    if part["kind"] == "neighbours":
        yield from _neighbours(part)


def _gaussian(part: dict[str, Any]) -> Iterator[str]:
    where = "the mean" if part["class"] is None else f"class {part['class']!r}"
    yield (
        f"    squared distance to {where}: {part['squared_distance']:.4g}, expected "
        f"{part['expected']:.0f} ± {part['spread']:.0f}; of it (on average)"
    )
    for entry in part["features"]:
        yield f"      {entry['contribution']:10.4g} ({entry['expected']:.0f})  {_entry(entry)}"
    yield f"      {part['rest']:10.4g}  all others"
    background = part.get("background", {})
    if background.get("kind") == "gaussian":
        yield (
            f"    squared distance to the background: {background['squared_distance']:.4g}, "
            f"expected {background['expected']:.0f} ± {background['spread']:.0f}"
        )


def _entry(entry: dict[str, Any]) -> str:
    """Describe a column in the units of the user, or a feature as the density sees it."""
    if "column" not in entry:
        name = entry.get("name", f"feature {entry['feature']}")
        value, mean = entry["value"], entry["mean"]
        # The mean of a principal component is zero, and comes out as 1e-17.
        mean = mean if abs(mean) > _NOISE * abs(value) else 0.0
        return f"{name} = {value:.4g} (mean {mean:.4g})"
    return _with_usual(entry)


def _with_usual(entry: dict[str, Any]) -> str:
    """Describe a column's value with its share of the training rows, and what is usual."""
    value, share = entry["value"], entry["share"]
    if value is None:
        text = f"{entry['name']} is missing"
    else:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        text = f"{entry['name']} = {number_text(value) if number else repr(value)}"
    about = [] if share is None else [f"{percent(share)} of the training rows"]
    about += [f"typical {entry['usual']}"] * bool(entry["usual"])
    return f"{text} ({', '.join(about)})" if about else text


def _neighbours(part: dict[str, Any]) -> Iterator[str]:
    near = ", ".join(f"row {e['row']} at {e['distance']:.4g}" for e in part["neighbours"])
    yield from textwrap.wrap(
        f"nearest training rows: {near}", _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 6
    )
    yield (
        f"    distance to number {part['kth']}: {part['kth_distance']:.4g}, typically "
        f"{part['typical_kth_distance']:.4g}"
    )
