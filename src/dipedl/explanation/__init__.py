"""Why a single input got the answer it got: a card per input, as values, text and picture."""

from ._card import Card
from ._explain import explain, explain_rarest

__all__ = ["Card", "explain", "explain_rarest"]
