"""One text for each value of a level or class, whatever type, file or neighbours it comes with."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any

#: A number as programs write one. 007, 1.10, +1, .5 and 1e5 are codes, versions or names.
_NUMBER = re.compile(
    r"-?(?:0|[1-9][0-9]*)"
    r"(?:(?:\.0+|\.[0-9]*[1-9])(?:[eE][+-]?[0-9]{1,3})?|[eE][+-][0-9]{1,3})?"
)
_TRUTH = re.compile("true|True|TRUE|false|False|FALSE")
#: A date, alone or at its midnight, which is that of UTC if it has a zone.
_MIDNIGHT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]00:00(?::00(?:\.0+)?)?(?: ?Z|\+00(?::?00)?)?)?"
)
#: Characters of a text that may be a number.
_LONGEST = 400


def spelling(value: Any) -> str:
    """Return the text of a level or class: the same for all ways in which a value is written.

    Parameters
    ----------
    value : object
        A number, a truth, a date or a text; not a gap.

    Returns
    -------
    str
        Digits of a number, without a decimal point if it is whole; "True" or "False"; a date
        without its time at midnight, in UTC if it has a zone. Any other text as it is, without
        blanks around it.

    Examples
    --------
    >>> spelling(1), spelling(1.0), spelling("1.0"), spelling("1e+02"), spelling(2**53 + 1)
    ('1', '1', '1', '100', '9007199254740993')
    >>> spelling("007"), spelling("1.10"), spelling(" low"), spelling("TRUE"), spelling(True)
    ('007', '1.10', 'low', 'True', 'True')
    """
    return _of_text(str(value).strip())


@lru_cache(maxsize=1 << 14)
def _of_text(text: str) -> str:
    if _is_number(text):
        return _digits(text)
    if _TRUTH.fullmatch(text):
        return text.capitalize()
    midnight = _MIDNIGHT.fullmatch(text)
    return midnight[1] if midnight else text


def _is_number(text: str) -> bool:
    return len(text) <= _LONGEST and _NUMBER.fullmatch(text) is not None


def _digits(text: str) -> str:
    number, nearest = Decimal(text), float(text)
    if math.isinf(nearest):
        return text
    if number == number.to_integral_value():
        # With an exponent it was written from a float, and stands for that.
        return str(int(nearest if "e" in text.lower() else number))
    shortest = repr(nearest)
    return shortest if Decimal(shortest) == number else format(number, "f")


def spellings(texts: Iterable[str], known: Iterable[str] = ()) -> list[str]:
    """Return the `spelling` of each text; what is one of the `known` texts is written as that."""
    known = list(known)
    names = {spelling(name): name for name in known} | {name: name for name in known}
    spelled = ((text, spelling(text)) for text in map(str.strip, texts))
    return [names.get(text, names.get(plain, plain)) for text, plain in spelled]


def versions(texts: Iterable[str]) -> frozenset[str]:
    """Return the texts (all or none) that stay as they are written.

    They do if two of them are one number beside texts that are no values but names: "1" and "1.0"
    are two versions where "2.0-beta" is one.
    """
    different = frozenset(texts)
    names = any(not (_is_number(t) or _TRUTH.fullmatch(t) or _MIDNIGHT.match(t)) for t in different)
    twice = max(Counter(map(_of_text, different)).values(), default=0) > 1
    return different if names and twice else frozenset()
