"""A card in words."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._card import Card

_MOST_CLASSES = 3
_WIDTH = 88


def card_text(card: Card) -> str:
    """The card as text, at most a few lines a part."""
    return "\n".join([*_answer(card), *_rarity(card), *_all_parts(card)])


def _answer(card: Card) -> Iterator[str]:
    # far from all data the mean ties, and the classifier decides
    order = np.lexsort((-card.bare, -card.mean.round(12)))[:_MOST_CLASSES]
    bare = int(card.bare.argmax())
    yield f"Answer {card.label!r}: " + ", ".join(
        f"{card.class_names[c]} {card.mean[c]:.1%}" for c in order
    )
    yield f"  classifier alone: {card.class_names[bare]} {card.bare[bare]:.1%}"
    yield (
        f"  evidence: {count(card.evidence)} of {card.n:,.0f} equivalent training samples; "
        f"{card.vacuity:.1%} of the answer is the prior"
    )


def _rarity(card: Card) -> Iterator[str]:
    verdict = "flagged as foreign" if card.flagged else "not flagged"
    yield (
        f"  p-value {card.p_value:.3g}: {_rare(card)} ({verdict} at {card.false_alarm_rate:.3g})"
    )
    yield f"  score of the density {card.score:.4g}, typically {card.typical_score:.4g}"


def _rare(card: Card) -> str:
    fewer = card.p_value * (card.held_out + 1) - 1
    if fewer < 0.5:
        return f"none of {card.held_out:,.0f} held-out inputs is less typical"
    return f"{fewer:,.0f} of {card.held_out:,.0f} held-out inputs are no more typical"


def _all_parts(card: Card) -> Iterator[str]:
    for part in card.parts:
        if "part" in part:
            yield f"  by {part['part']!r}{_standing(part)}"
        yield from _part(part)


def _standing(part: dict[str, Any]) -> str:
    if "normal_score" not in part:
        return f": score {part['score']:.4g}"
    return f": {part['normal_score']:+.1f} standard deviations among held-out inputs"


def _part(part: dict[str, Any]) -> Iterator[str]:
    if part["kind"] == "gaussian":
        yield from _gaussian(part)
    if part["kind"] == "blocks":
        yield from _blocks(part)
    if part["kind"] == "neighbours":
        yield from _neighbours(part)


def _gaussian(part: dict[str, Any]) -> Iterator[str]:
    where = "the mean" if part["class"] is None else f"class {part['class']!r}"
    yield (
        f"    squared distance to {where}: {part['squared_distance']:.4g}, expected "
        f"{part['expected']:.0f} ± {part['spread']:.0f}; of it"
    )
    for entry in part["features"]:
        name = entry.get("name", f"feature {entry['feature']}")
        yield (
            f"      {entry['contribution']:10.4g}  {name} = {entry['value']:.4g} "
            f"(mean {entry['mean']:.4g})"
        )
    yield f"      {part['rest']:10.4g}  all other features"
    background = part.get("background", {})
    if background.get("kind") == "gaussian":
        yield (
            f"    squared distance to the background: {background['squared_distance']:.4g}, "
            f"expected {background['expected']:.0f} ± {background['spread']:.0f}"
        )


def _blocks(part: dict[str, Any]) -> Iterator[str]:
    for block in part["blocks"]:
        yield f"    block {block['block']} adds {block['score']:.4g}"
        yield from _part(block)


def _neighbours(part: dict[str, Any]) -> Iterator[str]:
    near = ", ".join(f"row {e['row']} at {e['distance']:.4g}" for e in part["neighbours"])
    yield from textwrap.wrap(
        f"nearest training rows: {near}", _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 6
    )
    yield (
        f"    distance to number {part['kth']}: {part['kth_distance']:.4g}, typically "
        f"{part['typical_kth_distance']:.4g}"
    )


def count(value: float) -> str:
    """An amount of evidence, with as many digits as a reader wants."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
