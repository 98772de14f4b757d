"""Why a single input got the answer it got: a card per input, as values, text and picture."""

from ._baseline_card import BaselineCard
from ._card import Card
from ._explain import Behind, explain, explain_rarest

__all__ = ["BaselineCard", "Behind", "Card", "explain", "explain_rarest"]
